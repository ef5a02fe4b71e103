//! [`FrameStream`]: the frames of a WebSocket over a byte stream.

use std::cell::RefCell;
use std::io::{self, Cursor};
use std::mem::MaybeUninit;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, ready};

use bytes::{Buf as _, BufMut as _, Bytes, BytesMut};
use futures_util::task::AtomicWaker;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf};
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

use super::receive::{NoRoom, Receive, grow};
use super::wake_flag::WakeFlag;
use crate::message::{CloseFrame, Text};
use crate::net::entropy;
use crate::net::transport::{Message, TransportError};

/// A fragment from this length on is bounded by the size of its message.
const SMALL: usize = 1024;
/// How many small fragments of a message count as nothing beside it.
const FREE_FRAGMENTS: u16 = 32;
const LONGEST_HEADER: usize = 14;
/// Most bytes that a Ping, a Pong or a Close carries (RFC 6455, section 5.5).
pub(super) const MAX_CONTROL: usize = 125;

/// Bytes that a connection holds for reading, and at most for writing.
const IDLE_BUFFER: usize = 1024;
/// Bytes read at once, onto the stack: an idle connection holds no memory for it.
const READ: usize = 16 * 1024;
/// Bytes gathered before they are written without a flush, and the most that may wait before the sink
/// reports that it is not ready.
pub(super) const WRITE_BUFFER: usize = 32 * 1024;
/// Most bytes of a buffer for writing that is kept after a burst, for the next one.
const KEPT: usize = 4 * 1024;

/// Whether a peer may send this code in a Close: those of the registry that are for the wire, and
/// those of libraries and applications.
pub(super) const fn is_close_code(code: u16) -> bool {
    matches!(code, 1000..=1003 | 1007..=1014 | 3000..=4999)
}

/// Wakes the tasks of both halves. A byte stream keeps one waker for each direction, and either
/// half may read and write.
#[derive(Default)]
pub(super) struct Halves {
    pub(super) stream: WakeFlag,
    pub(super) sink: AtomicWaker,
}

