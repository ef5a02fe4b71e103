//! HTTP requests of a script, and their answers: a body, or server-sent events.

use std::collections::VecDeque;
use std::io;

use rpc_core::{Limits, sse};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::conn::BoxStream;
use super::tamper::Frame;
use crate::head::{Head, read_head};

/// How much is read at once.
const PART: usize = 4096;
/// The largest body that is read.
const MAX_PART: usize = 4 * 1024 * 1024;

/// An answer, whose body is read as frames.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: Head,
    line: BoxStream,
    rest: Vec<u8>,
    body: Vec<u8>,
    events: Option<sse::Decoder>,
    ready: VecDeque<Frame>,
    ended: bool,
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
    let bad = || io::Error::other("the answer is not HTTP");
    let status = head.status().ok_or_else(bad)?;
    let streams = head.is_stream();
    Ok(Answer {
        status,
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
