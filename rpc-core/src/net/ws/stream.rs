//! [`WsStream`]: an open WebSocket as a [`Transport`](crate::net::Transport).

use std::fmt;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_core::Stream;
use futures_sink::Sink;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, timeout};

use super::config::WsConfig;
use super::frame::{FrameError, FrameReader, FrameWriter, MAX_CONTROL, Opcode};
use super::handshake::{self, Handshake};
use super::socket::Socket;
use crate::message::{CloseFrame, Outgoing};
use crate::net::transport::{Message, TransportError};

/// Pongs that may wait for the line before reading stops: a peer that sends pings and takes no
/// answers must not fill our memory.
const MAX_UNSENT_PONGS: u32 = 32;
/// Most bytes read at once, except of a large message. They are read onto the stack, so that a
/// connection on which nothing comes holds no memory for it.
const MAX_READ: usize = 16 * 1024;
/// How often a peer that broke the rules is read before other tasks get their turn.
const READS_AT_ONCE: usize = 64;
/// When a peer that was told what it did wrong counts as quiet.
const QUIET: Duration = Duration::from_millis(200);
/// How long it then has to hang up.
const LINGER: Duration = Duration::from_secs(1);
/// How long it may go on sending.
const LONGEST_LINGER: Duration = Duration::from_secs(5);

/// However large `write_buffer` is, a burst gets no more memory than this from the start.
const LARGEST_GATHER: usize = 1024 * 1024;

/// Which side of a WebSocket this is. There is no third, so the enum is exhaustive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that asked for the upgrade; it masks what it sends.
    Client,
    /// The side that answered.
    Server,
}

/// How far the receiving side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Open,
    /// The peer's Close was handed out; our answer has still to leave.
    Answering,
    /// The peer broke the rules and was told so. What it still sends is thrown away, because to hang
    /// up with unread bytes would reset the line and could take our last words with it.
    Lingering,
    Ended,
}

/// An open WebSocket over any byte stream.
///
/// What is sent is copied once, into the write buffer, and not even that if it is large and needs
/// no mask. What comes is copied once where a small message leaves the bytes it was read with, and
/// a large one is read where it stays. While nothing is under way the connection holds no buffer.
///
/// The stream ends with `None` once the peer's Close has been handed out and answered, or when the
/// line ends without one. After an `Err` it ends as well: at once if the line failed, and if the
/// peer broke the rules as soon as it has hung up, was silent for a while, or has gone on for five
/// seconds. Until then what it sends is thrown away, so that it can hear why.
///
/// Sink and stream may live in two tasks, but one task for both costs fewer wake-ups.
pub struct WsStream<S = Socket> {
    socket: S,
    reader: FrameReader,
    writer: FrameWriter,
    phase: Phase,
    unsent_pongs: u32,
    close_sent: bool,
    shut_down: bool,
    max_message: usize,
    max_outgoing: usize,
    read_buffer: usize,
    write_buffer: usize,
    /// Who waits in the sink, while somebody does.
    sink_waker: Option<Waker>,
    /// Who waits in the stream for the sink's buffer to empty.
    stream_waker: Option<Waker>,
    handshake: Option<Box<Handshake>>,
    linger: Option<Box<Linger>>,
}

/// How long a peer that broke the rules is listened to.
struct Linger {
    /// The end, whatever comes.
    until: Instant,
    /// How long it may be silent.
    patience: Duration,
    timer: Pin<Box<Sleep>>,
}

impl Linger {
    fn new() -> Self {
        Self {
            until: Instant::now() + LONGEST_LINGER,
            patience: QUIET,
            timer: Box::pin(sleep(QUIET)),
        }
    }

    /// The peer has sent something; whether there is time for more.
    fn goes_on(&mut self) -> bool {
        let now = Instant::now();
        self.timer
            .as_mut()
            .reset(self.until.min(now + self.patience));
        now < self.until
    }
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
        Self::new(stream, &read_already, role, config, None)
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
    pub async fn accept(mut stream: S, config: &WsConfig) -> Result<Self, TransportError> {
        let accepting = handshake::accept(&mut stream, config.subprotocols());
        let (handshake, read_already) = timeout(config.connect_timeout, accepting)
            .await
            .unwrap_or_else(|_| Err(TransportError::Io(io::ErrorKind::TimedOut.into())))?;
        Ok(Self::new(
            stream,
            &read_already,
            Role::Server,
            config,
            handshake,
        ))
    }

