//! The parts of an upgrade request that outlive the upgrade.

use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::request::Parts;
use http::{Extensions, Uri};

/// The headers that concern the handshake alone, which has checked and used them.
const HANDSHAKE: [HeaderName; 4] = [
    header::CONNECTION,
    header::UPGRADE,
    header::SEC_WEBSOCKET_KEY,
    header::SEC_WEBSOCKET_VERSION,
];

/// Copies a request's head into memory of its own, without the headers of the handshake. Without
/// the copy, every part keeps the 8 KiB buffer alive into which it was read, for as long as the
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

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn a_detached_head_frees_the_handshake() {
        let buffer = Bytes::from(b"/ws?a=bsecret".to_vec());
        let mut secret = HeaderValue::from_maybe_shared(buffer.slice(7..)).unwrap();
        secret.set_sensitive(true);
        let mut request = Request::new(());
        *request.uri_mut() = Uri::from_maybe_shared(buffer.slice(..7)).unwrap();
        let headers = request.headers_mut();
        headers.append(header::UPGRADE, "websocket".parse().unwrap());
        headers.append("x-key", secret);
        headers.append("x-key", "2".parse().unwrap());
        let mut parts = request.into_parts().0;
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
}
