//! Heads of HTTP messages and URLs without their secrets.

use std::borrow::Cow;

use memchr::memmem;
use percent_encoding::percent_decode_str;

/// Parts of the names of headers whose values are secrets.
const SECRET: [&str; 6] = ["auth", "cookie", "token", "secret", "password", "signature"];
/// Headers that only look like it.
const PUBLIC: [&str; 3] = ["www-authenticate", "proxy-authenticate", "idempotency-key"];
/// Parts of the names of parameters of a URL whose values are secrets.
const SECRET_QUERY: [&str; 9] = [
    "token", "key", "secret", "password", "passwd", "pwd", "code", "auth", "sig",
];

/// Returns the head of an HTTP message, without the empty line, and its body.
#[must_use]
pub fn split(message: &str) -> (&str, &str) {
    let ends = ["\r\n\r\n", "\n\n"].into_iter();
    let ends = ends.filter_map(|end| Some((message.find(end)?, end.len())));
    let Some((at, len)) = ends.min() else {
        return (message, "");
    };
    let body = message.get(at + len..).unwrap_or_default();
    (message.get(..at).unwrap_or_default(), body)
}

/// Returns the head of an HTTP message without the values of secret headers, bearer subprotocols, and
/// the secrets of its URLs.
#[must_use]
pub fn redact(head: &str) -> String {
    let mut redacted = String::with_capacity(head.len());
    // Whether the last header is a secret: a line that begins with a space goes on with it.
    let mut is_secret = false;
    for (index, line) in head.split_inclusive('\n').enumerate() {
        let text = line.trim_end_matches(['\r', '\n']);
        let end = line.get(text.len()..).unwrap_or_default();
        let goes_on = text.starts_with([' ', '\t']);
        match text.split_once(':').filter(|_| !goes_on) {
            _ if index == 0 => redacted.push_str(&redact_words(text)),
            Some((name, value)) => {
                is_secret = is_secret_header(name);
                redacted.push_str(name);
                redacted.push(':');
                redacted.push_str(&match is_secret {
                    true => Cow::Borrowed(" ***"),
                    false => header(name, value).into(),
                });
            }
            None if text.is_empty() => {}
            None if goes_on && !is_secret => redacted.push_str(&redact_words(text)),
            // No header has a line without a name.
            None => redacted.push_str(" ***"),
        }
        redacted.push_str(end);
    }
    redacted
}

fn is_secret_header(name: &str) -> bool {
    let name = name.trim().to_ascii_lowercase();
    // The key of a WebSocket says nothing.
    let is_key = name.ends_with("key") && !name.starts_with("sec-websocket-");
    !PUBLIC.contains(&&*name) && (is_key || SECRET.iter().any(|it| name.contains(it)))
}

fn header(name: &str, value: &str) -> String {
    if !name.trim().eq_ignore_ascii_case("sec-websocket-protocol") {
        return redact_words(value);
    }
    let offers = value.split(',').map(|offer| {
        let bearer = offer.to_ascii_lowercase().find("bearer.");
        match bearer.and_then(|at| offer.get(..at + "bearer.".len())) {
            Some(before) => format!("{before}***"),
            None => offer.to_owned(),
        }
    });
    offers.collect::<Vec<_>>().join(",")
}

/// Returns a text without the secrets of the URLs in it.
#[must_use]
pub fn redact_words(text: &str) -> String {
    let words: Vec<_> = text.split(' ').map(redact_url).collect();
    words.join(" ")
}

/// Returns a URL or a path without a user's name and password and without the values of secret parameters.
#[must_use]
pub fn redact_url(url: &str) -> String {
    let at = url.find(['?', '#', ';']).unwrap_or(url.len());
    let (place, mut rest) = url.split_at(at);
    let mut redacted = without_user(place);
    while let Some(separator) = rest.chars().next() {
        redacted.push(separator);
        rest = rest.get(1..).unwrap_or_default();
        let end = rest.find(['?', '#', ';', '&']).unwrap_or(rest.len());
        let (pair, behind) = rest.split_at(end);
        match pair.split_once('=') {
            Some((name, _)) if is_secret_parameter(name) => {
                redacted.push_str(name);
                redacted.push_str("=***");
            }
            _ => redacted.push_str(pair),
        }
        rest = behind;
    }
    redacted
}

