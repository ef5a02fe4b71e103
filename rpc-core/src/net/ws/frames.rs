//! [`FrameStream`]: the frames of a WebSocket over a byte stream, read here and written by tungstenite.

use std::io::{self, Cursor, Read, Write};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, ready};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::error::{Error, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};

use super::receive::{NoRoom, Receive};
use crate::message::{CloseFrame, Text};
use crate::net::transport::{Message, TransportError};

/// A fragment from this length on is bounded by the size of its message.
const SMALL: usize = 1024;
/// How many small fragments of a message count as nothing beside it.
const FREE_FRAGMENTS: u16 = 32;
const LONGEST_HEADER: usize = 14;
/// Most bytes that a Ping, a Pong or a Close carries (RFC 6455, section 5.5).
pub(super) const MAX_CONTROL: usize = 125;

/// Bytes that a connection holds for reading.
const READ_BUFFER: usize = 1024;
/// Bytes gathered before they are written without a flush, and the most that may wait before the sink
/// reports that it is not ready.
pub(super) const WRITE_BUFFER: usize = 32 * 1024;
/// Most bytes of a burst that is written whose buffer is kept.
const KEPT: usize = 1024;

/// Whether a peer may send this code in a Close: those of the registry that are for the wire, and
/// those of libraries and applications.
pub(super) const fn is_close_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// Wakes the tasks of both halves. A byte stream keeps one waker for each direction, and either
/// half may read and write.
#[derive(Default)]
pub(super) struct Halves {
    pub(super) stream: AtomicWaker,
    pub(super) sink: AtomicWaker,
    /// How often both were woken.
    pub(super) woken: AtomicUsize,
}

impl Wake for Halves {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.fetch_add(1, Ordering::Release);
        self.stream.wake();
        self.sink.wake();
    }
}

/// Why nothing more is read.
pub(super) struct Failure {
    /// The code of the Close for the peer; `None` if the connection is gone.
    pub(super) code: Option<u16>,
    pub(super) error: TransportError,
}

impl From<NoRoom> for Failure {
    fn from(why: NoRoom) -> Self {
        let (code, error) = match why {
            NoRoom::Ever { max } => (CloseFrame::TOO_BIG, TransportError::TooLarge { max }),
            NoRoom::Now => (CloseFrame::TRY_AGAIN, TransportError::Overloaded),
            NoRoom::Late => {
                let why = "a message was not whole in time".to_owned();
                (CloseFrame::POLICY, TransportError::Protocol(why))
            }
        };
        let code = Some(code);
        Self { code, error }
    }
}

impl From<ProtocolError> for Failure {
    fn from(why: ProtocolError) -> Self {
        let (code, error) = (
            CloseFrame::PROTOCOL_ERROR,
            TransportError::Protocol(why.to_string()),
        );
        let code = Some(code);
        Self { code, error }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let error = TransportError::Io(error);
        Self { code: None, error }
    }
}

/// The error for text that is not UTF-8, which its own error would quote.
fn not_utf8() -> Failure {
    let error = TransportError::Protocol("text is not UTF-8".to_owned());
    let code = Some(1007);
    Failure { code, error }
}

/// A frame of a message whose payload has not come as a whole.
struct Partial {
    header: FrameHeader,
    missing: usize,
    /// Where its payload begins in the message.
    begin: usize,
}

/// The frames of a WebSocket over a byte stream.
pub(super) struct FrameStream<S> {
    socket: S,
    role: Role,
    pub(super) max_message: usize,
    /// Read and not decoded.
    buffer: BytesMut,
    partial: Option<Partial>,
    /// What has come of a message that is not whole.
    message: BytesMut,
    /// The kind of a message of which some frames have come.
    kind: Option<Data>,
    /// How much of the message is checked to be text.
    checked: usize,
    /// Small fragments of the current message.
    fragments: u16,
    receive: Option<Box<Receive>>,
    close: Option<CloseFrame>,
    has_ended: bool,
    /// Writes.
    context: WebSocketContext,
    /// Whether the last write found the socket full.
    pub(super) is_stuck: bool,
    /// Bytes given to tungstenite since all of them had left.
    unsent: usize,
    /// Whether tungstenite's buffer may have grown.
    is_large: bool,
}

