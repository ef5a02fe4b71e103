//! What of an upgrade request outlives the upgrade.

use http::Uri;
use http::header::HeaderValue;
use http::request::Parts;

/// Gives a request's head memory of its own. As it comes, every part of it keeps the buffer alive
/// into which it was read: 8 KiB for as long as the connection lasts.
pub(super) fn detach(parts: &mut Parts) {
    for value in parts.headers.values_mut() {
        if let Ok(mut own) = HeaderValue::from_bytes(value.as_bytes()) {
            own.set_sensitive(value.is_sensitive());
            *value = own;
        }
    }
    if let Ok(own) = Uri::try_from(parts.uri.to_string()) {
        parts.uri = own;
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn a_detached_head_is_the_same_and_keeps_no_buffer() {
        let buffer = bytes::Bytes::from(b"/ws?a=bsecret".to_vec());
        let mut secret = HeaderValue::from_maybe_shared(buffer.slice(7..)).unwrap();
        secret.set_sensitive(true);
        let mut request = Request::new(());
        *request.uri_mut() = Uri::from_maybe_shared(buffer.slice(..7)).unwrap();
        request.headers_mut().append("x-key", secret);
        let mut parts = request.into_parts().0;
        let headers = parts.headers.clone();
        detach(&mut parts);
        assert_eq!(parts.headers, headers);
        drop(headers);
        assert!(parts.headers["x-key"].is_sensitive());
        assert_eq!(parts.uri, "/ws?a=b");
        assert!(buffer.is_unique());
    }
}
