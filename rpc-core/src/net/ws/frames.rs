//! [`FrameStream`]: tungstenite over a byte stream, and what it does not report about the frames there.

use std::io::{self, Read, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, ready};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig, WebSocketContext};

use super::config::WsConfig;
use crate::message::CloseFrame;

/// A fragment from this length on is bounded by the size of its message.
const SMALL: u64 = 1024;
/// How many small fragments of a message count as nothing beside it.
const FREE_FRAGMENTS: u16 = 32;
/// The first byte of a whole Close.
const CLOSE: u8 = 0x88;
const LONGEST_HEADER: usize = 14;
/// Most bytes that a Ping, a Pong or a Close carries (RFC 6455, section 5.5).
pub(super) const MAX_CONTROL: usize = 125;

/// Bytes that a connection holds for reading; twice that after a burst.
const READ_BUFFER: usize = 1024;
/// Bytes gathered before they are written without a flush, and the most that may wait before the sink
/// reports that it is not ready.
const WRITE_BUFFER: usize = 32 * 1024;
/// Most bytes of a message, or of a burst that is written, whose buffer is kept.
const KEPT: usize = 1024;
const LONGEST_CLOSE: usize = 2 + 4 + MAX_CONTROL;

impl WsConfig {
    /// Returns the sizes in the form that tungstenite takes.
    pub(super) fn sizes(&self) -> WebSocketConfig {
        WebSocketConfig::default()
            .read_buffer_size(READ_BUFFER)
            .write_buffer_size(WRITE_BUFFER)
            .max_message_size(Some(self.max_message))
            .max_frame_size(Some(self.max_message.max(MAX_CONTROL)))
    }
}

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

/// The header of a frame.
struct Header {
    first: u8,
    len: usize,
    payload: u64,
}

impl Header {
    /// Reads the header at the beginning; `None` while it is incomplete.
    fn read(bytes: &[u8]) -> Option<Self> {
        let (&[first, second], rest) = bytes.split_first_chunk()?;
        let mask = if second & 0x80 == 0 { 0 } else { 4 };
        let (extended, payload) = match second & 0x7f {
            126 => (2, u16::from_be_bytes(*rest.first_chunk()?).into()),
            127 => (8, u64::from_be_bytes(*rest.first_chunk()?)),
            short => (0, short.into()),
        };
        let len = 2 + extended + mask;
        (bytes.len() >= len).then_some(Self {
            first,
            len,
            payload,
        })
    }
}

/// What `ahead` is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// What came behind the handshake.
    Open,
    /// The beginning of a Close.
    Closing,
    /// A whole and valid Close.
    Closed,
    /// Something for tungstenite to refuse, as is all that follows.
    Broken,
}

/// A byte stream that holds the peer's Close back from tungstenite, which knows fewer codes than
/// there are and sends nothing once it has seen one, and counts the fragments that it joins.
pub(super) struct Frames<S> {
    socket: S,
    role: Role,
    /// Read and not passed on.
    ahead: Vec<u8>,
    phase: Phase,
    header: [u8; LONGEST_HEADER],
    header_len: u8,
    /// What is missing of the current frame's payload.
    missing: u64,
    /// Whether a message has begun whose last fragment is still to come.
    in_message: bool,
    /// Small fragments of the current message.
    fragments: u16,
    /// Fragments that count and were not reported. Nothing is read meanwhile.
    unreported: u16,
}

impl<S> Frames<S> {
    fn new(socket: S, role: Role, read_already: &[u8]) -> Self {
        Self {
            socket,
            role,
            ahead: read_already.to_vec(),
            phase: Phase::Open,
            header: [0; LONGEST_HEADER],
            header_len: 0,
            missing: 0,
            in_message: false,
            fragments: 0,
            unreported: 0,
        }
    }

    /// Follows the frames in these bytes; returns where a Close begins.
    fn follow(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut rest = bytes;
        loop {
            let here = usize::try_from(self.missing).map_or(rest.len(), |it| it.min(rest.len()));
            self.missing -= here as u64;
            rest = rest.get(here..)?;
            let (first, behind) = rest.split_first()?;
            if self.header_len == 0 {
                if *first == CLOSE {
                    return Some(bytes.len() - rest.len());
                }
                if let Some(header) = Header::read(rest) {
                    self.note(&header);
                    rest = rest.get(header.len..)?;
                    continue;
                }
            }
            *self.header.get_mut(usize::from(self.header_len))? = *first;
            self.header_len += 1;
            rest = behind;
            let header = self.header.get(..usize::from(self.header_len))?;
            if let Some(header) = Header::read(header) {
                self.header_len = 0;
                self.note(&header);
            }
        }
    }

