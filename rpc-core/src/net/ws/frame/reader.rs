//! [`FrameReader`]: bytes in, messages out.

use bytes::buf::Limit;
use bytes::{Buf as _, BufMut as _, Bytes};

use super::header::{Header, Opcode};
use super::{FrameError, close, mask};
use crate::message::Text;
use crate::net::transport::Message;
use crate::net::ws::Role;

/// Room that a large frame gets at first. Then the room doubles with what has come, so that a peer
/// has to send half of what it makes us hold.
const FIRST_ROOM: usize = 16 * 1024;
/// Fragments without payload in one message. They bring it no nearer to its limit.
const MAX_EMPTY_FRAGMENTS: u32 = 64;

/// Decodes what a peer sends.
///
/// Limits are checked from headers, before a payload is waited for. After an error nothing more
/// may be read.
#[derive(Debug)]
pub(crate) struct FrameReader {
    role: Role,
    max_message: usize,
    /// What has come; up to `start` it is read. Without memory once all of it is.
    pub(super) buffer: Vec<u8>,
    start: usize,
    /// Bytes that the first frame in the buffer still lacks, as far as its header is known.
    missing: usize,
    fragments: Option<Fragments>,
}

/// A message whose last fragment has not come yet.
#[derive(Debug)]
struct Fragments {
    is_text: bool,
    payload: Vec<u8>,
    empty: u32,
}

impl FrameReader {
    /// A reader for this side of a connection, which takes messages of up to so many bytes.
    pub(crate) const fn new(role: Role, max_message: usize) -> Self {
        Self {
            role,
            max_message,
            buffer: Vec::new(),
            start: 0,
            missing: 0,
            fragments: None,
        }
    }

    /// Forgets what has come, because nothing of it counts any more.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(self.role, self.max_message);
    }

    /// Takes bytes of the peer.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > self.buffer.capacity() {
            self.discard_read();
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Bytes that the frame under way still lacks; 0 if its header is not complete.
    pub(crate) const fn missing(&self) -> usize {
        self.missing
    }

    /// Room to read a large frame into without a detour; never more than the frame lacks.
    pub(crate) fn room(&mut self) -> Limit<&mut Vec<u8>> {
        let free = self.buffer.capacity() - self.buffer.len();
        if free == 0 {
            self.discard_read();
            let more = self.buffer.len().max(FIRST_ROOM).min(self.missing);
            self.buffer.reserve_exact(more);
        }
        let free = self.buffer.capacity() - self.buffer.len();
        (&mut self.buffer).limit(free.min(self.missing))
    }

    /// The next message, or `None` if more bytes are needed.
    ///
    /// # Errors
    /// [`FrameError`] if the peer broke the rules.
    pub(crate) fn next_message(&mut self) -> Result<Option<Message>, FrameError> {
        loop {
            let unread = self.buffer.get(self.start..).unwrap_or_default();
            let Some((header, size)) = Header::parse(unread, self.role)? else {
                self.missing = 0;
                self.release();
                return Ok(None);
            };
            let len = self.accept(&header)?;
            let begin = self.start + size;
            let end = begin.saturating_add(len);
            let Some(payload) = self.buffer.get_mut(begin..end) else {
                self.missing = end - self.buffer.len();
                return Ok(None);
            };
            if let Some(key) = header.mask {
                mask::apply(key, payload);
            }
            self.start = end;
            self.missing = 0;
            if let Some(message) = self.take(&header, begin, end)? {
                return Ok(Some(message));
            }
        }
    }

    /// Whether a frame may follow what came before it; if so, the length of its payload.
    fn accept(&self, header: &Header) -> Result<usize, FrameError> {
        let before = match (header.opcode, &self.fragments) {
            (Opcode::Continuation, None) => {
                return Err(FrameError::Protocol("a continuation continues nothing"));
            }
            (Opcode::Continuation, Some(fragments)) => fragments.payload.len(),
            (Opcode::Text | Opcode::Binary, Some(_)) => {
                return Err(FrameError::Protocol(
                    "a message begins inside a fragmented one",
                ));
            }
            _ => 0,
        };
        usize::try_from(header.len)
            .ok()
            .filter(|len| {
                *len <= self.max_message.saturating_sub(before) || header.opcode.is_control()
            })
            .ok_or(FrameError::TooLarge)
    }

    /// The message that ends with this frame, if one does.
    fn take(
        &mut self,
        header: &Header,
        begin: usize,
        end: usize,
    ) -> Result<Option<Message>, FrameError> {
        let payload = self.buffer.get(begin..end).unwrap_or_default();
        let message = match header.opcode {
            Opcode::Ping => Message::Ping(Bytes::copy_from_slice(payload)),
            Opcode::Pong => Message::Pong(Bytes::copy_from_slice(payload)),
            Opcode::Close => Message::Close(close::parse(payload)?),
            opcode if header.is_final && self.fragments.is_none() => {
                let is_text = opcode == Opcode::Text;
                if is_text {
                    check_text(payload)?;
                }
                data_message(is_text, self.cut(begin, end))
            }
            opcode => return self.put_together(opcode, header.is_final, begin, end),
        };
        Ok(Some(message))
    }

    fn put_together(
        &mut self,
        opcode: Opcode,
        is_final: bool,
        begin: usize,
        end: usize,
    ) -> Result<Option<Message>, FrameError> {
        let payload = self.buffer.get(begin..end).unwrap_or_default();
        let mut fragments = self.fragments.take().unwrap_or_else(|| Fragments {
            is_text: opcode == Opcode::Text,
            payload: Vec::new(),
            empty: 0,
        });
        fragments.payload.extend_from_slice(payload);
        if is_final {
            if fragments.is_text {
                check_text(&fragments.payload)?;
            }
            let payload = Bytes::from(fragments.payload);
            return Ok(Some(data_message(fragments.is_text, payload)));
        }
        if payload.is_empty() {
            fragments.empty += 1;
            if fragments.empty > MAX_EMPTY_FRAGMENTS {
                return Err(FrameError::Protocol("a message has many empty fragments"));
            }
        }
        self.fragments = Some(fragments);
        Ok(None)
    }

    /// A payload as a message of its own. The last one in the buffer leaves in it, unless it would
    /// keep much more memory than it needs; others are copied.
    fn cut(&mut self, begin: usize, end: usize) -> Bytes {
        if end == self.buffer.len() && self.buffer.capacity() <= 2 * (end - begin) {
            self.start = 0;
            let mut bytes = Bytes::from(std::mem::take(&mut self.buffer));
            bytes.advance(begin);
            return bytes;
        }
        Bytes::copy_from_slice(self.buffer.get(begin..end).unwrap_or_default())
    }

    /// Gives the memory back once all is read.
    fn release(&mut self) {
        if self.start == self.buffer.len() {
            self.buffer = Vec::new();
            self.start = 0;
        }
    }

    fn discard_read(&mut self) {
        self.buffer.drain(..self.start);
        self.start = 0;
    }
}

fn check_text(payload: &[u8]) -> Result<(), FrameError> {
    match std::str::from_utf8(payload) {
        Ok(_) => Ok(()),
        Err(_) => Err(FrameError::NotUtf8("a text message is not UTF-8")),
    }
}

fn data_message(is_text: bool, payload: Bytes) -> Message {
    if is_text {
        Message::Text(Text::from_checked(payload))
    } else {
        Message::Binary(payload)
    }
}
