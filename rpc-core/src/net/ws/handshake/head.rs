//! The head of an HTTP request or answer.

use std::io;

use http::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::io::{AsyncRead, AsyncReadExt as _};

/// Longest head in bytes.
const MAX_HEAD: usize = 32 * 1024;
/// Most headers in it.
pub(super) const MAX_HEADERS: usize = 100;
/// Bytes read at once.
const READ: usize = 1024;
pub(super) const NOT_HTTP: &str = "the peer does not speak HTTP/1.1";
pub(in crate::net::ws) const SPEAKS_TLS: &str = "the server speaks TLS";
pub(in crate::net::ws) const LINE_ENDED: &str = "the line ended during the handshake";

/// A head and its length, `None` if it is incomplete, or the error.
pub(super) type Parsed<T> = Result<Option<(T, usize)>, &'static str>;

/// Reads up to the end of a head, of which `buffer` has been read. Returns the head and the bytes
/// read past it, or the error.
pub(super) async fn read_head<T>(
    stream: &mut (impl AsyncRead + Unpin),
    mut buffer: Vec<u8>,
    parse: fn(&[u8]) -> Parsed<T>,
) -> io::Result<Result<(T, Vec<u8>), &'static str>> {
    loop {
        match parse(&buffer) {
            Ok(Some((head, len))) => {
                buffer.drain(..len);
                return Ok(Ok((head, buffer)));
            }
            Ok(None) if buffer.len() >= MAX_HEAD => {
                return Ok(Err("the head of the handshake is too large"));
            }
            Ok(None) => {}
            Err(why) => return Ok(Err(why)),
        }
        buffer.reserve(READ);
        if stream.read_buf(&mut buffer).await? == 0 {
            return Ok(Err(LINE_ENDED));
        }
    }
}

pub(super) fn copy_headers(
    raw: &[httparse::Header<'_>],
    headers: &mut HeaderMap,
) -> Result<(), &'static str> {
    for header in raw {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| NOT_HTTP)?;
        let value = HeaderValue::from_bytes(header.value).map_err(|_| NOT_HTTP)?;
        headers.try_append(name, value).map_err(|_| NOT_HTTP)?;
    }
    Ok(())
}
