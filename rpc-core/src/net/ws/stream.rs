//! [`WsStream`]: an open WebSocket as a [`Transport`](crate::net::Transport).

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;
use http::HeaderMap;
use http::header::{HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::ProtocolError;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::frame::coding::{CloseCode, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::frame::{CloseFrame as RawClose, Frame};
use tokio_tungstenite::tungstenite::{self, Error as WsError, Message as RawMessage};

use super::config::WsConfig;
use super::socket::Socket;
use crate::message::{CloseFrame, Outgoing, Text};
use crate::net::transport::{Message, TransportError};

/// Pongs that may wait for the line before reading stops: a peer that sends pings and takes no
/// answers must not fill our memory.
const MAX_UNSENT_PONGS: u32 = 32;

/// Which side of a WebSocket this is. There is no third, so the enum is exhaustive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that asked for the upgrade; it masks what it sends.
    Client,
    /// The side that answered.
    Server,
}

/// What the opening handshake agreed on.
#[derive(Clone)]
pub struct Handshake {
    subprotocol: Option<String>,
    headers: HeaderMap,
}

impl Handshake {
    pub(crate) const fn new(subprotocol: Option<String>, headers: HeaderMap) -> Self {
        Self {
            subprotocol,
            headers,
        }
    }

    /// The selected subprotocol.
    #[must_use]
    pub fn subprotocol(&self) -> Option<&str> {
        self.subprotocol.as_deref()
    }

    /// The headers of the server's answer; empty on the server's side.
    #[must_use]
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }
}

/// Prints no values: a subprotocol may be a token, and headers may set cookies.
impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Handshake")
            .field("has_subprotocol", &self.subprotocol.is_some())
            .field("headers", &self.headers.len())
            .finish()
    }
}

/// How far the receiving side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// The peer's Close was handed out; our answer has still to leave.
    Answering,
    Ended,
}

/// An open WebSocket over any byte stream.
///
/// Text passes in both directions without being copied into new memory (what is sent is copied
/// once, into the write buffer). The stream ends with `None` once the peer's Close has been handed
/// out and answered, or when the line ends without one. After an `Err` it ends as well.
///
/// Sink and stream may live in two tasks, but one task for both costs fewer wake-ups.
pub struct WsStream<S = Socket> {
    inner: WebSocketStream<S>,
    /// A frame that came while the write buffer was full.
    parked: Option<RawMessage>,
    phase: Phase,
    unsent_pongs: u32,
    close_sent: bool,
    shut_down: bool,
    max_message: usize,
    max_outgoing: usize,
    /// Who waits in the sink, while somebody does.
    sink_waker: Option<Waker>,
    /// Who waits in the stream for the sink's buffer to empty.
    stream_waker: Option<Waker>,
    handshake: Option<Box<Handshake>>,
}