impl Wake for Halves {
    fn wake(self: Arc<Self>) {
        self.stream.set();
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
        match why {
            NoRoom::Ever { max } => Self {
                code: Some(CloseFrame::TOO_BIG),
                error: TransportError::TooLarge { max },
            },
            NoRoom::Now => Self {
                code: Some(CloseFrame::TRY_AGAIN),
                error: TransportError::Overloaded,
            },
            NoRoom::Late => broken(CloseFrame::POLICY, "a message was not whole in time"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        let error = TransportError::Io(error);
        Self { code: None, error }
    }
}

fn broken(code: u16, why: &str) -> Failure {
    let error = TransportError::Protocol(why.to_owned());
    let code = Some(code);
    Failure { code, error }
}

/// The error for text that is not UTF-8, which its own error would quote.
fn not_utf8<E>(_: E) -> Failure {
    broken(1007, "text is not UTF-8")
}

/// A frame of a message whose payload has not come as a whole.
struct Partial {
    header: FrameHeader,
    kind: Data,
    missing: usize,
    /// Where its payload begins in the message.
    begin: usize,
}

/// The frames of a WebSocket over a byte stream.
pub(super) struct FrameStream<S> {
    pub(super) socket: S,
    role: Role,
    max_message: usize,
    /// Read and not decoded.
    buffer: BytesMut,
    /// How many bytes the buffer was made for.
    room: usize,
    partial: Option<Partial>,
    /// What has come of a message that is not whole.
    message: Vec<u8>,
    /// The kind of a message of which some frames have come.
    kind: Option<Data>,
    /// How much of the message is checked to be text.
    checked: usize,
    /// Small fragments of the current message.
    fragments: u16,
    receive: Option<Box<Receive>>,
    /// The contents of the Close that was received.
    pub(super) close: Option<CloseFrame>,
    has_ended: bool,
    /// Encoded and not written.
    unsent: BytesMut,
    /// Whether the last write found the socket full.
    pub(super) is_stuck: bool,
    /// Whether the socket took only a part, so that the buffer of `unsent` is larger than it looks.
    is_cut: bool,
    /// How many bytes were written the last time: the room for the next ones.
    burst: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> FrameStream<S> {
    pub(super) fn new(socket: S, read_already: &Bytes, role: Role, max_message: usize) -> Self {
        Self {
            socket,
            role,
            max_message,
            buffer: BytesMut::from(&read_already[..]),
            room: read_already.len(),
            partial: None,
            message: Vec::new(),
            kind: None,
            checked: 0,
            fragments: 0,
            receive: None,
            close: None,
            has_ended: false,
            unsent: BytesMut::new(),
            is_stuck: false,
            is_cut: false,
            burst: 0,
        }
    }

    /// Counts what is received at the server.
    #[cfg(feature = "server")]
    pub(super) fn count(&mut self, receive: Receive) {
        self.receive = Some(Box::new(receive));
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
            (self.message, self.receive) = (Vec::new(), None);
        }
        Poll::Ready(next)
    }

    /// Returns the next message if it is a short text that was read as a whole, as most are.
    #[inline(always)]
    pub(super) fn next_text(&mut self) -> Option<Result<Message, Failure>> {
        let (header, begin, len) = text_header(&self.buffer)?;
        let is_alone = !self.has_ended && self.partial.is_none() && self.kind.is_none();
        if !is_alone || self.check(&header, len, len).is_err() {
            return None;
        }
        let payload = self.take_payload(&header, begin, len);
        let text = whole(Data::Text, payload);
        self.has_ended = text.is_err();
        Some(text)
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Message>, Failure>> {
        loop {
            if let Some(message) = ready!(self.poll_decode(cx))? {
                return Poll::Ready(Ok(Some(message)));
            }
            match self.poll_read(cx) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Ok(None)),
                Poll::Ready(read) => read?,
                Poll::Pending => {
                    if let Some(receive) = &mut self.receive {
                        ready!(receive.poll_wait(cx))?;
                    }
                    return Poll::Pending;
                }
            };
            if let Some(text) = self.next_text() {
                return Poll::Ready(text.map(Some));
            }
        }
    }

    /// Reads what has come: the rest of a long message straight to its place.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut none = 0;
        let partial = self.partial.as_mut();
        let missing = partial.map_or(&mut none, |it| &mut it.missing);
        if *missing >= READ {
            let mut room = (&mut self.message).limit(*missing);
            let read = ready!(pin!(self.socket.read_buf(&mut room)).poll(cx))?;
            *missing -= read;
            return Poll::Ready(Ok(read));
        }
        // With what waits no more than as much, so that the buffer need not grow.
        let room = READ - self.buffer.len().min(READ / 2);
        let mut memory = [MaybeUninit::uninit(); READ];
        let mut read = ReadBuf::uninit(memory.get_mut(..room).unwrap_or_default());
        let polled = Pin::new(&mut self.socket).poll_read(cx, &mut read);
        if polled.is_pending() && self.buffer.is_empty() && self.room > 2 * IDLE_BUFFER {
            (self.buffer, self.room) = (BytesMut::new(), 0);
        }
        ready!(polled)?;
        let read = read.filled();
        let (own, behind) = read.split_at(read.len().min(*missing));
        *missing -= own.len();
        self.message.extend_from_slice(own);
        if self.buffer.capacity() - self.buffer.len() < behind.len() {
            let room = behind.len().max(IDLE_BUFFER);
            self.room = self.room.max(self.buffer.len() + room);
            self.buffer.reserve(room);
        }
        self.buffer.extend_from_slice(behind);
        Poll::Ready(Ok(read.len()))
    }

