//! The client's side of the handshake.

use std::io;
use std::time::Duration;

use http::header::{self, HeaderMap};
use http::{Response, StatusCode, Version};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use super::head::{MAX_HEADERS, NOT_HTTP, Parsed, SPEAKS_TLS, copy_headers, read_head};
use super::{only, switches};
use crate::net::http::refusal_text;
use crate::net::ws::config::{is_reserved, is_token};

/// Most answers before the final one.
const MAX_INTERIM: usize = 8;
/// Most bytes of a refusal's body that are read, and how long that may take.
const MAX_BODY: usize = 1024;
const BODY_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a client's upgrade failed.
#[derive(Debug, thiserror::Error)]
pub(in crate::net::ws) enum UpgradeError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The server answered with another status than 101, or a proxy with none of success.
    #[error("it answered {status}; {why}")]
    Refused {
        status: StatusCode,
        why: String,
        retry_after: Option<Duration>,
    },
    /// The server's answer is not a valid answer to a WebSocket upgrade.
    #[error("{0}")]
    Answer(&'static str),
}

/// Requests the upgrade from a server. Returns the subprotocol that it selected, and the bytes that it
/// sent after its answer: some servers send first.
pub(in crate::net::ws) async fn upgrade(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    path: &str,
    headers: &HeaderMap,
    offered: &[String],
) -> Result<(Option<String>, Vec<u8>), UpgradeError> {
    let key = generate_key();
    stream
        .write_all(&write_request(path, &key, headers, offered))
        .await?;
    stream.flush().await?;
    let (answer, behind) = read_answer(stream).await?;
    if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
        return Err(refusal(stream, &answer, behind).await);
    }
    Ok((check_response(&answer, &key, offered)?, behind))
}

/// Reads up to the head of the final answer. Returns it, and the bytes read past it.
pub(in crate::net::ws) async fn read_answer(
    stream: &mut (impl AsyncRead + Unpin),
) -> Result<(Response<()>, Vec<u8>), UpgradeError> {
    let mut behind = Vec::new();
    for _ in 0..=MAX_INTERIM {
        let read = read_head(stream, behind, parse_response).await?;
        let (answer, rest) = read.map_err(UpgradeError::Answer)?;
        let status = answer.status();
        if !status.is_informational() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok((answer, rest));
        }
        behind = rest;
    }
    Err(UpgradeError::Answer("the server gives no final answer"))
}

fn write_request(path: &str, key: &str, headers: &HeaderMap, offered: &[String]) -> Vec<u8> {
    let mut request = format!("GET {path} HTTP/1.1\r\n").into_bytes();
    let tokens = offered.iter().map(String::as_str);
    let offered: Vec<_> = tokens.filter(|it| is_token(it)).collect();
    let offered = offered.join(", ");
    let own: [(&str, &[u8]); 5] = [
        ("Connection", b"Upgrade"),
        ("Upgrade", b"websocket"),
        ("Sec-WebSocket-Version", b"13"),
        ("Sec-WebSocket-Key", key.as_bytes()),
        ("Sec-WebSocket-Protocol", offered.as_bytes()),
    ];
    let count = if offered.is_empty() { 4 } else { 5 };
    write_headers(&mut request, headers, own.get(..count).unwrap_or(&own));
    request
}

/// Writes the headers of a request, and its end. Some servers are said to care about case and order.
pub(super) fn write_headers(request: &mut Vec<u8>, headers: &HeaderMap, own: &[(&str, &[u8])]) {
    let mut put = |name: &str, value: &[u8]| {
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            request.extend_from_slice(part);
        }
    };
    for value in headers.get_all(header::HOST) {
        put("Host", value.as_bytes());
    }
    for (name, value) in own {
        put(name, value);
    }
    for (name, value) in headers {
        if *name == header::HOST || is_reserved(name) {
            continue;
        }
        let name = if *name == header::ORIGIN {
            "Origin"
        } else {
            name.as_str()
        };
        put(name, value.as_bytes());
    }
    request.extend_from_slice(b"\r\n");
}

/// Reads why the server refuses.
async fn refusal<S: AsyncRead + Unpin>(
    stream: &mut S,
    answer: &Response<()>,
    mut body: Vec<u8>,
) -> UpgradeError {
    let headers = answer.headers();
    let number = |name| -> Option<u64> {
        let number = std::str::from_utf8(only(headers, &name)?).ok()?;
        number.trim().parse().ok()
    };
    let length = number(header::CONTENT_LENGTH);
    let length = length.map_or(MAX_BODY as u64, |length| length.min(MAX_BODY as u64));
    let missing = length.saturating_sub(body.len() as u64);
    // What has come by then is shown.
    let _ = timeout(BODY_TIMEOUT, stream.take(missing).read_to_end(&mut body)).await;
    let mut body = body.get(..MAX_BODY).unwrap_or(&body);
    if headers.contains_key(header::TRANSFER_ENCODING) {
        // The first chunk is enough.
        let mut lines = body.splitn(2, |byte| *byte == b'\n');
        let size = lines.next().unwrap_or_default();
        let size = std::str::from_utf8(size.split(|byte| *byte == b';').next().unwrap_or_default());
        let size = size
            .ok()
            .and_then(|size| usize::from_str_radix(size.trim(), 16).ok());
        body = lines.next().unwrap_or_default();
        body = body.get(..size.unwrap_or_default()).unwrap_or(body);
    }
    UpgradeError::Refused {
        status: answer.status(),
        why: refusal_text(answer.status(), headers, body),
        retry_after: number(header::RETRY_AFTER).map(Duration::from_secs),
    }
}

/// Checks a server's answer (section 4.1) and returns the subprotocol that it selected, if any.
fn check_response(
    answer: &Response<()>,
    key: &str,
    offered: &[String],
) -> Result<Option<String>, UpgradeError> {
    let bad = |why| Err(UpgradeError::Answer(why));
    let headers = answer.headers();
    if answer.version() != Version::HTTP_11 {
        return bad("the server does not speak HTTP/1.1");
    }
    if !switches(headers) {
        return bad("the server does not switch to WebSocket");
    }
    if only(headers, &header::SEC_WEBSOCKET_ACCEPT)
        .is_none_or(|value| value != derive_accept_key(key.as_bytes()).as_bytes())
    {
        return bad("the server's Sec-WebSocket-Accept does not fit the key");
    }
    if headers.contains_key(header::SEC_WEBSOCKET_EXTENSIONS) {
        return bad("the server uses an extension that was not offered");
    }
    let mut selected = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter();
    match (selected.next(), selected.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match offered.iter().find(|name| *value == name.as_str()) {
            Some(name) => Ok(Some(name.clone())),
            None => bad("the server selects a subprotocol that was not offered"),
        },
        (Some(_), Some(_)) => bad("the server selects several subprotocols"),
    }
}

pub(super) fn parse_response(bytes: &[u8]) -> Parsed<Response<()>> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut raw = httparse::Response::new(&mut headers);
    let wrong = |_| match bytes {
        // An alert, after what it took for a handshake.
        [0x15, 0x03, ..] => SPEAKS_TLS,
        _ => NOT_HTTP,
    };
    let httparse::Status::Complete(len) = raw.parse(bytes).map_err(wrong)? else {
        return Ok(None);
    };
    let mut response = Response::new(());
    *response.status_mut() =
        StatusCode::from_u16(raw.code.unwrap_or_default()).map_err(|_| NOT_HTTP)?;
    if raw.version != Some(1) {
        *response.version_mut() = Version::HTTP_10;
    }
    copy_headers(raw.headers, response.headers_mut())?;
    Ok(Some((response, len)))
}
