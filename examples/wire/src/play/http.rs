//! What is asked of a server: WebSockets, and HTTP requests with their answers: a body, or server-sent events.

use std::collections::VecDeque;
use std::fmt::Display;
use std::io;

use rpc_core::net::DialError;
use rpc_core::net::ws::{WsConfig, WsDialer, WsStream};
use rpc_core::{Limits, sse};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::conn::{self, BoxStream, Conn, Frame};
use super::script::Headers;
use crate::head::{Head, read_head};

/// How much is read at once.
const PART: usize = 4096;
/// The largest body that is read.
const MAX_PART: usize = 4 * 1024 * 1024;

/// An answer, whose body is read as frames.
pub(crate) struct Answer {
    pub(crate) head: Head,
    line: BoxStream,
    rest: Vec<u8>,
    body: Vec<u8>,
    events: Option<sse::Decoder>,
    ready: VecDeque<Frame>,
    ended: bool,
}

/// Asks the server of this URL, to which a connection is open; without a method, for a WebSocket. The headers are those
/// that not each connection has. Returns the head of the answer, and what was opened.
pub(super) async fn ask(
    url: &str,
    line: BoxStream,
    method: Option<&str>,
    (path, mut headers, body): (&str, Headers, &str),
) -> Result<(Head, Option<Conn>), DialError> {
    let (scheme, authority, _) = split(url);
    let path = if path.is_empty() { "/" } else { path };
    let dialer = WsDialer::new(&format!("{scheme}://{authority}{path}"))?;
    let failed = |error: &dyn Display| DialError::Handshake(error.to_string());
    if let Some(method) = method {
        let has_host = headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("host"));
        if !has_host && let Some(host) = dialer.headers()?.get(::http::header::HOST) {
            let host = String::from_utf8_lossy(host.as_bytes());
            headers.insert(0, ("Host".to_owned(), host.into_owned()));
        }
        let answer = request(line, method, path, &headers, body).await;
        let answer = answer.map_err(|error| failed(&error))?;
        return Ok((answer.head.clone(), Some(Conn::answer(answer))));
    }
    let mut config = conn::config();
    for (name, value) in &headers {
        config = match name.eq_ignore_ascii_case("sec-websocket-protocol") {
            true => {
                let mut offers = value.split(',').map(str::trim);
                offers.try_fold(config, WsConfig::with_subprotocol)
            }
            false => config.with_header(name, value),
        }
        .map_err(|error| failed(&error))?;
    }
    let (status, ws) = match dialer.with_config(config).upgrade(line).await {
        Ok(ws) => (101, Some(ws)),
        Err(DialError::Status { status, .. }) => (status, None),
        Err(error) => return Err(error),
    };
    let mut head = Head::of(&format!("HTTP/1.1 {status}"));
    if let Some(name) = ws.as_ref().and_then(WsStream::subprotocol) {
        head.set("Sec-WebSocket-Protocol", name);
    }
    Ok((head, ws.map(Conn::websocket)))
}

/// Splits a URL into its scheme, its authority and its path, which is empty if it is `/` only.
pub(crate) fn split(url: &str) -> (&str, &str, &str) {
    let (scheme, rest) = url.split_once("://").unwrap_or(("ws", url));
    let at = rest.find('/').unwrap_or(rest.len());
    let (authority, path) = rest.split_at(at);
    (scheme, authority, if path == "/" { "" } else { path })
}

/// Makes a request as HTTP/1.0, so that the end of the connection is the end of the body.
pub(crate) async fn request(
    mut line: BoxStream,
    method: &str,
    path: &str,
    headers: &[(String, String)],
    body: &str,
) -> io::Result<Answer> {
    let mut head = format!("{method} {path} HTTP/1.0\r\nConnection: close\r\n");
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if !body.is_empty() {
        head.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    head.push_str("\r\n");
    line.write_all(head.as_bytes()).await?;
    line.write_all(body.as_bytes()).await?;
    line.flush().await?;
    let read = read_head(&mut line, Vec::new()).await?;
    let (head, rest) = read.ok_or(io::ErrorKind::UnexpectedEof)?;
    if head.status().is_none() {
        return Err(io::Error::other("the answer is not HTTP"));
    }
    let streams = head.is_stream();
    Ok(Answer {
        head,
        line,
        rest,
        body: Vec::new(),
        events: streams.then(|| sse::Decoder::new(&Limits::default())),
        ready: VecDeque::new(),
        ended: false,
    })
}

impl Answer {
    /// Returns the next event, or the whole body; then the end. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Frame {
        loop {
            if let Some(frame) = self.ready.pop_front() {
                return frame;
            }
            if self.ended {
                return Frame::End("the answer has ended".to_owned());
            }
            let mut chunk = std::mem::take(&mut self.rest);
            if chunk.is_empty() {
                chunk.reserve(PART);
                let _ = self.line.read_buf(&mut chunk).await;
            }
            let bytes = &*chunk;
            self.ended = bytes.is_empty();
            match &mut self.events {
                Some(decoder) => {
                    let mut rest = bytes;
                    while let Some(event) = decoder.decode(&mut rest) {
                        self.ready.push_back(match event {
                            Ok(event) => Frame::Text(event.data),
                            Err(error) => Frame::End(error.to_string()),
                        });
                    }
                }
                None if self.body.len() + bytes.len() > MAX_PART => {
                    self.ended = true;
                    self.ready
                        .push_back(Frame::End("the body is too large".to_owned()));
                }
                None => self.body.extend_from_slice(bytes),
            }
            if self.ended && !self.body.is_empty() {
                let body = std::mem::take(&mut self.body);
                self.ready
                    .push_back(Frame::Text(String::from_utf8_lossy(&body).into_owned()));
            }
        }
    }
}