impl<S> WsStream<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    /// Takes a connection whose upgrade is done, for example by an HTTP server. `read_already` is
    /// what was read past the request.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn from_upgraded(
        stream: S,
        read_already: Bytes,
        role: Role,
        config: &WsConfig,
    ) -> Self {
        let role = match role {
            Role::Client => tungstenite::protocol::Role::Client,
            Role::Server => tungstenite::protocol::Role::Server,
        };
        let raw = Some(config.to_tungstenite());
        let inner = if read_already.is_empty() {
            WebSocketStream::from_raw_socket(stream, role, raw).await
        } else {
            WebSocketStream::from_partially_read(stream, read_already.into(), role, raw).await
        };
        Self::new(inner, config, None)
    }

    /// Answers the upgrade request of a client on a connection that speaks nothing but WebSocket.
    /// A server that also answers plain HTTP, checks origins and bounds its connections is in
    /// `net::server`.
    ///
    /// # Errors
    /// [`TransportError`] if no valid request came within
    /// [`connect_timeout`](WsConfig::connect_timeout). The connection is closed then.
    ///
    /// # Cancel safety
    /// Dropping the future closes the connection.
    pub async fn accept(stream: S, config: &WsConfig) -> Result<Self, TransportError> {
        let mut selected = None;
        let offered = config.subprotocols();
        // The shape of the refusal is tungstenite's; this callback refuses nothing.
        #[allow(clippy::result_large_err)]
        let choose = |request: &Request, mut response: Response| -> Result<_, ErrorResponse> {
            selected = select_subprotocol(request.headers(), offered);
            if let Some(value) = selected
                .as_deref()
                .and_then(|name| HeaderValue::from_str(name).ok())
            {
                response.headers_mut().insert(SEC_WEBSOCKET_PROTOCOL, value);
            }
            Ok(response)
        };
        let raw = Some(config.to_tungstenite());
        let accepting = tokio_tungstenite::accept_hdr_async_with_config(stream, choose, raw);
        let inner = match timeout(config.connect_timeout, accepting).await {
            Ok(Ok(inner)) => inner,
            Ok(Err(WsError::Io(error))) => return Err(TransportError::Io(error)),
            Ok(Err(error)) => return Err(TransportError::Protocol(error.to_string())),
            Err(_) => return Err(TransportError::Io(io::ErrorKind::TimedOut.into())),
        };
        Ok(Self::new(
            inner,
            config,
            selected.map(|name| Handshake::new(Some(name), HeaderMap::new())),
        ))
    }

    pub(super) fn new(
        inner: WebSocketStream<S>,
        config: &WsConfig,
        handshake: Option<Handshake>,
    ) -> Self {
        Self {
            inner,
            parked: None,
            phase: Phase::Open,
            unsent_pongs: 0,
            close_sent: false,
            shut_down: false,
            max_message: config.max_message,
            max_outgoing: config.max_outgoing,
            sink_waker: None,
            stream_waker: None,
            handshake: handshake.map(Box::new),
        }
    }

    /// Remembers what the handshake agreed on.
    #[cfg(feature = "server")]
    pub(crate) fn with_handshake(mut self, handshake: Handshake) -> Self {
        self.handshake = Some(Box::new(handshake));
        self
    }

    /// What the opening handshake agreed on; `None` if nothing beyond the upgrade itself.
    #[must_use]
    pub fn handshake(&self) -> Option<&Handshake> {
        self.handshake.as_deref()
    }

    /// The byte stream underneath.
    #[must_use]
    pub fn get_ref(&self) -> &S {
        self.inner.get_ref()
    }

    /// Flushes on behalf of the receiving side. Registering for it takes the sink's place in the
    /// write waker, so a sink that waits is woken to register again.
    fn poll_flush_answers(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        if polled.is_ready() {
            // A failed line reports itself with the next read.
            self.unsent_pongs = 0;
            return Poll::Ready(());
        }
        if let Some(waker) = self
            .sink_waker
            .take_if(|waker| !waker.will_wake(cx.waker()))
        {
            waker.wake();
        }
        remember(&mut self.stream_waker, cx);
        Poll::Pending
    }

    /// Says why the connection is given up, as far as the line takes it.
    fn fail(&mut self, code: CloseCode) {
        if !self.close_sent {
            self.close_sent = true;
            let close = RawMessage::Close(Some(RawClose {
                code,
                reason: "".into(),
            }));
            let _ = Pin::new(&mut self.inner).start_send(close);
        }
    }

    /// Maps a failed read; `None` where the line has simply ended.
    fn read_error(&mut self, error: WsError) -> Option<TransportError> {
        match error {
            WsError::ConnectionClosed
            | WsError::AlreadyClosed
            | WsError::Protocol(ProtocolError::ResetWithoutClosingHandshake) => None,
            WsError::Io(error) => Some(TransportError::Io(error)),
            WsError::Capacity(_) => {
                self.fail(CloseCode::Size);
                Some(TransportError::TooLarge {
                    max: self.max_message,
                })
            }
            WsError::Utf8(_) => {
                self.fail(CloseCode::Invalid);
                Some(TransportError::Protocol(
                    "a text message is not UTF-8".to_owned(),
                ))
            }
            WsError::Protocol(error) => {
                self.fail(CloseCode::Protocol);
                Some(TransportError::Protocol(error.to_string()))
            }
            other => Some(TransportError::Other(Box::new(other))),
        }
    }

    fn write(&mut self, message: RawMessage) -> Result<(), TransportError> {
        match Pin::new(&mut self.inner).start_send(message) {
            Ok(()) => Ok(()),
            Err(WsError::WriteBufferFull(message)) => {
                self.parked = Some(*message);
                Ok(())
            }
            Err(error) => Err(write_error(error)),
        }
    }

    /// The sink's own flush, with bookkeeping for the other side.
    fn poll_inner_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let polled = Pin::new(&mut self.inner).poll_flush(cx);
        self.after_sink_poll(cx, polled.is_ready());
        polled.map_err(write_error)
    }

    fn after_sink_poll(&mut self, cx: &Context<'_>, is_ready: bool) {
        if is_ready {
            if let Some(waker) = self
                .stream_waker
                .take_if(|waker| !waker.will_wake(cx.waker()))
            {
                waker.wake();
            }
        } else {
            remember(&mut self.sink_waker, cx);
        }
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let polled = Pin::new(&mut self.inner).poll_ready(cx);
        self.after_sink_poll(cx, polled.is_ready());
        ready!(polled).map_err(write_error)?;
        if self.parked.is_some() {
            ready!(self.poll_inner_flush(cx))?;
            if let Some(message) = self.parked.take() {
                self.write(message)?;
            }
            if self.parked.is_some() {
                // Cannot happen within `max_outgoing`; it must not spin either.
                self.parked = None;
                return Poll::Ready(Err(refused("the message does not fit the write buffer")));
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<S> Stream for WsStream<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Item = Result<Message, TransportError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        match this.phase {
            Phase::Ended => return Poll::Ready(None),
            Phase::Answering => {
                ready!(this.poll_flush_answers(cx));
                this.phase = Phase::Ended;
                return Poll::Ready(None);
            }
            Phase::Open => {}
        }
        if this.unsent_pongs > 0
            && this.poll_flush_answers(cx).is_pending()
            && this.unsent_pongs >= MAX_UNSENT_PONGS
        {
            return Poll::Pending;
        }
        loop {
            let message = match ready!(Pin::new(&mut this.inner).poll_next(cx)) {
                None => {
                    this.phase = Phase::Ended;
                    return Poll::Ready(None);
                }
                Some(Err(error)) => {
                    this.phase = Phase::Ended;
                    return Poll::Ready(this.read_error(error).map(Err));
                }
                Some(Ok(RawMessage::Frame(_))) => continue,
                Some(Ok(RawMessage::Text(text))) => Message::Text(Text::from_checked(text.into())),
                Some(Ok(RawMessage::Binary(bytes))) => Message::Binary(bytes),
                Some(Ok(RawMessage::Pong(bytes))) => Message::Pong(bytes),
                Some(Ok(RawMessage::Ping(bytes))) => {
                    this.unsent_pongs = this.unsent_pongs.saturating_add(1);
                    let _ = this.poll_flush_answers(cx);
                    Message::Ping(bytes)
                }
                Some(Ok(RawMessage::Close(frame))) => {
                    this.phase = Phase::Answering;
                    this.close_sent = true;
                    let _ = this.poll_flush_answers(cx);
                    Message::Close(
                        frame
                            .map(|frame| CloseFrame::new(frame.code.into(), frame.reason.as_str())),
                    )
                }
            };
            return Poll::Ready(Some(Ok(message)));
        }
    }
}

impl<S> Sink<Outgoing> for WsStream<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Error = TransportError;

    /// Pending while more than one write buffer is stuck.
    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.get_mut().poll_writable(cx)
    }

    fn start_send(self: Pin<&mut Self>, item: Outgoing) -> Result<(), TransportError> {
        let this = self.get_mut();
        if this.parked.is_some() {
            return Err(refused("a frame was sent before the sink was ready"));
        }
        let message = match item {
            // As a raw frame, the text is neither copied nor checked a second time.
            Outgoing::Text(text) => this.data_frame(text.into_bytes(), Data::Text)?,
            Outgoing::Binary(bytes) => this.data_frame(bytes, Data::Binary)?,
            Outgoing::Ping(payload) if payload.len() > 125 => {
                return Err(refused("the payload of a ping is longer than 125 bytes"));
            }
            Outgoing::Ping(payload) => RawMessage::Ping(payload),
            Outgoing::Close(frame) => {
                if this.close_sent {
                    return Ok(());
                }
                this.close_sent = true;
                RawMessage::Close(raw_close(frame))
            }
        };
        this.write(message)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let this = self.get_mut();
        if this.parked.is_some() {
            ready!(this.poll_writable(cx))?;
        }
        ready!(this.poll_inner_flush(cx))?;
        this.unsent_pongs = 0;
        Poll::Ready(Ok(()))
    }

    /// Sends a Close (1000) unless one was sent, flushes, and shuts the line's sending side down.
    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let this = self.get_mut();
        if this.shut_down {
            return Poll::Ready(Ok(()));
        }
        if !this.close_sent && this.phase == Phase::Open {
            ready!(this.poll_writable(cx))?;
            this.close_sent = true;
            let close = RawClose {
                code: CloseCode::Normal,
                reason: "".into(),
            };
            match this.write(RawMessage::Close(Some(close))) {
                Ok(()) | Err(TransportError::Closed) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        match ready!(Pin::new(&mut *this).poll_flush(cx)) {
            Ok(()) | Err(TransportError::Closed) => {}
            Err(error) => return Poll::Ready(Err(error)),
        }
        let shut = ready!(Pin::new(this.inner.get_mut()).poll_shutdown(cx));
        this.shut_down = true;
        match shut {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => {
                Poll::Ready(Err(TransportError::Io(error)))
            }
            _ => Poll::Ready(Ok(())),
        }
    }
}