fn without_user(place: &str) -> String {
    let authority = place.find("//").map_or(0, |at| at + 2);
    let (scheme, rest) = place.split_at(authority);
    // A password may hold a slash.
    match rest.rfind('@').filter(|_| authority > 0) {
        Some(user) => format!("{scheme}***{}", rest.get(user..).unwrap_or_default()),
        None => place.to_owned(),
    }
}

fn is_secret_parameter(name: &str) -> bool {
    let name = Cow::from(percent_decode_str(name)).to_ascii_lowercase();
    SECRET_QUERY
        .iter()
        .any(|it| memmem::find(&name, it.as_bytes()).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secrets_of_a_head_are_left_out() {
        let head = "GET /ws?token=hunter2&a=1 HTTP/1.1\r\nHost: h\r\nAUTHORIZATION: Bearer hunter2\r\n\
            Sec-WebSocket-Protocol: acolyte.v1, bearer.hunter2\r\ncookie: hunter2\r\n\r\n";
        let expected = "GET /ws?token=***&a=1 HTTP/1.1\r\nHost: h\r\nAUTHORIZATION: ***\r\n\
            Sec-WebSocket-Protocol: acolyte.v1, bearer.***\r\ncookie: ***\r\n\r\n";
        assert_eq!(redact(head), expected);
    }

    #[test]
    fn no_spelling_of_a_head_shows_a_secret() {
        for head in [
            "GET /?auth=hunter2 HTTP/1.1\r\n\r\n",
            "GET /?a=1&sig=hunter2 HTTP/1.1\r\n\r\n",
            "GET /?t%6fken=hunter2 HTTP/1.1\r\n\r\n",
            "GET /x?a=1;token=hunter2 HTTP/1.1\r\n\r\n",
            "GET /x#access_token=hunter2 HTTP/1.1\r\n\r\n",
            "GET http://u:hunter2@h/ HTTP/1.1\r\n\r\n",
            "GET //u:hunt/hunter2@h HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\nAuthorization: hunter2\n\n",
            "GET / HTTP/1.1\r\nAuthorization : Bearer hunter2\r\n\r\n",
            "GET / HTTP/1.1\r\nAuthorization: Bearer\r\n hunter2\r\n\r\n",
            "GET / HTTP/1.1\r\nAuthorization: Bearer\r\n x:hunter2\r\n\r\n",
            "GET / HTTP/1.1\r\nX-Auth-Token: hunter2\r\n\r\n",
            "GET / HTTP/1.1\r\nApi-Key: hunter2\r\n\r\n",
            "GET / HTTP/1.1\r\nhunter2\r\n\r\n",
            "GET / HTTP/1.1\r\nReferer: http://h/?token=hunter2\r\n\r\n",
            "GET / HTTP/1.1\r\nSec-WebSocket-Protocol: Bearer.hunter2\r\n\r\n",
            "GET / HTTP/1.1\r\nSec-WebSocket-Protocol: a, x.bearer.hunter2\r\n\r\n",
            "HTTP/1.1 302 Found\r\nLocation: /v1?token=hunter2\r\n\r\n",
            "HTTP/1.1 302 Found\r\nLocation: wss://u:hunter2@h:1/\r\n\r\n",
        ] {
            let shown = redact(head);
            assert!(
                !shown.contains("hunter2") && shown.contains("***"),
                "{shown}"
            );
            assert_eq!(shown.lines().count(), head.lines().count(), "{shown}");
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
        for head in [
            "GET /ws?a=1&b=2#c HTTP/1.1\r\nHost: u@h\r\nSec-WebSocket-Key: x==\r\nReferer: http://h/a?b\r\n\
             Content-Type: text/html; charset=utf-8\r\n\r\n",
            "HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Bearer\r\n folded\r\n\r\n",
            "/v1/rpc",
            "101",
        ] {
            assert_eq!(redact(head), head);
        }
    }

    #[test]
    fn a_head_ends_at_its_first_empty_line() {
        assert_eq!(split("a\r\nb\r\n\r\nc\n\nd"), ("a\r\nb", "c\n\nd"));
        assert_eq!(split("a\nb\n\nc\r\n\r\n"), ("a\nb", "c\r\n\r\n"));
        assert_eq!(split("a"), ("a", ""));
    }
}