/// How tungstenite writes. It reads nothing.
fn writing() -> WebSocketConfig {
    let config = WebSocketConfig::default().read_buffer_size(0);
    config.write_buffer_size(WRITE_BUFFER)
}

impl<S: AsyncRead + AsyncWrite + Unpin> FrameStream<S> {
    pub(super) fn new(socket: S, read_already: &Bytes, role: Role, max_message: usize) -> Self {
        Self {
            socket,
            role,
            max_message,
            buffer: BytesMut::from(&read_already[..]),
            partial: None,
            message: BytesMut::new(),
            kind: None,
            checked: 0,
            fragments: 0,
            receive: None,
            close: None,
            has_ended: false,
            context: WebSocketContext::new(role, Some(writing())),
            is_stuck: false,
            unsent: 0,
            is_large: false,
        }
    }

    /// Counts what is received at the server.
    #[cfg(feature = "server")]
    pub(super) fn count(&mut self, receive: Receive) {
        self.receive = Some(Box::new(receive));
    }

    /// Returns the contents of the Close that was received.
    pub(super) const fn close(&self) -> Option<&CloseFrame> {
        self.close.as_ref()
    }

    /// Returns the next message, a small fragment that is one of many, or the Close. Behind it and behind an
    /// error nothing is read.
    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Message, Failure>>> {
        if self.has_ended {
            return Poll::Ready(None);
        }
        let next = ready!(self.poll_message(cx)).transpose();
        if let Some(Ok(Message::Close(close))) = &next {
            self.close.clone_from(close);
        }
        if matches!(next, None | Some(Err(_) | Ok(Message::Close(_)))) {
            self.has_ended = true;
            (self.message, self.receive) = (BytesMut::new(), None);
        }
        Poll::Ready(next)
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Message>, Failure>> {
        loop {
            if let Some(message) = ready!(self.poll_decode(cx))? {
                return Poll::Ready(Ok(Some(message)));
            }
            match self.poll_read(cx) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(None)),
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error.into())),
                Poll::Pending => {
                    if let Some(receive) = &mut self.receive {
                        ready!(receive.poll_wait(cx))?;
                    }
                    return Poll::Pending;
                }
            }
        }
    }

    /// Reads what has come: of a message straight to its place.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        match &mut self.partial {
            Some(partial) => {
                let mut room = (&mut self.message).limit(partial.missing);
                let read = ready!(pin!(self.socket.read_buf(&mut room)).poll(cx))?;
                partial.missing -= read;
                Poll::Ready(Ok(read))
            }
            None => {
                if self.buffer.capacity() - self.buffer.len() < LONGEST_HEADER {
                    self.buffer.reserve(READ_BUFFER);
                }
                pin!(self.socket.read_buf(&mut self.buffer)).poll(cx)
            }
        }
    }

    /// Decodes what was read; `None` if that is no whole frame.
    fn poll_decode(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Message>, Failure>> {
        loop {
            if let Some(partial) = self.partial.take_if(|partial| partial.missing == 0) {
                match self.end_frame(&partial) {
                    Ok(None) => continue,
                    ended => return Poll::Ready(ended),
                }
            }
            if self.partial.is_some() {
                return Poll::Ready(Ok(None));
            }
            let mut cursor = Cursor::new(&self.buffer[..]);
            let header = match FrameHeader::parse(&mut cursor) {
                Ok(header) => header,
                Err(Error::Protocol(why)) => return Poll::Ready(Err(why.into())),
                Err(error) => {
                    let error = TransportError::Other(error.into());
                    return Poll::Ready(Err(Failure { code: None, error }));
                }
            };
            let Some((header, len)) = header else {
                return Poll::Ready(Ok(None));
            };
            let begin = usize::try_from(cursor.position()).unwrap_or(LONGEST_HEADER);
            self.check(&header, len)?;
            let behind = self.buffer.len() - begin;
            let len = usize::try_from(len).unwrap_or(usize::MAX);
            match header.opcode {
                OpCode::Control(_) if behind < len => return Poll::Ready(Ok(None)),
                OpCode::Control(control) => {
                    let payload = self.take_payload(&header, begin, len);
                    return Poll::Ready(control_frame(control, payload.freeze()).map(Some));
                }
                OpCode::Data(data) if header.is_final && self.kind.is_none() && behind >= len => {
                    let payload = self.take_payload(&header, begin, len);
                    return Poll::Ready(whole(data, payload.freeze()).map(Some));
                }
                OpCode::Data(_) => {
                    let size = self.message.len().saturating_add(len);
                    if size > self.max_message {
                        let max = self.max_message;
                        return Poll::Ready(Err(NoRoom::Ever { max }.into()));
                    }
                    if let Some(receive) = &mut self.receive {
                        ready!(receive.poll_grow(cx, size))?;
                    }
                    self.buffer.advance(begin);
                    let (here, begin) = (behind.min(len), self.message.len());
                    self.message.reserve(len);
                    self.message.extend_from_slice(&self.buffer.split_to(here));
                    let missing = len - here;
                    self.partial = Some(Partial {
                        header,
                        missing,
                        begin,
                    });
                }
            }
        }
    }

    /// Checks a frame, of which only the header may have come, against the rules.
    fn check(&self, header: &FrameHeader, len: u64) -> Result<(), Failure> {
        let broken = if header.rsv1 || header.rsv2 || header.rsv3 {
            ProtocolError::NonZeroReservedBits
        } else if self.role == Role::Server && header.mask.is_none() {
            ProtocolError::UnmaskedFrameFromClient
        } else if self.role == Role::Client && header.mask.is_some() {
            ProtocolError::MaskedFrameFromServer
        } else {
            match header.opcode {
                OpCode::Control(_) if !header.is_final => ProtocolError::FragmentedControlFrame,
                OpCode::Control(_) if len > MAX_CONTROL as u64 => ProtocolError::ControlFrameTooBig,
                OpCode::Data(Data::Continue) if self.kind.is_none() => {
                    ProtocolError::UnexpectedContinueFrame
                }
                OpCode::Data(data) if data != Data::Continue && self.kind.is_some() => {
                    ProtocolError::ExpectedFragment(data)
                }
                OpCode::Data(_) if len > self.max_message as u64 => {
                    let max = self.max_message;
                    return Err(NoRoom::Ever { max }.into());
                }
                _ => return Ok(()),
            }
        };
        Err(broken.into())
    }

    /// Takes the payload of a frame that is in the buffer as a whole.
    fn take_payload(&mut self, header: &FrameHeader, begin: usize, len: usize) -> BytesMut {
        self.buffer.advance(begin);
        let mut payload = self.buffer.split_to(len);
        unmask(&mut payload, header);
        payload
    }

    /// Ends a frame of a message; returns the message with its last one.
    fn end_frame(&mut self, frame: &Partial) -> Result<Option<Message>, Failure> {
        unmask(
            self.message.get_mut(frame.begin..).unwrap_or_default(),
            &frame.header,
        );
        let OpCode::Data(opcode) = frame.header.opcode else {
            return Ok(None);
        };
        let kind = *self.kind.get_or_insert(opcode);
        if frame.header.is_final {
            (self.kind, self.checked, self.fragments) = (None, 0, 0);
            if let Some(receive) = &mut self.receive {
                receive.end();
            }
            return whole(kind, std::mem::take(&mut self.message).freeze()).map(Some);
        }
        if kind == Data::Text {
            let new = self.message.get(self.checked..).unwrap_or_default();
            self.checked += match std::str::from_utf8(new) {
                Ok(new) => new.len(),
                Err(error) if error.error_len().is_some() => return Err(not_utf8()),
                Err(error) => error.valid_up_to(),
            };
        }
        if self.message.len() - frame.begin >= SMALL {
            return Ok(None);
        }
        self.fragments = self.fragments.saturating_add(1);
        Ok((self.fragments > FREE_FRAGMENTS).then_some(Message::Fragment))
    }

    /// Waits until the socket takes what it has refused.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if self.is_stuck {
            return self.poll_write_all(cx);
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn start_send(
        &mut self,
        cx: &mut Context<'_>,
        message: tokio_tungstenite::tungstenite::Message,
    ) -> Result<(), Error> {
        self.unsent += 1 + message.len();
        // What the socket refuses is kept.
        let written = self.poll_tungstenite(cx, |context, socket| context.write(socket, message));
        self.is_stuck = written.is_pending();
        match written {
            Poll::Ready(written) => written,
            Poll::Pending => Ok(()),
        }
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let flushed = ready!(self.poll_write_all(cx));
        self.is_large |= std::mem::take(&mut self.unsent) > KEPT;
        if self.is_large && self.context.can_write() {
            // It keeps the largest buffer that it has used.
            self.context = WebSocketContext::new(self.role, Some(writing()));
            self.is_large = false;
        }
        Poll::Ready(flushed)
    }

    fn poll_write_all(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let flushed = ready!(self.poll_tungstenite(cx, |context, socket| context.flush(socket)));
        self.is_stuck = false;
        Poll::Ready(flushed)
    }

    /// Pending if the socket is not ready.
    fn poll_tungstenite<T>(
        &mut self,
        cx: &mut Context<'_>,
        work: impl FnOnce(&mut WebSocketContext, &mut Polled<'_, '_, S>) -> Result<T, Error>,
    ) -> Poll<Result<T, Error>> {
        let socket = &mut self.socket;
        match work(&mut self.context, &mut Polled { socket, cx }) {
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            done => Poll::Ready(done),
        }
    }

    pub(super) const fn socket(&self) -> &S {
        &self.socket
    }

    pub(super) const fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }
}

