//! What answers over HTTP say beside their contents: [`compressed`], [`refusal_text`].

use http::StatusCode;
use http::header::{CONTENT_ENCODING, HeaderMap, LOCATION};

use super::ws::redact_urls;
use crate::text::{beginning, is_control, is_invisible};

/// Most bytes of a refusal that are kept.
const MAX_REFUSAL: usize = 300;

/// Says how an answer is compressed, by its headers or by the first bytes of its body, though the
/// request wanted it plain (`Accept-Encoding: identity`, RFC 9110, section 12.5.3); `None` if it is
/// not.
///
/// ```
/// use http::HeaderMap;
/// use rpc_core::net::http::compressed;
/// let why = compressed(&HeaderMap::new(), b"\x1f\x8b\x08").unwrap();
/// assert_eq!(why, "the answer is compressed with gzip, though identity was asked for");
/// assert_eq!(compressed(&HeaderMap::new(), b"{}"), None);
/// ```
#[must_use]
pub fn compressed(headers: &HeaderMap, begin: &[u8]) -> Option<String> {
    let declared = headers.get_all(CONTENT_ENCODING).iter();
    let mut declared = declared.filter_map(|coding| coding.to_str().ok());
    let declared = declared.find(|coding| !coding.trim().eq_ignore_ascii_case("identity"));
    let coding = match (declared.map(str::trim), begin) {
        (Some(coding), _) if !coding.is_empty() => coding,
        (_, [0x1f, 0x8b, ..]) => "gzip",
        (_, [0x28, 0xb5, 0x2f, 0xfd, ..]) => "zstd",
        _ => return None,
    };
    Some(format!(
        "the answer is compressed with {coding}, though identity was asked for"
    ))
}

/// Returns why a server refuses a request, in one line of at most 300 bytes: where it sends the client, or the
/// beginning of its answer, unless that is a page.
///
/// ```
/// use http::{HeaderMap, StatusCode};
/// use rpc_core::net::http::refusal_text;
/// let text = |body| refusal_text(StatusCode::BAD_GATEWAY, &HeaderMap::new(), body);
/// assert_eq!(text(b"no\nroom"), "no room");
/// assert_eq!(text(b"<html>"), "a page in HTML or XML");
/// ```
#[must_use]
pub fn refusal_text(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> String {
    if let Some(target) = headers.get(LOCATION).filter(|_| status.is_redirection()) {
        // What follows may hold secrets of the URL that was asked for.
        let target = String::from_utf8_lossy(target.as_bytes());
        return one_line(&format!("moved to {}", redact_urls(&target)));
    }
    match String::from_utf8_lossy(body) {
        page if page.trim_start().starts_with('<') => "a page in HTML or XML".to_owned(),
        text => one_line(&text),
    }
}

/// Returns the words of a text, without anything that a terminal or a log could take for more.
fn one_line(text: &str) -> String {
    let is_unseen = |c: char| is_control(c) || is_invisible(c);
    let seen = text.replace(is_unseen, " ");
    let words: Vec<_> = seen.split_whitespace().collect();
    beginning(&words.join(" "), MAX_REFUSAL).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_response_is_recognized() {
        let plain = &b"data: {}"[..];
        for (header, begin, expected) in [
            (None, plain, None),
            (Some("identity"), plain, None),
            (Some(" "), plain, None),
            (Some("br"), plain, Some("br")),
            (Some("x-gzip"), &[], Some("x-gzip")),
            (Some("identity"), &[0x1f, 0x8b, 8], Some("gzip")),
            (None, &[0x28, 0xb5, 0x2f, 0xfd], Some("zstd")),
            (None, &[0x1f], None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(header) = header {
                headers.insert(CONTENT_ENCODING, header.parse().unwrap());
            }
            let found = compressed(&headers, begin);
            let expected = expected.map(|it| {
                format!("the answer is compressed with {it}, though identity was asked for")
            });
            assert_eq!(found, expected, "{header:?}");
        }
    }
}
