//! [`compressed`]: finds answers over HTTP that are compressed although plain ones were asked for.

use http::header::{CONTENT_ENCODING, HeaderMap};

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
            let told = compressed(&headers, begin);
            let expected = expected.map(|it| {
                format!("the answer is compressed with {it}, though identity was asked for")
            });
            assert_eq!(told, expected, "{header:?}");
        }
    }
}