    fn note(&mut self, header: &Header) {
        self.missing = header.payload;
        let (is_last, is_data) = (header.first & 0x80 != 0, header.first & 0x08 == 0);
        if is_data {
            self.in_message = !is_last;
        }
        if is_data && is_last {
            self.fragments = 0;
        } else if is_data && self.missing < SMALL {
            self.fragments = self.fragments.saturating_add(1);
            self.unreported += u16::from(self.fragments > FREE_FRAGMENTS);
        }
    }

    /// Returns whether all that was passed on are whole messages.
    fn is_between_messages(&self) -> bool {
        let is_open = self.phase == Phase::Open && !self.in_message;
        is_open && self.missing == 0 && self.header_len == 0
    }

    /// Returns the peer's Close, if there is a valid one.
    fn close(&self) -> Option<Result<Option<CloseFrame>, ()>> {
        (self.phase == Phase::Closed).then(|| self.read_close())?
    }

    /// Reads the Close in `ahead`; `None` while it is incomplete.
    fn read_close(&self) -> Option<Result<Option<CloseFrame>, ()>> {
        let length = usize::from(*self.ahead.get(1)?);
        let mask = if self.role == Role::Server { 4 } else { 0 };
        let length = length.wrapping_sub(mask << 5);
        if length > MAX_CONTROL {
            return Some(Err(()));
        }
        let (mask, rest) = self.ahead.get(2..)?.split_at_checked(mask)?;
        let unmasked = rest.get(..length)?.iter().enumerate();
        let mask = |at: usize| mask.get(at % 4).unwrap_or(&0);
        let payload: Vec<_> = unmasked.map(|(at, byte)| byte ^ mask(at)).collect();
        Some(match &payload[..] {
            [] => Ok(None),
            [first, second, reason @ ..] => {
                let code = u16::from_be_bytes([*first, *second]);
                let reason = std::str::from_utf8(reason).map_err(|_| ());
                let reason = reason.and_then(|it| is_close_code(code).then_some(it).ok_or(()));
                reason.map(|reason| Some(CloseFrame::new(code, reason)))
            }
            [_] => Err(()),
        })
    }
}

impl<S: AsyncRead + Unpin> Frames<S> {
    fn poll_read(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        loop {
            if self.phase == Phase::Closed || self.unreported > 0 {
                // `FrameStream::poll_next` reports it and comes again.
                return Poll::Pending;
            }
            if self.phase == Phase::Closing {
                let mut more = [0; LONGEST_CLOSE];
                match self.read_close() {
                    Some(Ok(_)) => self.phase = Phase::Closed,
                    Some(Err(())) => self.phase = Phase::Broken,
                    None => {
                        let mut read = ReadBuf::new(&mut more);
                        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut read))?;
                        self.ahead.extend_from_slice(read.filled());
                        if read.filled().is_empty() {
                            self.phase = Phase::Broken;
                        }
                    }
                }
                continue;
            }
            let before = buf.filled().len();
            if self.ahead.is_empty() {
                ready!(Pin::new(&mut self.socket).poll_read(cx, buf))?;
            } else {
                let here = buf.remaining().min(self.ahead.len());
                buf.put_slice(self.ahead.get(..here).unwrap_or_default());
                self.ahead.drain(..here);
                if self.ahead.is_empty() {
                    self.ahead = Vec::new();
                }
            }
            if self.phase == Phase::Broken {
                return Poll::Ready(Ok(()));
            }
            let new = buf.filled().get(before..).unwrap_or_default();
            if let Some(at) = self.follow(new) {
                let held = new.get(at..).unwrap_or_default();
                self.ahead.splice(..0, held.iter().copied());
                self.phase = Phase::Closing;
                buf.set_filled(before + at);
                if at == 0 {
                    continue;
                }
            }
            return Poll::Ready(Ok(()));
        }
    }
}

/// What the peer has sent.
pub(super) enum Received {
    Message(Message),
    /// A small fragment, one of many.
    Fragment,
    Close(Option<CloseFrame>),
}

