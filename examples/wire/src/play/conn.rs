//! One open line: what is sent and received on it, over a WebSocket or in an answer of plain HTTP.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Cursor};
use std::pin::Pin;
use std::time::Duration;

use data_encoding::HEXLOWER;
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _, future, sink, stream};
use rpc_core::net::ws::{WsConfig, WsStream};
use rpc_core::net::{Message, TransportError};
use rpc_core::{CloseFrame, Disconnect, Json, Outgoing, Text};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, join};
use tokio::time::timeout;

use super::http::Answer;
use crate::head::{Head, read_head, respond};
use crate::pattern::short;
use crate::secrets::{self, Shown};

/// A byte stream to or from a peer.
pub(crate) trait Bytes: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Bytes for S {}
/// The byte stream of a connection.
pub(crate) type BoxStream = Box<dyn Bytes>;

/// The largest message that is read or sent.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// The time for a peer to take the end of a connection.
const SHUT_TIME: Duration = Duration::from_secs(1);
/// How much may have come that nobody has looked at.
const BACKLOG: usize = 1024;
/// The code of a Close without one.
pub(crate) const NO_CODE: u16 = 1005;
/// How a connection ends where nobody closes it.
pub(crate) const NO_CLOSE: &str = "the end without a Close";

/// The settings of the WebSockets.
pub(crate) fn config() -> WsConfig {
    WsConfig {
        max_message: MAX_MESSAGE,
        ..WsConfig::default()
    }
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
    /// A Close with this code and reason.
    Close(u16, String),
    /// The end without a Close, and why.
    End(String),
}

impl Frame {
    /// Returns whether nothing follows it.
    pub(crate) const fn is_end(&self) -> bool {
        matches!(self, Self::Close(..) | Self::End(_))
    }
}

/// What it is, without its secrets.
impl fmt::Display for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) if Json::new(text).is_ok() => {
                f.write_str(&short(&secrets::frame(text, &Shown::default())))
            }
            Self::Text(text) => write!(f, "{:?}", short(&secrets::within(text))),
            Self::Binary(bytes) => {
                let first = bytes.get(..64).unwrap_or(bytes);
                write!(f, "{} bytes: {}", bytes.len(), HEXLOWER.encode(first))
            }
            Self::Ping(_) => f.write_str("a ping"),
            Self::Pong(_) => f.write_str("a pong"),
            Self::Close(NO_CODE, _) => f.write_str("Close without a code"),
            Self::Close(code, reason) if reason.is_empty() => write!(f, "Close {code}"),
            Self::Close(code, reason) => write!(f, "Close {code} {:?}", secrets::within(reason)),
            Self::End(why) => f.write_str(why),
        }
    }
}

type Reads = Pin<Box<dyn Stream<Item = Frame> + Send>>;
type Writes = Pin<Box<dyn Sink<Outgoing, Error = TransportError> + Send>>;

/// An open connection.
pub(crate) struct Conn {
    reads: Reads,
    writes: Writes,
    pending: VecDeque<Frame>,
    /// Whether the end was received, or made here.
    has_ended: bool,
}

impl Conn {
    fn of(
        reads: impl Stream<Item = Frame> + Send + 'static,
        writes: impl Sink<Outgoing, Error = TransportError> + Send + 'static,
    ) -> Self {
        let end = || stream::iter([Frame::End(NO_CLOSE.to_owned())]);
        Self {
            reads: Box::pin(reads.chain(end())),
            writes: Box::pin(writes),
            pending: VecDeque::new(),
            has_ended: false,
        }
    }

    /// Takes a WebSocket.
    pub(crate) fn websocket(ws: WsStream<BoxStream>) -> Self {
        let (writes, reads) = ws.split();
        Self::of(reads.filter_map(|it| future::ready(frame(it))), writes)
    }

    /// Takes the answer to a request.
    pub(super) fn answer(answer: Answer) -> Self {
        let reads = stream::unfold(Some(answer), |answer| async move {
            let mut answer = answer?;
            let frame = answer.next().await;
            let more = (!frame.is_end()).then_some(answer);
            Some((frame, more))
        });
        Self::of(reads, no_writes())
    }

    /// Takes a connection on which a request is answered. What is sent are the events of the answer, or its body.
    pub(super) fn answering(socket: BoxStream, is_stream: bool) -> Self {
        let (mut reads, writes) = tokio::io::split(socket);
        let reads = stream::once(async move {
            let mut buffer = [0; 1024];
            // What a client sends behind its request means nothing.
            while reads.read(&mut buffer).await.is_ok_and(|len| len > 0) {}
            Frame::End(NO_CLOSE.to_owned())
        });
        let writes = sink::unfold(writes, move |mut writes, frame: Outgoing| async move {
            match frame {
                Outgoing::Text(text) if is_stream => {
                    let lines = text.as_str().split('\n');
                    let event: String = lines.map(|line| format!("data: {line}\n")).collect();
                    writes.write_all(format!("{event}\n").as_bytes()).await?;
                }
                Outgoing::Text(text) => writes.write_all(text.as_str().as_bytes()).await?,
                Outgoing::Close(_) => writes.shutdown().await?,
                _ => {}
            }
            writes.flush().await?;
            Ok(writes)
        });
        Self::of(reads, writes)
    }

