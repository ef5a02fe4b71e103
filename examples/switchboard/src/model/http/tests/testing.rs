//! A provider on this machine that misbehaves as instructed, for the tests of all models.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::StreamExt as _;
use rpc_core::backoff::BackoffPolicy;
use snek_proto::llm::chat::ChatMessage;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::RequestPolicy;
use crate::model::{Assembler, ChatModel, ChatRequest, ModelError};

/// The provider's behaviour for one request.
#[derive(Clone, Copy)]
pub(crate) enum Does {
    /// Answers with this head (after the status line) and this body in chunks of this size, and
    /// closes.
    Answers(&'static str, &'static str, usize),
    /// Reads the request, and no more.
    Waits,
    /// Streams this and keeps the connection open.
    Hangs(&'static str),
    /// Streams this and breaks the transfer off.
    Breaks(&'static str),
    /// Streams this now and then for ever.
    Drips(&'static str),
    /// Streams this for ever.
    Repeats(&'static str),
    /// Refuses, and repeats the address and the rest of the request.
    Betrays,
    /// Closes without an answer.
    Closes,
}

/// The head of a good answer.
pub(crate) const OK: &str = "200 OK\r\ncontent-type: text/event-stream";

/// A provider on this machine that misbehaves as instructed.
pub(crate) struct Provider {
    pub(crate) url: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Provider {
    /// Starts a provider that behaves as instructed, request after request, and then closes
    /// connections at once.
    pub(crate) async fn start(behaviour: &'static [Does]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            let mut number = 0;
            while let Ok((socket, _)) = listener.accept().await {
                let does = behaviour.get(number).copied().unwrap_or(Does::Closes);
                number += 1;
                let seen = Arc::clone(&seen);
                tokio::spawn(async move {
                    let _ = serve(socket, does, &seen).await;
                });
            }
        });
        Self { url, requests }
    }

    /// Returns the requests, with head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Reads a request, with head and body.
pub(crate) async fn read_request(socket: &mut TcpStream) -> std::io::Result<String> {
    let mut request = Vec::new();
    loop {
        let mut part = [0; 4096];
        match socket.read(&mut part).await? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            length => request.extend_from_slice(&part[..length]),
        }
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            name.eq_ignore_ascii_case("content-length")
                .then(|| value.parse::<usize>().unwrap())
        });
        if body.len() >= length.unwrap_or(0) {
            return Ok(text);
        }
    }
}

/// Returns the members of a request.
pub(crate) fn members(request: &str) -> serde_json::Map<String, serde_json::Value> {
    serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap()
}

async fn serve(
    mut socket: TcpStream,
    does: Does,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let request = read_request(&mut socket).await?;
    seen.lock().unwrap().push(request.clone());
    socket.set_nodelay(true)?;
    let chunked = "\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    let head = format!("HTTP/1.1 {OK}{chunked}");
    match does {
        Does::Answers(status, body, size) => {
            let head = format!("HTTP/1.1 {status}{chunked}");
            socket.write_all(head.as_bytes()).await?;
            write(&mut socket, body, size).await?;
            socket.write_all(b"0\r\n\r\n").await?;
        }
        Does::Waits => {
            let _ = socket.read(&mut [0]).await;
        }
        Does::Hangs(body) => {
            socket.write_all(head.as_bytes()).await?;
            write(&mut socket, body, usize::MAX).await?;
            // Until the client has had enough.
            let _ = socket.read(&mut [0]).await;
        }
        Does::Breaks(body) => {
            socket.write_all(head.as_bytes()).await?;
            write(&mut socket, body, usize::MAX).await?;
            socket.write_all(b"ff\r\n").await?;
        }
        Does::Drips(body) => {
            socket.write_all(head.as_bytes()).await?;
            loop {
                write(&mut socket, body, usize::MAX).await?;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Does::Repeats(body) => {
            socket.write_all(head.as_bytes()).await?;
            loop {
                write(&mut socket, body, usize::MAX).await?;
            }
        }
        Does::Betrays => {
            let head = format!("HTTP/1.1 502 Bad Gateway{chunked}");
            socket.write_all(head.as_bytes()).await?;
            let url = format!("http://{}", socket.local_addr()?);
            let body = format!("no {url}/v1/chat/completions, {url}: {request}");
            write(&mut socket, &body, 100).await?;
            socket.write_all(b"0\r\n\r\n").await?;
        }
        Does::Closes => {}
    }
    socket.shutdown().await
}

async fn write(socket: &mut TcpStream, body: &str, size: usize) -> std::io::Result<()> {
    for chunk in body.as_bytes().chunks(size) {
        let head = format!("{:x}\r\n", chunk.len());
        socket.write_all(head.as_bytes()).await?;
        socket.write_all(chunk).await?;
        socket.write_all(b"\r\n").await?;
        socket.flush().await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// Patient with a slow machine, but not with a provider that hangs on purpose after its answer.
/// Three attempts without waits between them.
pub(crate) fn policy() -> RequestPolicy {
    let mut retry = BackoffPolicy::new(Duration::from_millis(1), 1.0);
    retry.max_attempts = Some(2);
    RequestPolicy::default()
        .with_tail_timeout(Duration::from_millis(50))
        .with_retry(retry)
}

/// Asks, and joins the answer as far as it came.
pub(crate) async fn ask(model: &dyn ChatModel) -> (Assembler, Result<(), ModelError>) {
    let question = ChatMessage::user("hello");
    let mut assembler = Assembler::default();
    let mut deltas = match model.stream(ChatRequest::new(vec![&question])).await {
        Ok(deltas) => deltas,
        Err(error) => return (assembler, Err(error)),
    };
    while let Some(delta) = deltas.next().await {
        match delta {
            Ok(delta) => assembler.push(&delta).unwrap(),
            Err(error) => return (assembler, Err(error)),
        }
    }
    (assembler, Ok(()))
}
