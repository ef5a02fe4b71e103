//! A plain GET, for documents that servers offer beside their WebSocket.

use http::header::{self, HeaderMap};
use http::{HeaderValue, Response};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::client::{UpgradeError, parse_response, write_headers};
use super::head::read_head;
use crate::net::http::compressed;

/// Fetches a document. Uses HTTP/1.0, whose answers end with the connection and are never chunked.
pub(in crate::net::ws) async fn get(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    path: &str,
    headers: &HeaderMap,
    max: usize,
) -> Result<(u16, Vec<u8>), UpgradeError> {
    let mut request = format!("GET {path} HTTP/1.0\r\n").into_bytes();
    let own: [(&str, &[u8]); 2] = [("Accept-Encoding", b"identity"), ("Connection", b"close")];
    write_headers(&mut request, headers, &own);
    stream.write_all(&request).await?;
    stream.flush().await?;
    let (answer, mut body) = read_head(stream, Vec::new(), parse_response)
        .await?
        .map_err(UpgradeError::Answer)?;
    if compressed(answer.headers(), &body).is_some() {
        let why = "the document is compressed, though identity was asked for";
        return Err(UpgradeError::Answer(why));
    }
    let length = length_of(&answer)?;
    let wanted = length.unwrap_or(max);
    if wanted > max || body.len() > max {
        return Err(UpgradeError::Answer("the document is too large"));
    }
    let missing = wanted.saturating_sub(body.len());
    // One byte more shows whether a document without a length goes on.
    let more = missing + usize::from(length.is_none());
    let read = stream.take(more as u64).read_to_end(&mut body).await?;
    match length {
        Some(length) if body.len() < length => {
            Err(UpgradeError::Answer("the line ended in the document"))
        }
        None if read > missing => Err(UpgradeError::Answer("the document is too large")),
        _ => {
            body.truncate(wanted);
            Ok((answer.status().as_u16(), body))
        }
    }
}

fn length_of(answer: &Response<()>) -> Result<Option<usize>, UpgradeError> {
    let headers = answer.headers();
    if headers.contains_key(header::TRANSFER_ENCODING) {
        return Err(UpgradeError::Answer("the document comes in an encoding"));
    }
    let length = |value: &HeaderValue| value.to_str().ok()?.trim().parse().ok();
    match headers.get(header::CONTENT_LENGTH).map(length) {
        Some(None) => Err(UpgradeError::Answer("the document's length is invalid")),
        Some(length) => Ok(length),
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a client makes of this answer to a GET of at most eight bytes.
    async fn got(answer: &str) -> Result<(u16, String), String> {
        let (mut client, mut server) = tokio::io::duplex(1024);
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, HeaderValue::from_static("h:1"));
        let serve = async {
            let mut request = [0; 512];
            let read = server.read(&mut request).await.unwrap();
            let request = String::from_utf8_lossy(&request[..read]).into_owned();
            server.write_all(answer.as_bytes()).await.unwrap();
            drop(server);
            request
        };
        let (got, request) = tokio::join!(get(&mut client, "/info", &headers, 8), serve);
        assert_eq!(
            request,
            "GET /info HTTP/1.0\r\nHost: h:1\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n"
        );
        match got {
            Ok((status, body)) => Ok((status, String::from_utf8(body).unwrap())),
            Err(UpgradeError::Answer(why)) => Err(why.to_owned()),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn a_response_body_ends_with_its_length_or_the_connection() {
        for answer in [
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}more",
            "HTTP/1.0 200 OK\r\n\r\n{}",
        ] {
            assert_eq!(got(answer).await, Ok((200, "{}".to_owned())), "{answer}");
        }
        let whole = "HTTP/1.1 404 No\r\n\r\n12345678";
        assert_eq!(got(whole).await, Ok((404, "12345678".to_owned())));
    }

    #[tokio::test]
    async fn oversized_truncated_or_encoded_responses_are_refused() {
        let large = Err("the document is too large");
        let packed = "the document is compressed, though identity was asked for";
        for (answer, expected) in [
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
                large.clone(),
            ),
            ("HTTP/1.1 200 OK\r\n\r\n123456789", large),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}",
                Err("the line ended in the document"),
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
                Err("the document comes in an encoding"),
            ),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n{}",
                Err("the document's length is invalid"),
            ),
            (
                "HTTP/1.1 500 No\r\nContent-Encoding: gzip\r\n\r\n",
                Err(packed),
            ),
        ] {
            let expected: Result<(u16, String), _> = expected.map_err(str::to_owned);
            assert_eq!(got(answer).await, expected, "{answer}");
        }
    }
}
