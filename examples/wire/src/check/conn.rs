//! One connection of a script: what is sent and received on it, with the rules of a broken peer between.

use std::collections::VecDeque;
use std::io::{self, Cursor};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use rpc_core::net::ws::{WsConfig, WsStream};
use rpc_core::net::{Message, TransportError};
use rpc_core::testing::Side;
use rpc_core::{CloseFrame, Outgoing, Text};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, join};
use tokio::time::timeout;

use super::http::Answer;
use super::tamper::{Frame, Passed, Tamper};
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

/// An open connection.
pub(super) struct Conn {
    io: Io,
    /// Who is checked.
    peer: Side,
    number: u8,
    tamper: Arc<dyn Tamper>,
    pending: VecDeque<Frame>,
    /// Whether the peer never closes: a broken one, whose Close is dropped.
    hangs: bool,
}

impl Conn {
    pub(super) fn new(io: Io, number: u8, peer: Side, tamper: &Arc<dyn Tamper>) -> Self {
        Self {
            io,
            peer,
            number,
            tamper: Arc::clone(tamper),
            pending: tamper.begin(number, peer).into_iter().collect(),
            hangs: false,
        }
    }

    /// Sends a frame. That the connection has ended is not an error: the next receive says so.
    pub(super) async fn send(&mut self, frame: Frame) {
        let own = match self.peer {
            Side::Server => Side::Client,
            Side::Client => Side::Server,
        };
        for passed in self.tamper.pass(self.number, own, frame) {
            match passed {
                Passed::On(frame) => self.send_now(frame).await,
                Passed::Back(frame) => self.pending.push_back(frame),
                Passed::Closed(code) => self.closed(code),
            }
        }
    }

    async fn send_now(&mut self, frame: Frame) {
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

    fn closed(&mut self, code: u16) {
        self.pending.push_back(Frame::Close(code));
        self.io = Io::None;
    }

    /// Answers a Close and ends TCP: some peers are done only then.
    async fn shut(&mut self) {
        if let Io::WebSocket(ws) = &mut self.io {
            let _ = timeout(SHUT_TIME, ws.close()).await;
        }
        self.io = Io::None;
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
        loop {
            if let Some(frame) = self.pending.pop_front() {
                return frame;
            }
            if self.hangs {
                std::future::pending::<()>().await;
            }
            let frame = match &mut self.io {
                Io::None => return Frame::End("the connection has ended".to_owned()),
                Io::WebSocket(ws) => from_message(ws.next().await),
                Io::Http(answer) => answer.next().await,
            };
            let ends = matches!(frame, Frame::End(_) | Frame::Close(_));
            if matches!(frame, Frame::End(_)) {
                self.io = Io::None;
            }
            let passed = self.tamper.pass(self.number, self.peer, frame);
            self.hangs = ends && passed.is_empty();
            if ends && !self.hangs {
                self.shut().await;
            }
            for passed in passed {
                match passed {
                    Passed::On(frame) | Passed::Back(frame) => self.pending.push_back(frame),
                    Passed::Closed(code) => self.closed(code),
                }
            }
        }
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