    /// Decodes what was read; `None` if that is no whole frame.
    fn poll_decode(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Message>, Failure>> {
        loop {
            if let Some(partial) = self.partial.take_if(|partial| partial.missing == 0)
                && let Some(message) = self.end_frame(&partial)?
            {
                return Poll::Ready(Ok(Some(message)));
            }
            if self.partial.is_some() {
                return Poll::Ready(Ok(None));
            }
            if self.buffer.is_empty() {
                return Poll::Ready(Ok(None));
            }
            let Some((header, begin, len)) = parse_header(&self.buffer)? else {
                return Poll::Ready(Ok(None));
            };
            let size = self.message.len().saturating_add(len);
            self.check(&header, len, size)?;
            let behind = self.buffer.len() - begin;
            match header.opcode {
                OpCode::Control(_) if behind < len => return Poll::Ready(Ok(None)),
                OpCode::Control(control) => {
                    let payload = self.take_payload(&header, begin, len);
                    return Poll::Ready(control_frame(control, payload).map(Some));
                }
                OpCode::Data(data) if header.is_final && self.kind.is_none() && behind >= len => {
                    let payload = self.take_payload(&header, begin, len);
                    return Poll::Ready(whole(data, payload).map(Some));
                }
                OpCode::Data(data) => {
                    if let Some(receive) = &mut self.receive {
                        ready!(receive.poll_grow(cx, size))?;
                    }
                    let (here, kind) = (behind.min(len), *self.kind.get_or_insert(data));
                    self.partial = Some(Partial {
                        header,
                        kind,
                        missing: len - here,
                        begin: self.message.len(),
                    });
                    grow(&mut self.message, len);
                    self.buffer.advance(begin);
                    self.message.extend_from_slice(&self.buffer.split_to(here));
                }
            }
        }
    }

    /// Checks a frame, of which only the header may have come, against the rules.
    fn check(&self, header: &FrameHeader, len: usize, size: usize) -> Result<(), Failure> {
        let (is_client, is_masked) = (self.role == Role::Client, header.mask.is_some());
        let why = match header.opcode {
            _ if header.rsv1 || header.rsv2 || header.rsv3 => "a reserved bit is set",
            _ if is_client && is_masked => "a server has masked a frame",
            _ if !is_client && !is_masked => "a client has not masked a frame",
            OpCode::Control(_) if !header.is_final => "a control frame is fragmented",
            OpCode::Control(_) if len > MAX_CONTROL => "a control frame is too long",
            OpCode::Data(data) if (data == Data::Continue) != self.kind.is_some() => {
                "a fragment does not continue a message"
            }
            OpCode::Data(_) if size > self.max_message => {
                let max = self.max_message;
                return Err(NoRoom::Ever { max }.into());
            }
            _ => return Ok(()),
        };
        Err(broken(CloseFrame::PROTOCOL_ERROR, why))
    }

    /// Takes the payload of a frame that is in the buffer as a whole.
    fn take_payload(&mut self, header: &FrameHeader, begin: usize, len: usize) -> Bytes {
        let mut frame = self.buffer.split_to(begin + len);
        mask(frame.get_mut(begin..).unwrap_or_default(), header);
        let mut payload = frame.freeze();
        payload.advance(begin);
        payload
    }

    /// Ends a frame of a message; returns the message with its last one.
    fn end_frame(&mut self, frame: &Partial) -> Result<Option<Message>, Failure> {
        let payload = self.message.get_mut(frame.begin..).unwrap_or_default();
        mask(payload, &frame.header);
        let len = payload.len();
        if frame.header.is_final {
            (self.kind, self.checked, self.fragments) = (None, 0, 0);
            if let Some(receive) = &mut self.receive {
                receive.end();
            }
            return whole(frame.kind, std::mem::take(&mut self.message).into()).map(Some);
        }
        if frame.kind == Data::Text {
            let new = self.message.get(self.checked..).unwrap_or_default();
            self.checked += match std::str::from_utf8(new) {
                Err(error) if error.error_len().is_some() => return Err(not_utf8(error)),
                Err(error) => error.valid_up_to(),
                Ok(_) => new.len(),
            };
        }
        if len >= SMALL {
            return Ok(None);
        }
        self.fragments = self.fragments.saturating_add(1);
        Ok((self.fragments > FREE_FRAGMENTS).then_some(Message::Fragment))
    }

    /// Waits until the socket takes what it has refused.
    pub(super) fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_stuck {
            return self.poll_flush(cx);
        }
        Poll::Ready(Ok(()))
    }

    /// Encodes a frame. What the socket refuses is kept.
    pub(super) fn start_send(
        &mut self,
        cx: &mut Context<'_>,
        opcode: OpCode,
        is_final: bool,
        payload: &[u8],
    ) -> io::Result<()> {
        let header = FrameHeader {
            is_final,
            opcode,
            mask: (self.role == Role::Client).then(random_mask),
            ..FrameHeader::default()
        };
        if self.unsent.capacity() == 0 {
            self.unsent.reserve(self.burst);
        }
        let (head, len) = format_header(&header, payload.len())?;
        self.unsent
            .extend_from_slice(head.get(..len).unwrap_or_default());
        let begin = self.unsent.len();
        self.unsent.extend_from_slice(payload);
        mask(self.unsent.get_mut(begin..).unwrap_or_default(), &header);
        if self.unsent.len() > WRITE_BUFFER {
            let written = self.poll_write(cx)?;
            self.is_stuck = written.is_pending();
        }
        Ok(())
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.unsent.is_empty() {
            self.burst = self.unsent.len().min(WRITE_BUFFER);
        }
        while !self.unsent.is_empty() {
            let written = ready!(Pin::new(&mut self.socket).poll_write(cx, &self.unsent))?;
            match written {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                // What is behind the text would else be reserved anew.
                all if all >= self.unsent.len() => self.unsent.clear(),
                some => {
                    self.unsent.advance(some);
                    self.is_cut = true;
                }
            }
        }
        let kept = (2 * self.burst).clamp(IDLE_BUFFER, KEPT);
        if std::mem::take(&mut self.is_cut) || self.unsent.capacity() > kept {
            self.unsent = BytesMut::new();
        }
        Poll::Ready(Ok(()))
    }

    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_write(cx))?;
        ready!(pin!(self.socket.flush()).poll(cx))?;
        self.is_stuck = false;
        Poll::Ready(Ok(()))
    }
}

