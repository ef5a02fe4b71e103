//! [`WsStream`]: an open WebSocket as a [`Transport`](crate::net::Transport).

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::config::WsConfig;
use super::frames::{Failure, FrameStream, Halves, MAX_CONTROL, WRITE_BUFFER, is_close_code};
use super::handshake;
use super::linger::Linger;
#[cfg(feature = "server")]
use super::receive::Receive;
use super::socket::Socket;
use crate::message::{CloseFrame, Outgoing};
use crate::net::transport::{Message, TransportError};

/// Most pongs that may wait to be sent before reading stops: a peer that sends pings and takes no
/// pongs must not fill the memory.
const MAX_UNSENT_PONGS: u32 = 32;
/// A longer message leaves in several frames, so that its copy for the socket stays small.
const MAX_FRAME: usize = 64 * 1024;

/// The state of the receiving side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// The peer's Close was reported; our answer has yet to leave.
    Answering,
    /// The peer violated the protocol and got the reason. What it still sends is discarded, because
    /// closing with unread bytes would reset the connection and could lose our last frames.
    Lingering,
    Ended,
}

/// An open WebSocket over any byte stream as a [`Transport`](crate::net::Transport).
///
/// The stream ends with `None` once the peer's Close has been reported and answered, or when the
/// connection ends without one. After an `Err` it ends as well: at once if the connection failed;
/// if the peer violated the protocol, as soon as it has closed the connection, was silent for a
/// while, or has gone on for five seconds. Until then its data is discarded, so that it can read
/// the reason.
///
/// A message of more than 64 KiB leaves in several frames. What the sink has taken leaves whole,
/// also if the peer's Close comes meanwhile. Sink and stream may be used in two tasks, but one task
/// for both costs fewer wake-ups.
pub struct WsStream<S = Socket> {
    /// Boxed, because a WebSocket is moved a lot until it is driven.
    inner: Box<FrameStream<S>>,
    phase: Phase,
    /// Whether the last look found nothing to read.
    is_idle: bool,
    unsent_pongs: u32,
    close_sent: bool,
    shut_down: bool,
    max_outgoing: usize,
    /// Bytes sent since the sink was last seen ready.
    unasked: usize,
    /// The rest of a large message.
    rest: Bytes,
    halves: Arc<Halves>,
    /// Wakes both halves.
    waker: Waker,
    subprotocol: Option<Box<str>>,
    linger: Option<Box<Linger>>,
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> WsStream<S> {
    /// Takes a connection whose upgrade is done, for example by an HTTP server. `read_already`
    /// holds the bytes that were read past the request.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn from_upgraded(
        stream: S,
        read_already: Bytes,
        role: Role,
        config: &WsConfig,
    ) -> Self {
        let halves = Arc::<Halves>::default();
        let line = FrameStream::new(stream, &read_already, role, config.max_message);
        Self {
            inner: Box::new(line),
            phase: Phase::Open,
            is_idle: false,
            unsent_pongs: 0,
            close_sent: false,
            shut_down: false,
            max_outgoing: config.max_outgoing,
            unasked: 0,
            rest: Bytes::new(),
            waker: Arc::clone(&halves).into(),
            halves,
            subprotocol: None,
            linger: None,
        }
    }

