//! The WebSocket upgrade of an HTTP/1.1 request (RFC 6455, section 4.2), as pure functions.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Extensions, Method, StatusCode, Uri, Version};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Whether a request asks for a WebSocket at all.
pub(super) fn is_upgrade(parts: &Parts) -> bool {
    has_token(&parts.headers, &header::CONNECTION, "upgrade")
        && has_token(&parts.headers, &header::UPGRADE, "websocket")
}

/// Checks an upgrade request and computes the value of `Sec-WebSocket-Accept`; else the status and
/// the reason of the refusal.
pub(super) fn accept_key(parts: &Parts) -> Result<HeaderValue, (StatusCode, &'static str)> {
    let bad = |why| (StatusCode::BAD_REQUEST, why);
    if parts.method != Method::GET {
        return Err((
            StatusCode::METHOD_NOT_ALLOWED,
            "a WebSocket is opened with GET",
        ));
    }
    if parts.version != Version::HTTP_11 {
        return Err(bad("a WebSocket is opened with HTTP/1.1"));
    }
    if parts
        .headers
        .get(header::SEC_WEBSOCKET_VERSION)
        .is_none_or(|version| version != "13")
    {
        return Err((
            StatusCode::UPGRADE_REQUIRED,
            "only WebSocket version 13 is spoken here",
        ));
    }
    let key = parts
        .headers
        .get(header::SEC_WEBSOCKET_KEY)
        .filter(|key| is_key(key.as_bytes()))
        .ok_or_else(|| bad("the Sec-WebSocket-Key is missing or not valid"))?;
    HeaderValue::from_str(&derive_accept_key(key.as_bytes()))
        .map_err(|_| bad("the Sec-WebSocket-Key is not valid"))
}

/// What an upgrade request says about the handshake alone. All of it has been checked and used.
const HANDSHAKE: [HeaderName; 4] = [
    header::CONNECTION,
    header::UPGRADE,
    header::SEC_WEBSOCKET_KEY,
    header::SEC_WEBSOCKET_VERSION,
];

/// Gives a request's head memory of its own, without the headers of the handshake. As it comes,
/// every part of it keeps the buffer alive into which it was read: 8 KiB for as long as the
/// connection lasts.
pub(super) fn detach(parts: &mut Parts) {
    for name in HANDSHAKE {
        parts.headers.remove(name);
    }
    let mut headers = HeaderMap::with_capacity(parts.headers.len());
    for (name, value) in &parts.headers {
        if let Ok(mut own) = HeaderValue::from_bytes(value.as_bytes()) {
            own.set_sensitive(value.is_sensitive());
            headers.append(name, own);
        }
    }
    parts.headers = headers;
    let uri = Bytes::copy_from_slice(parts.uri.to_string().as_bytes());
    if let Ok(own) = Uri::from_maybe_shared(uri) {
        parts.uri = own;
    }
    if parts.extensions.is_empty() {
        // What was taken out of them has left its table behind.
        parts.extensions = Extensions::new();
    }
}

/// Whether the client offers this subprotocol.
pub(super) fn offers(headers: &HeaderMap, subprotocol: &str) -> bool {
    list(headers, &header::SEC_WEBSOCKET_PROTOCOL).any(|offer| offer == subprotocol)
}

/// Sixteen bytes in base 64.
fn is_key(key: &[u8]) -> bool {
    key.len() == 24
        && key.ends_with(b"==")
        && key
            .iter()
            .take(22)
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn has_token(headers: &HeaderMap, name: &HeaderName, token: &str) -> bool {
    list(headers, name).any(|value| value.eq_ignore_ascii_case(token))
}

fn list<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'a str> {
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

    fn parts(change: impl FnOnce(&mut Request<()>)) -> Parts {
        let mut request = Request::builder()
            .uri("/")
            .header("connection", "keep-alive, Upgrade")
            .header("upgrade", "WebSocket")
            .header("sec-websocket-version", "13")
            .header("sec-websocket-key", KEY)
            .body(())
            .unwrap();
        change(&mut request);
        request.into_parts().0
    }

    #[test]
    fn the_example_of_the_rfc_gives_its_accept_key() {
        let parts = parts(|_| {});
        assert!(is_upgrade(&parts));
        assert_eq!(accept_key(&parts).unwrap(), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn a_detached_head_keeps_neither_the_buffer_nor_the_headers_of_the_handshake() {
        let buffer = Bytes::from(b"/ws?a=bsecret".to_vec());
        let mut secret = HeaderValue::from_maybe_shared(buffer.slice(7..)).unwrap();
        secret.set_sensitive(true);
        let mut parts = parts(|request| {
            *request.uri_mut() = Uri::from_maybe_shared(buffer.slice(..7)).unwrap();
            request.headers_mut().append("x-key", secret);
            request.headers_mut().append("x-key", "2".parse().unwrap());
        });
        detach(&mut parts);
        let headers: Vec<_> = parts.headers.iter().collect();
        let [(first, key), (second, more)] = headers[..] else {
            panic!("{headers:?}");
        };
        assert_eq!((first.as_str(), second.as_str()), ("x-key", "x-key"));
        assert_eq!(
            (key.as_bytes(), more.as_bytes()),
            (&b"secret"[..], &b"2"[..])
        );
        assert!(parts.headers["x-key"].is_sensitive());
        assert_eq!(parts.uri, "/ws?a=b");
        assert!(buffer.is_unique());
    }

    #[test]
    fn a_request_without_both_headers_is_no_upgrade() {
        for name in ["connection", "upgrade"] {
            assert!(!is_upgrade(&parts(|request| {
                request.headers_mut().remove(name);
            })));
        }
    }

    #[test]
    fn what_is_wrong_with_an_upgrade_decides_the_status() {
        let status = |parts: &Parts| accept_key(parts).unwrap_err().0.as_u16();
        assert_eq!(status(&parts(|r| *r.method_mut() = Method::POST)), 405);
        assert_eq!(status(&parts(|r| *r.version_mut() = Version::HTTP_10)), 400);
        let set = |name: &'static str, value: &'static str| {
            parts(|r| {
                r.headers_mut()
                    .insert(name, HeaderValue::from_static(value));
            })
        };
        assert_eq!(status(&set("sec-websocket-version", "8")), 426);
        for key in [
            "",
            "short==",
            "dGhlIHNhbXBsZSBub25jZQ=!",
            "dGhlIHNhbXBs ZSBub25jZQ==",
        ] {
            assert_eq!(status(&set("sec-websocket-key", key)), 400, "{key}");
        }
    }

    #[test]
    fn offers_are_found_in_several_headers() {
        let parts = parts(|request| {
            for value in ["a, b", "c"] {
                request.headers_mut().append(
                    header::SEC_WEBSOCKET_PROTOCOL,
                    HeaderValue::from_static(value),
                );
            }
        });
        assert!(offers(&parts.headers, "b") && offers(&parts.headers, "c"));
        assert!(!offers(&parts.headers, "a, b") && !offers(&parts.headers, "B"));
    }
}
