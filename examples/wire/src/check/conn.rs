//! One connection of a script: what is sent and received on it, with the rules of a broken peer between.

use std::collections::VecDeque;
use std::io::{self, Cursor};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use rpc_core::net::ws::{WsConfig, WsStream};
use rpc_core::net::{DialError, Message};
use rpc_core::{CloseFrame, Outgoing, Text};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, join};
use tokio::time::timeout;

use super::broken::{Direction, Frame, Passed, Passing, Rules};
use super::http::Answer;

/// A byte stream to or from a peer.
pub trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> Stream for S {}
/// The byte stream of a connection.
pub type BoxStream = Box<dyn Stream>;

/// The largest message that a check reads or sends.
pub(super) const MAX_MESSAGE: usize = 16 * 1024 * 1024;
/// The time for a peer to take the end of a connection.
const SHUT_TIME: Duration = Duration::from_secs(1);
/// The largest head of a request.
const MAX_HEAD: usize = 16 * 1024;

/// The settings of the WebSockets of checks.
pub(crate) fn config() -> WsConfig {
    WsConfig::default().with_max_message(MAX_MESSAGE)
}

enum Io {
    WebSocket(Box<WsStream<BoxStream>>),
    Http(Box<Answer>),
    None,
}

/// An open connection.
pub(super) struct Conn {
    io: Io,
    /// The way of the frames that come.
    incoming: Direction,
    passing: Passing,
    pending: VecDeque<Frame>,
    /// Whether the peer never closes: a broken one, whose Close is dropped.
    hangs: bool,
}

impl Conn {
    pub(super) fn websocket(
        ws: WsStream<BoxStream>,
        number: u8,
        incoming: Direction,
        rules: &Rules,
    ) -> Self {
        Self::new(Io::WebSocket(Box::new(ws)), number, incoming, rules)
    }

    pub(super) fn http(answer: Answer, number: u8, rules: &Rules) -> Self {
        Self::new(
            Io::Http(Box::new(answer)),
            number,
            Direction::ToClient,
            rules,
        )
    }

    fn new(io: Io, number: u8, incoming: Direction, rules: &Rules) -> Self {
        Self {
            io,
            incoming,
            passing: Passing::new(number),
            pending: rules.start(incoming).into_iter().collect(),
            hangs: false,
        }
    }

    /// Sends a frame. That the connection has ended is not an error: the next receive says so.
    pub(super) async fn send(&mut self, frame: Frame, rules: &Rules) {
        let outgoing = match self.incoming {
            Direction::ToClient => Direction::ToServer,
            Direction::ToServer => Direction::ToClient,
        };
        for passed in rules.pass(&mut self.passing, outgoing, frame) {
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
    pub(super) async fn finish(&mut self, rules: &Rules, patience: Duration) {
        let mut came = VecDeque::new();
        let reading = async {
            while !matches!(came.back(), Some(Frame::Close(_) | Frame::End(_))) {
                let frame = self.receive(rules).await;
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
    pub(super) async fn receive(&mut self, rules: &Rules) -> Frame {
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
            let passed = rules.pass(&mut self.passing, self.incoming, frame);
            self.hangs = ends && passed.is_empty();
            if ends && !self.hangs {
                self.shut().await;
            }
            self.take(passed);
        }
    }

    /// Reads to the end of the connection. What comes is not kept.
    pub(super) async fn read_on(&mut self, rules: &Rules) {
        while !matches!(self.receive(rules).await, Frame::End(_)) {}
    }

    fn take(&mut self, passed: impl IntoIterator<Item = Passed>) {
        for passed in passed {
            match passed {
                Passed::On(frame) | Passed::Back(frame) => self.pending.push_back(frame),
                Passed::Closed(code) => self.closed(code),
            }
        }
    }
}

fn from_message(message: Option<Result<Message, rpc_core::net::TransportError>>) -> Frame {
    match message {
        None => Frame::End("the connection ends without a Close".to_owned()),
        Some(Err(error)) => Frame::End(error.to_string()),
        Some(Ok(message)) => match message {
            Message::Text(text) => Frame::Text(text.as_str().to_owned()),
            Message::Binary(bytes) => Frame::Binary(bytes.to_vec()),
            Message::Ping(bytes) => Frame::Ping(bytes.to_vec()),
            Message::Pong(bytes) => Frame::Pong(bytes.to_vec()),
            Message::Close(frame) => Frame::Close(frame.map_or(1005, |frame| frame.code)),
            _ => Frame::End("a message of an unknown kind".to_owned()),
        },
    }
}

/// The request of a client, which mostly is for a WebSocket.
pub(crate) struct Request {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names are in lower case.
    pub(crate) headers: Vec<(String, String)>,
    head: Vec<u8>,
    line: BoxStream,
}

impl Request {
    /// Reads the head of a request.
    pub(crate) async fn read(mut line: BoxStream) -> io::Result<Self> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            if head.len() >= MAX_HEAD {
                return Err(io::Error::other("the head of the request is too large"));
            }
            head.push(line.read_u8().await?);
        }
        let text = String::from_utf8_lossy(&head).into_owned();
        let mut lines = text.lines();
        let mut first = lines.next().unwrap_or_default().split(' ');
        let method = first.next().unwrap_or_default().to_owned();
        let path = first.next().unwrap_or_default().to_owned();
        let headers = lines.filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.trim().to_ascii_lowercase(), value.trim().to_owned()))
        });
        let headers = headers.collect();
        Ok(Self {
            method,
            path,
            headers,
            head,
            line,
        })
    }

    /// Returns the value of a header; of several, the first.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Returns the parts that guards check; `None` if they are not valid.
    pub(crate) fn parts(&self) -> Option<http::request::Parts> {
        let mut request = http::Request::builder().uri(self.path.as_str());
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        Some(request.body(()).ok()?.into_parts().0)
    }

    /// Reads the body, whose length has to be given.
    pub(crate) async fn body(&mut self) -> io::Result<String> {
        let len = self
            .header("content-length")
            .map_or(Ok(0), str::parse::<usize>);
        let len = len.map_err(io::Error::other)?;
        if len > MAX_MESSAGE {
            return Err(io::Error::other("the body of the request is too large"));
        }
        let mut body = vec![0; len];
        self.line.read_exact(&mut body).await?;
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
        let (reads, writes) = tokio::io::split(self.line);
        let line: BoxStream = Box::new(join(Cursor::new(self.head).chain(reads), writes));
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
        let len = body.len();
        let answer = format!(
            "HTTP/1.1 {status} {reason}\r\nContent-Type: application/json\r\nContent-Length: {len}\r\n\
             Connection: close\r\n\r\n{body}"
        );
        self.line.write_all(answer.as_bytes()).await?;
        self.line.shutdown().await
    }
}

/// Returns the status of a refused upgrade; otherwise what is wrong.
pub(super) fn refusal(error: &DialError) -> Result<u16, String> {
    match error {
        DialError::Status { status, .. } => Ok(*status),
        other => Err(other.to_string()),
    }
}