    /// Answers the upgrade request of a client on a connection that is used for WebSocket only. For
    /// a server that also answers plain HTTP, checks origins and limits its connections, see
    /// `net::server`.
    ///
    /// # Errors
    /// [`TransportError`] if no valid request came within
    /// [`connect_timeout`](WsConfig::connect_timeout). The connection is closed then.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn accept(mut stream: S, config: &WsConfig) -> Result<Self, TransportError> {
        let accepting = handshake::accept(&mut stream, &config.subprotocols);
        let (subprotocol, read_already) = timeout(config.connect_timeout, accepting)
            .await
            .unwrap_or_else(|_| Err(TransportError::Io(io::ErrorKind::TimedOut.into())))?;
        let this = Self::from_upgraded(stream, read_already.into(), Role::Server, config).await;
        Ok(this.with_subprotocol(subprotocol))
    }

    /// Counts what is received at the server.
    #[cfg(feature = "server")]
    pub(crate) fn counting(mut self, receive: Receive) -> Self {
        self.inner.count(receive);
        self
    }

    pub(super) fn with_subprotocol(mut self, name: Option<String>) -> Self {
        self.subprotocol = name.map(String::into_boxed_str);
        self
    }

    /// Returns the subprotocol that the server has selected; on its side, only that of
    /// [`accept`](Self::accept).
    #[must_use]
    pub fn subprotocol(&self) -> Option<&str> {
        self.subprotocol.as_deref()
    }

    /// Sends the rest of a large message, and waits until the sink accepts more.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        loop {
            ready!(self.inner.poll_ready(cx))?;
            if self.rest.is_empty() {
                self.unasked = 0;
                return Poll::Ready(Ok(()));
            }
            self.send_rest(Data::Continue)?;
        }
    }

    /// Sends one frame of the rest of a message.
    fn send_rest(&mut self, opcode: Data) -> Result<(), TransportError> {
        let payload = self.rest.split_to(self.rest.len().min(MAX_FRAME));
        let is_last = self.rest.is_empty();
        if is_last {
            self.rest = Bytes::new();
        }
        Ok(self.send(OpCode::Data(opcode), is_last, &payload)?)
    }

    /// Sends the whole rest, for a caller that did not wait for it.
    fn send_all_rest(&mut self) -> Result<(), TransportError> {
        while !self.rest.is_empty() {
            self.send_rest(Data::Continue)?;
        }
        Ok(())
    }

    fn send(&mut self, opcode: OpCode, is_final: bool, payload: &[u8]) -> io::Result<()> {
        let mut cx = Context::from_waker(&self.waker);
        self.inner.start_send(&mut cx, opcode, is_final, payload)
    }

    fn send_control(&mut self, control: Control, payload: &[u8]) -> io::Result<()> {
        self.send(OpCode::Control(control), true, payload)
    }

    fn send_close(&mut self, close: Option<&CloseFrame>) -> io::Result<()> {
        self.close_sent = true;
        let payload = close.map(|it| [&it.code.to_be_bytes(), it.reason.as_bytes()].concat());
        self.send_control(Control::Close, &payload.unwrap_or_default())
    }

    /// Polls for the sink with the waker of both halves, since either may have to wait for what the other
    /// began.
    #[inline]
    fn poll_sink<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: fn(&mut Self, &mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let waker = self.waker.clone();
        let mut both = Context::from_waker(&waker);
        if let done @ Poll::Ready(_) = poll(self, &mut both) {
            return done;
        }
        // Only now, because it seldom waits; and again, because that may be over by now.
        self.halves.sink.register(cx.waker());
        poll(self, &mut both)
    }

    fn poll_write_all(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        // Once the peer has said Close, nothing follows but what the sink has taken, and the answer.
        let owes_answer = self.phase == Phase::Answering && !self.close_sent;
        if self.phase == Phase::Open || owes_answer {
            ready!(self.poll_rest(cx))?;
        }
        if owes_answer {
            let close = self.inner.close.clone();
            self.send_close(close.as_ref())?;
        }
        ready!(self.inner.poll_flush(cx))?;
        self.unasked = 0;
        self.unsent_pongs = 0;
        Poll::Ready(Ok(()))
    }

    /// Flushes on behalf of the receiving side.
    fn poll_flush_answers(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // A failed line reports itself with the next read.
        self.poll_write_all(cx).map(|_| self.unsent_pongs = 0)
    }

    /// Handles the part of a message that concerns the transport itself.
    fn take(&mut self, cx: &mut Context<'_>, message: &Message) -> Result<(), TransportError> {
        match message {
            Message::Close(_) => {
                self.phase = Phase::Answering;
                let _ = self.poll_flush_answers(cx);
            }
            Message::Ping(payload) if !self.close_sent => {
                self.send_control(Control::Pong, payload)?;
                self.unsent_pongs = self.unsent_pongs.saturating_add(1);
                let _ = self.poll_flush_answers(cx);
            }
            _ => {}
        }
        Ok(())
    }

    /// Closes the connection, and sends the peer the reason if possible.
    fn fail(&mut self, cx: &mut Context<'_>, failure: Failure) -> TransportError {
        let Some(code) = failure.code else {
            self.phase = Phase::Ended;
            return failure.error;
        };
        self.phase = Phase::Lingering;
        self.rest = Bytes::new();
        if !self.close_sent {
            let _ = self.send_close(Some(&CloseFrame::new(code, "")));
        }
        let _ = self.poll_flush_answers(cx);
        failure.error
    }

    #[inline]
    fn poll_message(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Message, TransportError>>> {
        match self.phase {
            Phase::Ended => return Poll::Ready(None),
            Phase::Answering => {
                ready!(self.poll_flush_answers(cx));
                self.phase = Phase::Ended;
                return Poll::Ready(None);
            }
            Phase::Lingering => {
                ready!(self.poll_linger(cx));
                self.phase = Phase::Ended;
                return Poll::Ready(None);
            }
            Phase::Open => {}
        }
        if self.unsent_pongs > 0
            && self.poll_flush_answers(cx).is_pending()
            && self.unsent_pongs >= MAX_UNSENT_PONGS
        {
            return Poll::Pending;
        }
        let next = self.inner.poll_next(cx);
        self.is_idle = next.is_pending();
        Poll::Ready(match ready!(next) {
            Some(Ok(message)) => Some(self.take(cx, &message).map(|()| message)),
            None => {
                self.phase = Phase::Ended;
                None
            }
            Some(Err(failure)) => Some(Err(self.fail(cx, failure))),
        })
    }

    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let is_flushed = self.poll_flush_answers(cx).is_ready();
        let linger = self.linger.get_or_insert_with(|| Box::new(Linger::new()));
        linger.poll(cx, &mut self.inner.socket, is_flushed)
    }

    /// Returns an error if a message of `len` bytes must not be sent now.
    fn check(&self, is_ping: bool, len: usize) -> Result<(), TransportError> {
        // One message more than a sink that reports itself ready would take.
        let most = WRITE_BUFFER.saturating_add(self.max_outgoing);
        if self.close_sent || self.phase != Phase::Open {
            Err(TransportError::Closed)
        } else if is_ping && len > MAX_CONTROL {
            Err(refused("the payload of a ping is longer than 125 bytes"))
        } else if !is_ping && len > self.max_outgoing {
            Err(refused("the message is larger than `max_outgoing`"))
        } else if self.unasked > most {
            Err(refused("a frame was sent before the sink was ready"))
        } else {
            Ok(())
        }
    }

    fn start_data(&mut self, opcode: Data, payload: Bytes) -> Result<(), TransportError> {
        self.check(false, payload.len())?;
        self.send_all_rest()?;
        self.unasked = self.unasked.saturating_add(payload.len());
        if payload.len() <= MAX_FRAME {
            return Ok(self.send(OpCode::Data(opcode), true, &payload)?);
        }
        self.rest = payload;
        self.send_rest(opcode)
    }

    fn start_close(&mut self, frame: CloseFrame) -> Result<(), TransportError> {
        if self.close_sent {
            return Ok(());
        }
        if self.phase != Phase::Open {
            return Err(TransportError::Closed);
        }
        self.send_all_rest()?;
        let frame = CloseFrame::new(frame.code, frame.reason);
        let is_valid = is_close_code(frame.code);
        Ok(self.send_close(Some(&frame).filter(|_| is_valid))?)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Stream for WsStream<S> {
    type Item = Result<Message, TransportError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let only_reads = this.phase == Phase::Open && this.unsent_pongs == 0;
        // Nothing has to wait for what is here.
        if only_reads && let Some(text) = this.inner.next_text() {
            return Poll::Ready(Some(text.map_err(|failure| this.fail(cx, failure))));
        }
        let is_woken = this.halves.stream.take(cx);
        if only_reads && this.is_idle && !is_woken {
            // The task was woken for something else.
            return Poll::Pending;
        }
        this.is_idle = false;
        let waker = this.waker.clone();
        this.poll_message(&mut Context::from_waker(&waker))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> Sink<Outgoing> for WsStream<S> {
    type Error = TransportError;

    /// Pending while more than one write buffer is stuck.
    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let this = self.get_mut();
        if this.rest.is_empty() && !this.inner.is_stuck {
            this.unasked = 0;
            return Poll::Ready(Ok(()));
        }
        this.poll_sink(cx, Self::poll_rest)
    }

    fn start_send(self: Pin<&mut Self>, item: Outgoing) -> Result<(), TransportError> {
        let this = self.get_mut();
        let (opcode, payload) = match item {
            Outgoing::Text(text) => (Data::Text, text.into_bytes()),
            Outgoing::Binary(bytes) => (Data::Binary, bytes),
            Outgoing::Ping(payload) => {
                this.check(true, payload.len())?;
                this.unasked = this.unasked.saturating_add(payload.len());
                return Ok(this.send_control(Control::Ping, &payload)?);
            }
            Outgoing::Close(frame) => return this.start_close(frame),
            Outgoing::Abort => return Err(TransportError::is_no_frame()),
        };
        this.start_data(opcode, payload)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.get_mut().poll_sink(cx, Self::poll_write_all)
    }

    /// Sends a Close (1000) unless one was sent, flushes, and shuts the line's sending side down.
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let this = self.get_mut();
        if this.shut_down {
            return Poll::Ready(Ok(()));
        }
        if this.phase == Phase::Open {
            this.start_close(CloseFrame::new(CloseFrame::NORMAL, ""))?;
        }
        ready!(Pin::new(&mut *this).poll_flush(cx))?;
        let shut = ready!(this.poll_sink(cx, |this, cx| {
            Pin::new(&mut this.inner.socket).poll_shutdown(cx)
        }));
        this.shut_down = true;
        match shut {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => {
                Poll::Ready(Err(TransportError::Io(error)))
            }
            _ => Poll::Ready(Ok(())),
        }
    }
}

// Not the subprotocol, which may be a token.
crate::debug::debug_fields!([S] WsStream<S>, this => {
    phase: this.phase,
    close_sent: this.close_sent,
});

/// Returns the error for a mistake of the caller; nothing was sent.
fn refused(why: &'static str) -> TransportError {
    TransportError::Other(why.into())
}