    /// Sends a frame, and reads meanwhile. That the connection has ended is not an error: the next receive says so.
    /// Cancel-safe, but for the frame.
    pub(super) async fn send(&mut self, frame: Frame) {
        let message = match frame {
            Frame::Text(text) => Outgoing::Text(Text::from(text)),
            Frame::Binary(bytes) => Outgoing::Binary(bytes.into()),
            Frame::Ping(bytes) => Outgoing::Ping(bytes.into()),
            Frame::Close(NO_CODE, _) => Outgoing::Close(CloseFrame::new(CloseFrame::NORMAL, "")),
            Frame::Close(code, reason) => Outgoing::Close(CloseFrame::new(code, reason)),
            Frame::End(_) => return self.cut(),
            Frame::Pong(_) => return,
        };
        let Self {
            reads,
            writes,
            pending,
            ..
        } = self;
        let mut sending = writes.send(message);
        loop {
            tokio::select! {
                biased;
                // Receiving tells why nothing is taken.
                _ = &mut sending => return,
                Some(frame) = reads.next(), if pending.len() < BACKLOG => pending.push_back(frame),
            }
        }
    }

    /// Reads on, for a while, to the end of a connection that was closed here, and ends TCP. What comes is received
    /// later.
    pub(super) async fn finish(&mut self, patience: Duration) {
        let mut came = VecDeque::new();
        let reading = async {
            while !came.back().is_some_and(Frame::is_end) {
                came.push_back(self.receive().await);
            }
        };
        // What comes later is still received.
        let _late = timeout(patience, reading).await;
        came.append(&mut self.pending);
        self.pending = came;
    }

    /// Drops the connection.
    pub(super) fn cut(&mut self) {
        self.reads = Box::pin(stream::empty());
        self.writes = Box::pin(no_writes());
        self.has_ended = true;
    }

    /// Reads one frame. Cancel-safe.
    async fn read(&mut self) {
        match self.reads.next().await {
            Some(frame) => self.pending.push_back(frame),
            None => future::pending().await,
        }
    }

    /// Reads what comes while something else is waited for, so that pings are answered. Never returns. Cancel-safe.
    pub(super) async fn read_ahead<T>(&mut self) -> T {
        while self.pending.len() < BACKLOG {
            self.read().await;
        }
        future::pending().await
    }

    /// Receives the next frame; after the end, the end again. Cancel-safe.
    pub(super) async fn receive(&mut self) -> Frame {
        while self.pending.is_empty() && !self.has_ended {
            self.read().await;
        }
        let is_end = self.pending.front().is_some_and(Frame::is_end);
        if is_end && !self.has_ended {
            // A Close is answered, and TCP ended: some peers are done only then.
            if matches!(self.pending.front(), Some(Frame::Close(..))) {
                let _late = timeout(SHUT_TIME, self.writes.close()).await;
            }
            self.cut();
        }
        let end = || Frame::End("the connection has ended".to_owned());
        self.pending.pop_front().unwrap_or_else(end)
    }

    /// Reads to the end of the connection. What comes is not kept. Cancel-safe.
    pub(super) async fn read_on(&mut self) {
        while !matches!(self.receive().await, Frame::End(_)) {}
    }
}

fn no_writes() -> impl Sink<Outgoing, Error = TransportError> + Send + 'static {
    sink::drain().sink_map_err(|never| match never {})
}

/// Returns what comes; `None` for a part of a message that goes on.
fn frame(message: Result<Message, TransportError>) -> Option<Frame> {
    Some(match message {
        Ok(Message::Text(text)) => Frame::Text(text.as_str().to_owned()),
        Ok(Message::Binary(bytes)) => Frame::Binary(bytes.to_vec()),
        Ok(Message::Ping(bytes)) => Frame::Ping(bytes.to_vec()),
        Ok(Message::Pong(bytes)) => Frame::Pong(bytes.to_vec()),
        Ok(Message::Close(None)) => Frame::Close(NO_CODE, String::new()),
        Ok(Message::Close(Some(frame))) => Frame::Close(frame.code, frame.reason),
        Ok(_) => return None,
        Err(error) => match Disconnect::from(&error) {
            Disconnect::Eof => Frame::End(NO_CLOSE.to_owned()),
            _ => Frame::End(error.to_string()),
        },
    })
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
