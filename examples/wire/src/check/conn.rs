//! One connection of a script: what is sent and received on it.

use std::collections::VecDeque;
use std::io::{self, Cursor};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use rpc_core::net::ws::{WsConfig, WsStream};
use rpc_core::net::{Message, TransportError};
use rpc_core::{CloseFrame, Outgoing, Text};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, join};
use tokio::time::timeout;

use super::http::Answer;
use crate::head::{Head, read_head, respond};

/// A byte stream to or from a peer.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}
/// The byte stream of a connection.
pub(crate) type BoxStream = Box<dyn Stream>;

/// The largest message that a check reads or sends.
pub(super) const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// The time for a peer to take the end of a connection.
const SHUT_TIME: Duration = Duration::from_secs(1);

/// The settings of the WebSockets of checks.
pub(crate) fn config() -> WsConfig {
    WsConfig {
        max_message: MAX_MESSAGE,
        ..WsConfig::default()
    }
}

/// What a connection is made of.
pub(crate) enum Io {
    WebSocket(Box<WsStream<BoxStream>>),
    Http(Box<Answer>),
    None,
}

/// What passes on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A text.
    Text(String),
    /// Bytes.
    Binary(Vec<u8>),
    /// A ping of the transport.
    Ping(Vec<u8>),
    /// A pong of the transport.
    Pong(Vec<u8>),
    /// A Close with this code.
    Close(u16),
    /// The end without a Close, and why.
    End(String),
}

/// An open connection.
pub(super) struct Conn {
    io: Io,
    pending: VecDeque<Frame>,
}

impl Conn {
    pub(super) const fn new(io: Io) -> Self {
        Self {
            io,
            pending: VecDeque::new(),
        }
    }

    /// Sends a frame. That the connection has ended is not an error: the next receive says so.
    pub(super) async fn send(&mut self, frame: Frame) {
        let Io::WebSocket(ws) = &mut self.io else {
            return;
        };
        let message = match frame {
            Frame::Text(text) => Outgoing::Text(Text::from(text)),
            Frame::Binary(bytes) => Outgoing::Binary(bytes.into()),
            Frame::Ping(bytes) => Outgoing::Ping(bytes.into()),
            Frame::Close(code) => Outgoing::Close(CloseFrame::new(code, "")),
            Frame::Pong(_) | Frame::End(_) => return,
        };
        let _ = ws.send(message).await;
    }

    /// Reads on, for a while, to the end of a connection that the script has closed, and ends TCP. What comes is
    /// received later.
    pub(super) async fn finish(&mut self, patience: Duration) {
        let mut came = VecDeque::new();
        let reading = async {
            while !matches!(came.back(), Some(Frame::Close(_) | Frame::End(_))) {
                let frame = self.receive().await;
                came.push_back(frame);
            }
        };
        let _ = timeout(patience, reading).await;
        came.append(&mut self.pending);
        self.pending = came;
    }

    /// Drops the connection.
    pub(super) fn cut(&mut self) {
        self.io = Io::None;
    }

    /// Receives the next frame; after the end, the end again. Cancel-safe.
    pub(super) async fn receive(&mut self) -> Frame {
        if let Some(frame) = self.pending.pop_front() {
            return frame;
        }
        let frame = match &mut self.io {
            Io::None => return Frame::End("the connection has ended".to_owned()),
            Io::WebSocket(ws) => from_message(ws.next().await),
            Io::Http(answer) => answer.next().await,
        };
        if !matches!(frame, Frame::End(_) | Frame::Close(_)) {
            return frame;
        }
        // A Close is answered, and TCP ended: some peers are done only then.
        self.pending.push_back(frame);
        if let Io::WebSocket(ws) = &mut self.io
            && matches!(self.pending.front(), Some(Frame::Close(_)))
        {
            let _ = timeout(SHUT_TIME, ws.close()).await;
        }
        self.io = Io::None;
        let end = || Frame::End("the connection has ended".to_owned());
        self.pending.pop_front().unwrap_or_else(end)
    }

    /// Reads to the end of the connection. What comes is not kept.
    pub(super) async fn read_on(&mut self) {
        while !matches!(self.receive().await, Frame::End(_)) {}
    }
}

fn from_message(message: Option<Result<Message, TransportError>>) -> Frame {
    match message {
        Some(Ok(Message::Text(text))) => Frame::Text(text.as_str().to_owned()),
        Some(Ok(Message::Binary(bytes))) => Frame::Binary(bytes.to_vec()),
        Some(Ok(Message::Ping(bytes))) => Frame::Ping(bytes.to_vec()),
        Some(Ok(Message::Pong(bytes))) => Frame::Pong(bytes.to_vec()),
        Some(Ok(Message::Close(frame))) => Frame::Close(frame.map_or(1005, |frame| frame.code)),
        Some(Ok(_)) => Frame::End("a message of an unknown kind".to_owned()),
        Some(Err(error)) => Frame::End(error.to_string()),
        None => Frame::End("the connection ends without a Close".to_owned()),
    }
}

/// A request of a client, whose head is read.
pub(crate) struct Request {
    pub(crate) head: Head,
    rest: Vec<u8>,
    line: BoxStream,
}

impl Request {
    pub(crate) async fn read(mut line: BoxStream) -> io::Result<Self> {
        let read = read_head(&mut line, Vec::new()).await?;
        let (head, rest) = read.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok(Self { head, rest, line })
    }

    /// Reads the body.
    pub(crate) async fn body(&mut self) -> io::Result<String> {
        let len = self.head.header("content-length");
        let len = len
            .map_or(Ok(0), str::parse::<usize>)
            .map_err(io::Error::other)?;
        if len > MAX_MESSAGE {
            return Err(io::Error::other("the body of the request is too large"));
        }
        let mut body = std::mem::take(&mut self.rest);
        let missing = len.saturating_sub(body.len()) as u64;
        if (&mut self.line)
            .take(missing)
            .read_to_end(&mut body)
            .await? as u64
            != missing
        {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        String::from_utf8(body).map_err(io::Error::other)
    }

    /// Begins an answer, and returns the connection for the rest of it.
    pub(crate) async fn answer(mut self, head: &str) -> io::Result<BoxStream> {
        self.line.write_all(head.as_bytes()).await?;
        self.line.flush().await?;
        Ok(self.line)
    }

    /// Agrees to the upgrade.
    pub(crate) async fn accept(self, config: &WsConfig) -> Result<WsStream<BoxStream>, String> {
        // The head is read again.
        let head = [self.head.bytes(), self.rest].concat();
        let (reads, writes) = tokio::io::split(self.line);
        let line: BoxStream = Box::new(join(Cursor::new(head).chain(reads), writes));
        WsStream::accept(line, config)
            .await
            .map_err(|error| error.to_string())
    }

    /// Answers with a status, and closes.
    pub(crate) async fn refuse(self, status: &str) -> io::Result<()> {
        self.end(status, "").await
    }

    /// Answers with a status and JSON, which may be empty, and closes.
    pub(super) async fn end(mut self, status: &str, body: &str) -> io::Result<()> {
        let reason = if status == "200" { "OK" } else { "Refused" };
        respond(
            &mut self.line,
            &format!("{status} {reason}"),
            "application/json",
            body,
        )
        .await
    }
}
