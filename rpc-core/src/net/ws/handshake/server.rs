//! The server's side of the handshake.

use http::header::{self, HeaderMap, HeaderValue};
use http::request::Parts;
use http::{Method, Request, StatusCode, Version};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::head::{MAX_HEADERS, NOT_HTTP, Parsed, copy_headers, read_head};
use super::{has_token, list, only, switches};
use crate::net::transport::TransportError;

/// What a request gets that asks for no WebSocket.
pub(crate) const EXPLANATION: &str =
    "This address speaks WebSocket. Open it with a WebSocket client.";

/// Answers a client's upgrade request with 101, and selects the first of `ours` that it offers.
/// Returns that, and the bytes that the client sent after its request.
pub(in crate::net::ws) async fn accept(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    ours: &[String],
) -> Result<(Option<String>, Vec<u8>), TransportError> {
    let bad = |why| (StatusCode::BAD_REQUEST, why);
    let read = read_head(stream, Vec::new(), parse_request).await?;
    let checked = read.map_err(bad).and_then(|(request, behind)| {
        let accept = accept_key(&request)?;
        Ok((request, behind, accept))
    });
    let (request, behind, accept) = match checked {
        Ok(checked) => checked,
        Err((status, why)) => {
            let length = why.len();
            let answer = format!(
                "HTTP/1.1 {status}\r\nConnection: close\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
                 Content-Type: text/plain\r\nContent-Length: {length}\r\n\r\n{why}"
            );
            stream.write_all(answer.as_bytes()).await?;
            stream.shutdown().await?;
            return Err(TransportError::Protocol(why.to_owned()));
        }
    };
    let selected = select_subprotocol(&request.headers, ours);
    let mut answer = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: ".to_vec();
    answer.extend_from_slice(accept.as_bytes());
    if let Some(name) = &selected {
        answer.extend_from_slice(b"\r\nSec-WebSocket-Protocol: ");
        answer.extend_from_slice(name.as_bytes());
    }
    answer.extend_from_slice(b"\r\n\r\n");
    stream.write_all(&answer).await?;
    stream.flush().await?;
    Ok((selected, behind))
}

/// Returns whether a request asks for a WebSocket at all.
pub(crate) fn is_upgrade(parts: &Parts) -> bool {
    switches(&parts.headers)
}

/// Returns whether a request that is [no upgrade](is_upgrade) was meant as one.
pub(crate) fn is_meant(parts: &Parts) -> bool {
    let headers = &parts.headers;
    headers.contains_key(header::SEC_WEBSOCKET_KEY)
        || headers.contains_key(header::SEC_WEBSOCKET_VERSION)
        || has_token(headers, &header::UPGRADE, "websocket")
}

/// Checks an upgrade request and returns the value of `Sec-WebSocket-Accept`, or the status and the
/// reason of the refusal.
pub(crate) fn accept_key(parts: &Parts) -> Result<HeaderValue, (StatusCode, &'static str)> {
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
    if !is_upgrade(parts) {
        return Err(if is_meant(parts) {
            bad("a WebSocket needs `Connection: Upgrade` and `Upgrade: websocket`")
        } else {
            (StatusCode::UPGRADE_REQUIRED, EXPLANATION)
        });
    }
    let length = parts.headers.get_all(header::CONTENT_LENGTH);
    if length.iter().any(|length| length != "0")
        || parts.headers.contains_key(header::TRANSFER_ENCODING)
    {
        return Err(bad("an upgrade request has no body"));
    }
    if only(&parts.headers, &header::SEC_WEBSOCKET_VERSION) != Some(b"13") {
        return Err((
            StatusCode::UPGRADE_REQUIRED,
            "only WebSocket version 13 is spoken here",
        ));
    }
    let key = only(&parts.headers, &header::SEC_WEBSOCKET_KEY)
        .filter(|key| is_key(key))
        .ok_or_else(|| bad("the Sec-WebSocket-Key is missing or not valid"))?;
    HeaderValue::from_str(&derive_accept_key(key))
        .map_err(|_| bad("the Sec-WebSocket-Key is not valid"))
}

/// Returns the first of `ours` that the client offers.
pub(crate) fn select_subprotocol(headers: &HeaderMap, ours: &[String]) -> Option<String> {
    ours.iter().find(|name| offers(headers, name)).cloned()
}

/// Returns whether the client offers this subprotocol.
pub(crate) fn offers(headers: &HeaderMap, subprotocol: &str) -> bool {
    list(headers, &header::SEC_WEBSOCKET_PROTOCOL).any(|offer| offer == subprotocol.as_bytes())
}

/// Returns whether `key` is sixteen bytes in base 64.
fn is_key(key: &[u8]) -> bool {
    key.len() == 24
        && key.ends_with(b"==")
        && key
            .iter()
            .take(22)
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

fn parse_request(bytes: &[u8]) -> Parsed<Parts> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut raw = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(len) = raw.parse(bytes).map_err(|_| NOT_HTTP)? else {
        return Ok(None);
    };
    let lines = bytes
        .get(..len)
        .unwrap_or_default()
        .split(|byte| *byte == b'\n');
    if lines.rev().skip(1).any(|line| !line.ends_with(b"\r")) {
        return Err("a line of the request ends without CR");
    }
    let mut request = Request::new(());
    let method = raw.method.unwrap_or_default().parse();
    *request.method_mut() = method.map_err(|_| NOT_HTTP)?;
    *request.uri_mut() = raw.path.unwrap_or_default().parse().map_err(|_| NOT_HTTP)?;
    if raw.version != Some(1) {
        *request.version_mut() = Version::HTTP_10;
    }
    copy_headers(raw.headers, request.headers_mut())?;
    Ok(Some((request.into_parts().0, len)))
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
    fn a_request_without_both_headers_is_not_an_upgrade() {
        for name in ["connection", "upgrade"] {
            assert!(!is_upgrade(&parts(|request| {
                request.headers_mut().remove(name);
            })));
        }
    }

    #[test]
    fn the_status_of_a_bad_upgrade_depends_on_its_fault() {
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