fn unmask(payload: &mut [u8], header: &FrameHeader) {
    let Some([a, b, c, d]) = header.mask else {
        return;
    };
    let mask = [a, b, c, d, a, b, c, d];
    let wide = u64::from_ne_bytes(mask);
    let (words, rest) = payload.as_chunks_mut();
    for word in words {
        *word = (u64::from_ne_bytes(*word) ^ wide).to_ne_bytes();
    }
    for (byte, mask) in rest.iter_mut().zip(mask) {
        *byte ^= mask;
    }
}

fn whole(kind: Data, payload: Bytes) -> Result<Message, Failure> {
    if kind == Data::Binary {
        return Ok(Message::Binary(payload));
    }
    let text = Utf8Bytes::try_from(payload).map_err(|_| not_utf8())?;
    Ok(Message::Text(Text::from_websocket(text)))
}

fn control_frame(control: Control, payload: Bytes) -> Result<Message, Failure> {
    Ok(match control {
        Control::Ping => Message::Ping(payload),
        Control::Pong => Message::Pong(payload),
        _ => Message::Close(match &payload[..] {
            [] => None,
            [first, second, reason @ ..] => {
                let code = u16::from_be_bytes([*first, *second]);
                let reason = std::str::from_utf8(reason).map_err(|_| not_utf8())?;
                if !is_close_code(code) {
                    return Err(ProtocolError::InvalidCloseSequence.into());
                }
                Some(CloseFrame::new(code, reason))
            }
            [_] => return Err(ProtocolError::InvalidCloseSequence.into()),
        }),
    })
}

/// A byte stream in one poll, as tungstenite takes it: it writes only.
struct Polled<'l, 'c, S> {
    socket: &'l mut S,
    cx: &'l mut Context<'c>,
}

fn or_would_block<T>(polled: Poll<io::Result<T>>) -> io::Result<T> {
    match polled {
        Poll::Ready(done) => done,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

impl<S> Read for Polled<'_, '_, S> {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(io::ErrorKind::WouldBlock.into())
    }
}

impl<S: AsyncWrite + Unpin> Write for Polled<'_, '_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        or_would_block(Pin::new(&mut *self.socket).poll_write(self.cx, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        or_would_block(Pin::new(&mut *self.socket).poll_flush(self.cx))
    }
}