/// Returns a mask that no one foresees. The system is asked for many at once, because each question is
/// a system call.
fn random_mask() -> [u8; 4] {
    thread_local! {
        static MASKS: RefCell<Vec<[u8; 4]>> = const { RefCell::new(Vec::new()) };
    }
    MASKS.with_borrow_mut(|masks| {
        if masks.is_empty() {
            let mut random = [0; 256];
            if getrandom::fill(&mut random).is_err() {
                for eight in random.as_chunks_mut().0 {
                    *eight = entropy().to_ne_bytes();
                }
            }
            masks.extend(random.as_chunks().0);
        }
        // It is not empty, so the default is never taken.
        masks.pop().unwrap_or_default()
    })
}

/// Parses the header of a whole text of at most 125 bytes, as most frames are. Returns it with its length and
/// that of the text; `None` for any other.
#[inline]
fn text_header(bytes: &[u8]) -> Option<(FrameHeader, usize, usize)> {
    let [0x81, second, rest @ ..] = bytes else {
        return None;
    };
    let len = usize::from(second & 0x7f);
    let (mask, begin) = match second & 0x80 {
        0 => (None, 2),
        _ => (Some(*rest.first_chunk()?), 6),
    };
    let header = FrameHeader {
        opcode: OpCode::Data(Data::Text),
        mask,
        ..FrameHeader::default()
    };
    (len <= MAX_CONTROL && bytes.len() >= begin + len).then_some((header, begin, len))
}

/// Parses the header of a frame. Returns it with its length and that of the payload, or `None` if it has not
/// come as a whole.
fn parse_header(bytes: &[u8]) -> Result<Option<(FrameHeader, usize, usize)>, Failure> {
    let mut cursor = Cursor::new(bytes);
    let header = FrameHeader::parse(&mut cursor);
    let begin = bytes.len() - cursor.remaining();
    let header = header.map_err(|why| broken(CloseFrame::PROTOCOL_ERROR, &why.to_string()))?;
    let whole = |len| usize::try_from(len).unwrap_or(usize::MAX);
    Ok(header.map(|(header, len)| (header, begin, whole(len))))
}

/// Returns the bytes of a frame's header, and how many they are.
#[inline]
fn format_header(header: &FrameHeader, len: usize) -> io::Result<([u8; LONGEST_HEADER], usize)> {
    let mut bytes = [0; LONGEST_HEADER];
    if let OpCode::Data(data @ (Data::Text | Data::Binary)) = header.opcode
        && let Ok(short @ 0..=125) = u8::try_from(len)
    {
        let [first, second, a, b, c, d, ..] = &mut bytes;
        *first = u8::from(header.is_final) << 7 | if data == Data::Text { 1 } else { 2 };
        *second = short;
        let Some(mask) = header.mask else {
            return Ok((bytes, 2));
        };
        *second |= 0x80;
        [*a, *b, *c, *d] = mask;
        return Ok((bytes, 6));
    }
    let mut rest = &mut bytes[..];
    header
        .format(len as u64, &mut rest)
        .map_err(io::Error::other)?;
    let len = LONGEST_HEADER - rest.len();
    Ok((bytes, len))
}

/// Masks a payload, or unmasks it.
#[inline]
fn mask(payload: &mut [u8], header: &FrameHeader) {
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

#[inline]
fn whole(kind: Data, payload: Bytes) -> Result<Message, Failure> {
    if kind == Data::Binary {
        return Ok(Message::Binary(payload));
    }
    let text = Utf8Bytes::try_from(payload).map_err(not_utf8)?;
    Ok(Message::Text(Text::from_websocket(text)))
}

fn control_frame(control: Control, payload: Bytes) -> Result<Message, Failure> {
    let close = match (control, &payload[..]) {
        (Control::Ping, _) => return Ok(Message::Ping(payload)),
        (Control::Pong, _) => return Ok(Message::Pong(payload)),
        (_, [first, second, reason @ ..]) => {
            let reason = std::str::from_utf8(reason).map_err(not_utf8)?;
            let close = CloseFrame::new(u16::from_be_bytes([*first, *second]), reason);
            Some(close).filter(|close| is_close_code(close.code))
        }
        _ => None,
    };
    if close.is_none() && !payload.is_empty() {
        return Err(broken(
            CloseFrame::PROTOCOL_ERROR,
            "a Close has no valid code",
        ));
    }
    Ok(Message::Close(close))
}