/// Tungstenite over a byte stream whose frames are followed.
pub(super) struct FrameStream<S> {
    context: WebSocketContext,
    frames: Frames<S>,
    /// Whether the last write found the socket full.
    pub(super) is_stuck: bool,
    has_ended: bool,
    /// Whether all that was passed on has been read.
    is_read: bool,
    /// Bytes given to tungstenite since all of them had left.
    unsent: usize,
    /// Whether tungstenite's buffers may have grown.
    is_large: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> FrameStream<S> {
    pub(super) fn new(socket: S, read_already: &Bytes, role: Role, sizes: WebSocketConfig) -> Self {
        Self {
            context: WebSocketContext::new(role, Some(sizes)),
            frames: Frames::new(socket, role, read_already),
            is_stuck: false,
            has_ended: false,
            is_read: false,
            unsent: 0,
            is_large: false,
        }
    }

    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Received, Error>>> {
        loop {
            if self.frames.unreported > 0 {
                self.frames.unreported -= 1;
                return Poll::Ready(Some(Ok(Received::Fragment)));
            }
            if self.has_ended {
                return Poll::Ready(None);
            }
            let read = self.poll_tungstenite(cx, |context, socket| context.read(socket));
            self.is_read = read.is_pending();
            let Poll::Ready(read) = read else {
                if self.frames.unreported > 0 {
                    continue;
                }
                if let Some(Ok(close)) = self.frames.close() {
                    return Poll::Ready(Some(Ok(Received::Close(close))));
                }
                self.free_buffers();
                return Poll::Pending;
            };
            return Poll::Ready(match read {
                Ok(message) => {
                    self.is_large |= message.len() > KEPT;
                    // Tungstenite has made the pong.
                    self.unsent += usize::from(message.is_ping());
                    Some(Ok(Received::Message(message)))
                }
                Err(error) => {
                    self.has_ended = true;
                    let is_over = matches!(error, Error::AlreadyClosed | Error::ConnectionClosed);
                    (!is_over).then_some(Err(error))
                }
            });
        }
    }

    /// Returns the contents of the Close that was received.
    pub(super) fn close(&self) -> Option<CloseFrame> {
        self.frames.close()?.ok()?
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
        message: Message,
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
        self.free_buffers();
        Poll::Ready(match flushed {
            Err(Error::ConnectionClosed) => Ok(()),
            flushed => flushed,
        })
    }

    fn poll_write_all(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        let flushed = ready!(self.poll_tungstenite(cx, |context, socket| context.flush(socket)));
        self.is_stuck = false;
        Poll::Ready(flushed)
    }

    /// Frees the buffers of tungstenite, which keeps the largest that it has used, once nothing is
    /// in them.
    fn free_buffers(&mut self) {
        let is_empty = self.unsent == 0 && self.is_read && self.frames.is_between_messages();
        if self.is_large && is_empty && self.context.can_write() {
            let sizes = *self.context.get_config();
            self.context = WebSocketContext::new(self.frames.role, Some(sizes));
            self.is_large = false;
        }
    }

    /// Pending if the socket is not ready.
    fn poll_tungstenite<T>(
        &mut self,
        cx: &mut Context<'_>,
        work: impl FnOnce(&mut WebSocketContext, &mut Polled<'_, '_, S>) -> Result<T, Error>,
    ) -> Poll<Result<T, Error>> {
        let frames = &mut self.frames;
        match work(&mut self.context, &mut Polled { frames, cx }) {
            Err(Error::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
            done => Poll::Ready(done),
        }
    }

    pub(super) fn config(&self) -> &WebSocketConfig {
        self.context.get_config()
    }

    pub(super) const fn socket(&self) -> &S {
        &self.frames.socket
    }

    pub(super) const fn socket_mut(&mut self) -> &mut S {
        &mut self.frames.socket
    }
}

/// A byte stream in one poll, as tungstenite takes it.
struct Polled<'l, 'c, S> {
    frames: &'l mut Frames<S>,
    cx: &'l mut Context<'c>,
}

fn or_would_block<T>(polled: Poll<io::Result<T>>) -> io::Result<T> {
    match polled {
        Poll::Ready(done) => done,
        Poll::Pending => Err(io::ErrorKind::WouldBlock.into()),
    }
}

impl<S: AsyncRead + Unpin> Read for Polled<'_, '_, S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut buffer = ReadBuf::new(buffer);
        or_would_block(self.frames.poll_read(self.cx, &mut buffer))?;
        Ok(buffer.filled().len())
    }
}

impl<S: AsyncWrite + Unpin> Write for Polled<'_, '_, S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        or_would_block(Pin::new(&mut self.frames.socket).poll_write(self.cx, bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        or_would_block(Pin::new(&mut self.frames.socket).poll_flush(self.cx))
    }
}