    pub(super) fn new(
        socket: S,
        read_already: &[u8],
        role: Role,
        config: &WsConfig,
        handshake: Option<Handshake>,
    ) -> Self {
        let mut reader = FrameReader::new(role, config.max_message);
        reader.push(read_already);
        Self {
            socket,
            reader,
            writer: FrameWriter::new(role, config.write_buffer.min(LARGEST_GATHER)),
            phase: Phase::Open,
            unsent_pongs: 0,
            close_sent: false,
            shut_down: false,
            max_message: config.max_message,
            max_outgoing: config.max_outgoing,
            read_buffer: config.read_buffer.clamp(1, MAX_READ),
            write_buffer: config.write_buffer,
            sink_waker: None,
            stream_waker: None,
            handshake: handshake.map(Box::new),
            linger: None,
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
    pub const fn get_ref(&self) -> &S {
        &self.socket
    }

    /// Reads once; 0 bytes are the end of the line.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.reader.missing() > self.read_buffer {
            return pin!(self.socket.read_buf(&mut self.reader.room())).poll(cx);
        }
        let mut memory = [MaybeUninit::uninit(); MAX_READ];
        let memory = memory.get_mut(..self.read_buffer).unwrap_or_default();
        let mut read = ReadBuf::uninit(memory);
        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut read))?;
        if self.phase == Phase::Open {
            self.reader.push(read.filled());
        }
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Writes until at most `rest` bytes wait.
    fn poll_write(&mut self, cx: &mut Context<'_>, rest: usize) -> Poll<io::Result<()>> {
        while self.writer.len() > rest {
            let [head, tail] = self.writer.pieces();
            let socket = Pin::new(&mut self.socket);
            let n = if tail.is_empty() {
                ready!(socket.poll_write(cx, head))?
            } else {
                let pieces = [IoSlice::new(head), IoSlice::new(tail)];
                ready!(socket.poll_write_vectored(cx, &pieces))?
            };
            if n == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.writer.advance(n);
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write_all(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write(cx, 0))?;
        self.unsent_pongs = 0;
        Pin::new(&mut self.socket).poll_flush(cx)
    }

    /// Flushes on behalf of the receiving side. Registering for it takes the sink's place in the
    /// write waker, so a sink that waits is woken to register again.
    fn poll_flush_answers(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.poll_write_all(cx).is_ready() {
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

    /// What the sink is told after it has tried to write.
    fn sink_polled(
        &mut self,
        cx: &Context<'_>,
        polled: Poll<io::Result<()>>,
    ) -> Poll<Result<(), TransportError>> {
        if polled.is_pending() {
            remember(&mut self.sink_waker, cx);
        } else if let Some(waker) = self
            .stream_waker
            .take_if(|waker| !waker.will_wake(cx.waker()))
        {
            waker.wake();
        }
        polled.map_err(TransportError::Io)
    }

    /// Does what a message asks of the transport itself.
    fn answer(&mut self, cx: &mut Context<'_>, message: &Message) -> Result<(), TransportError> {
        match message {
            Message::Ping(payload) if !self.close_sent => {
                self.writer.push(Opcode::Pong, payload.clone())?;
                self.unsent_pongs = self.unsent_pongs.saturating_add(1);
            }
            Message::Close(frame) => {
                self.phase = Phase::Answering;
                if !self.close_sent {
                    self.close_sent = true;
                    self.writer.push_close(frame.clone())?;
                }
            }
            _ => return Ok(()),
        }
        let _ = self.poll_flush_answers(cx);
        Ok(())
    }

    /// Gives the connection up, and says why as far as the line takes it.
    fn fail(&mut self, cx: &mut Context<'_>, error: FrameError) -> TransportError {
        self.phase = Phase::Lingering;
        self.reader.clear();
        if !self.close_sent {
            self.close_sent = true;
            let close = CloseFrame::new(error.close_code(), "");
            if self.writer.push_close(Some(close)).is_ok() {
                let _ = self.poll_flush_answers(cx);
            }
        }
        match error {
            FrameError::Protocol(why) | FrameError::NotUtf8(why) => {
                TransportError::Protocol(why.to_owned())
            }
            FrameError::TooLarge => TransportError::TooLarge {
                max: self.max_message,
            },
        }
    }

    /// Throws away what the peer sends until it is quiet, then ends the line's sending side, and
    /// waits for the peer to hang up. Not the other way round: some libraries that are told of the
    /// end of a line while they send never look at what came before it.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let is_told = self.poll_flush_answers(cx).is_ready();
        for _ in 0..READS_AT_ONCE {
            let read = self.poll_read(cx);
            let linger = self.linger.get_or_insert_with(|| Box::new(Linger::new()));
            match read {
                Poll::Ready(Ok(1..)) if linger.goes_on() => {}
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    ready!(linger.timer.as_mut().poll(cx));
                    if self.shut_down || !is_told {
                        return Poll::Ready(());
                    }
                    self.shut_down = true;
                    linger.patience = LINGER;
                    linger.goes_on();
                    let _ = Pin::new(&mut self.socket).poll_shutdown(cx);
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Whether a message of so many bytes may be sent now.
    fn check(&self, opcode: Opcode, len: usize) -> Result<(), TransportError> {
        // One message more than a sink that reports itself ready would take.
        let most = self.write_buffer.saturating_add(self.max_outgoing);
        if self.close_sent || self.phase != Phase::Open {
            Err(TransportError::Closed)
        } else if opcode == Opcode::Ping && len > MAX_CONTROL {
            Err(refused("the payload of a ping is longer than 125 bytes"))
        } else if opcode != Opcode::Ping && len > self.max_outgoing {
            Err(refused("the message is larger than `max_outgoing`"))
        } else if self.writer.len() > most {
            Err(refused("a frame was sent before the sink was ready"))
        } else {
            Ok(())
        }
    }

    fn start_close(&mut self, frame: CloseFrame) -> Result<(), TransportError> {
        if self.close_sent {
            return Ok(());
        }
        if self.phase != Phase::Open {
            return Err(TransportError::Closed);
        }
        self.close_sent = true;
        Ok(self.writer.push_close(Some(frame))?)
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
            Phase::Lingering => {
                ready!(this.poll_linger(cx));
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
        let failed = loop {
            match this.reader.next_message() {
                Ok(Some(message)) => match this.answer(cx, &message) {
                    Ok(()) => return Poll::Ready(Some(Ok(message))),
                    Err(error) => break error,
                },
                Ok(None) => {}
                Err(error) => return Poll::Ready(Some(Err(this.fail(cx, error)))),
            }
            match ready!(this.poll_read(cx)) {
                Ok(0) => {
                    this.phase = Phase::Ended;
                    return Poll::Ready(None);
                }
                Ok(_) => {}
                Err(error) => break TransportError::Io(error),
            }
        };
        this.phase = Phase::Ended;
        Poll::Ready(Some(Err(failed)))
    }
}

impl<S> Sink<Outgoing> for WsStream<S>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Error = TransportError;

    /// Pending while more than one write buffer is stuck.
    fn poll_ready(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let this = self.get_mut();
        let polled = this.poll_write(cx, this.write_buffer);
        this.sink_polled(cx, polled)
    }

    fn start_send(self: Pin<&mut Self>, item: Outgoing) -> Result<(), TransportError> {
        let this = self.get_mut();
        let (opcode, payload) = match item {
            Outgoing::Text(text) => (Opcode::Text, text.into_bytes()),
            Outgoing::Binary(bytes) => (Opcode::Binary, bytes),
            Outgoing::Ping(payload) => (Opcode::Ping, payload),
            Outgoing::Close(frame) => return this.start_close(frame),
            Outgoing::Abort => return Err(TransportError::is_no_frame()),
        };
        this.check(opcode, payload.len())?;
        Ok(this.writer.push(opcode, payload)?)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        let this = self.get_mut();
        let polled = this.poll_write_all(cx);
        this.sink_polled(cx, polled)
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
        let shut = ready!(Pin::new(&mut this.socket).poll_shutdown(cx));
        this.shut_down = true;
        match shut {
            Err(error) if error.kind() != io::ErrorKind::NotConnected => {
                Poll::Ready(Err(TransportError::Io(error)))
            }
            _ => Poll::Ready(Ok(())),
        }
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

/// The caller's own mistake; nothing was sent.
fn refused(why: &'static str) -> TransportError {
    TransportError::Other(why.into())
}