impl<S> WsStream<S> {
    fn data_frame(&self, payload: Bytes, kind: Data) -> Result<RawMessage, TransportError> {
        if payload.len() > self.max_outgoing {
            return Err(refused("the message is larger than `max_outgoing`"));
        }
        Ok(RawMessage::Frame(Frame::message(
            payload,
            OpCode::Data(kind),
            true,
        )))
    }
}

impl<S> fmt::Debug for WsStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WsStream")
            .field("phase", &self.phase)
            .field("close_sent", &self.close_sent)
            .field("handshake", &self.handshake)
            .finish_non_exhaustive()
    }
}

fn remember(slot: &mut Option<Waker>, cx: &Context<'_>) {
    match slot {
        Some(waker) => waker.clone_from(cx.waker()),
        None => *slot = Some(cx.waker().clone()),
    }
}

/// Codes that must not appear on the wire (RFC 6455, section 7.4) leave as a Close without one.
fn raw_close(frame: CloseFrame) -> Option<RawClose> {
    let code = CloseCode::from(frame.code);
    let frame = CloseFrame::new(frame.code, frame.reason);
    code.is_allowed().then(|| RawClose {
        code,
        reason: frame.reason.into(),
    })
}

fn write_error(error: WsError) -> TransportError {
    match error {
        WsError::Io(error) => TransportError::Io(error),
        WsError::ConnectionClosed
        | WsError::AlreadyClosed
        | WsError::Protocol(ProtocolError::SendAfterClosing) => TransportError::Closed,
        other => TransportError::Other(Box::new(other)),
    }
}

/// The caller's own mistake; nothing was sent.
fn refused(why: &'static str) -> TransportError {
    TransportError::Other(why.into())
}

/// The first of `ours` that the client offers.
pub(crate) fn select_subprotocol(headers: &HeaderMap, ours: &[String]) -> Option<String> {
    let offered = |name: &str| {
        headers
            .get_all(SEC_WEBSOCKET_PROTOCOL)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','))
            .any(|offer| offer.trim() == name)
    };
    ours.iter().find(|name| offered(name)).cloned()
}
