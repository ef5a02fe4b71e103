//! [`Posts`]: texts that are posted over HTTP, one after the other over one connection.

use std::io;
use std::task::{Context, Poll};

use rpc_core::net::ws::{Socket, WsDialer};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// The longest line of a head, the most lines, and the longest body of an answer.
const MAX_LINE: u64 = 8 * 1024;
const MAX_LINES: usize = 100;
const MAX_BODY: u64 = 1024 * 1024;

struct Post {
    number: u64,
    path: &'static str,
    body: String,
}

/// The posts of one connection. Their task ends with this value; it begins with the first post.
pub(super) struct Posts {
    dialer: WsDialer,
    tasks: JoinSet<()>,
    posts: Option<mpsc::UnboundedSender<Post>>,
    refused: Option<mpsc::UnboundedReceiver<(u64, String)>>,
}

impl Posts {
    pub(super) fn new(dialer: WsDialer) -> Self {
        Self {
            dialer,
            tasks: JoinSet::new(),
            posts: None,
            refused: None,
        }
    }

    /// Posts a text for the call with this number. As many wait as there are calls in flight.
    pub(super) fn send(&mut self, number: u64, path: &'static str, body: String) {
        let posts = self.posts.get_or_insert_with(|| {
            let (posts, waiting) = mpsc::unbounded_channel();
            let (refused, told) = mpsc::unbounded_channel();
            self.tasks
                .spawn(work(self.dialer.clone(), waiting, refused));
            self.refused = Some(told);
            posts
        });
        let _ = posts.send(Post { number, path, body });
    }

    /// Returns the next call whose post was not accepted, and why.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<(u64, String)> {
        let Some(refused) = &mut self.refused else {
            return Poll::Pending;
        };
        match refused.poll_recv(cx) {
            Poll::Ready(Some(told)) => Poll::Ready(told),
            _ => Poll::Pending,
        }
    }
}

async fn work(
    dialer: WsDialer,
    mut posts: mpsc::UnboundedReceiver<Post>,
    refused: mpsc::UnboundedSender<(u64, String)>,
) {
    let mut line = None;
    while let Some(post) = posts.recv().await {
        let result = exchange(&dialer, &mut line, &post).await;
        let kind = match result {
            Ok(200..=299) => continue,
            Ok(status) => format!("error answer: {} {status}", post.path),
            Err(kind) => kind,
        };
        let _ = refused.send((post.number, kind));
    }
}

/// Posts a text, and returns the status of the answer. Keeps the connection for the next one if it can.
async fn exchange(
    dialer: &WsDialer,
    line: &mut Option<BufReader<Socket>>,
    post: &Post,
) -> Result<u16, String> {
    let mut open = match line.take() {
        Some(line) => line,
        None => {
            let (socket, _) = dialer.open().await.map_err(|error| error.to_string())?;
            BufReader::new(socket)
        }
    };
    let headers = dialer.headers().map_err(|error| error.to_string())?;
    let mut request = format!("POST {} HTTP/1.1\r\n", post.path).into_bytes();
    for (name, value) in &headers {
        for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
            request.extend_from_slice(part);
        }
    }
    let (length, body) = (post.body.len(), &post.body);
    let rest = format!("content-type: text/plain\r\ncontent-length: {length}\r\n\r\n{body}");
    request.extend_from_slice(rest.as_bytes());
    let answer = async {
        open.get_mut().write_all(&request).await?;
        open.get_mut().flush().await?;
        read(&mut open).await
    };
    match answer.await {
        Ok((status, is_kept)) => {
            *line = is_kept.then_some(open);
            Ok(status)
        }
        Err(error) => Err(format!("{}: {}", post.path, error.kind())),
    }
}

/// Reads an answer: its status, and whether the connection can be used again.
async fn read(line: &mut BufReader<Socket>) -> io::Result<(u16, bool)> {
    let (mut status, mut length, mut is_last) = (None, None, false);
    for _ in 0..MAX_LINES {
        let mut text = String::new();
        line.take(MAX_LINE).read_line(&mut text).await?;
        let text = text.trim_end();
        match status {
            None => {
                let number = text.split(' ').nth(1).and_then(|it| it.parse().ok());
                status = Some(number.ok_or(io::ErrorKind::InvalidData)?);
            }
            Some(status) if text.is_empty() => {
                let Some(length) = length.filter(|length| *length <= MAX_BODY) else {
                    return Ok((status, false));
                };
                let read = tokio::io::copy(&mut line.take(length), &mut tokio::io::sink()).await?;
                return Ok((status, read == length && !is_last));
            }
            Some(_) => {
                let (name, value) = text.split_once(':').unwrap_or_default();
                if name.eq_ignore_ascii_case("content-length") {
                    length = value.trim().parse::<u64>().ok();
                } else if name.eq_ignore_ascii_case("connection") {
                    is_last = value.trim().eq_ignore_ascii_case("close");
                }
            }
        }
    }
    Err(io::ErrorKind::InvalidData.into())
}
