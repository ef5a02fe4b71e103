//! [`FrameWriter`]: messages in, bytes out.

use std::io;

use bytes::{Buf as _, Bytes};

use super::header::{Header, Opcode};
use super::{close, mask};
use crate::message::CloseFrame;
use crate::net::ws::Role;

/// From this length on a payload that needs no mask is written from where it is.
const LARGE: usize = 16 * 1024;

/// Encodes what goes to a peer, and holds it until it is written.
#[derive(Debug)]
pub(crate) struct FrameWriter {
    role: Role,
    /// What a buffer holds that has to grow.
    gather: usize,
    /// Frames to write; up to `written` they are. Without memory once all of them are.
    pub(super) buffer: Vec<u8>,
    written: usize,
    /// A large payload that follows the buffer.
    tail: Bytes,
}

impl FrameWriter {
    /// A writer for this side of a connection, which gathers about so many bytes.
    pub(crate) const fn new(role: Role, gather: usize) -> Self {
        Self {
            role,
            gather,
            buffer: Vec::new(),
            written: 0,
            tail: Bytes::new(),
        }
    }

    /// Bytes that wait to be written.
    pub(crate) const fn len(&self) -> usize {
        self.buffer.len() - self.written + self.tail.len()
    }

    /// Adds a frame that is a whole message.
    ///
    /// # Errors
    /// If there is no randomness for a mask; then nothing was added.
    pub(crate) fn push(&mut self, opcode: Opcode, payload: Bytes) -> io::Result<()> {
        let mask = match self.role {
            Role::Client => Some(mask::new_key()?),
            Role::Server => None,
        };
        self.copy_tail();
        let header = Header {
            is_final: true,
            opcode,
            mask,
            len: payload.len() as u64,
        };
        if mask.is_none() && payload.len() >= LARGE {
            self.reserve(Header::MAX);
            header.put(&mut self.buffer);
            self.tail = payload;
            return Ok(());
        }
        self.reserve(Header::MAX + payload.len());
        header.put(&mut self.buffer);
        let begin = self.buffer.len();
        self.buffer.extend_from_slice(&payload);
        if let (Some(key), Some(payload)) = (mask, self.buffer.get_mut(begin..)) {
            mask::apply(key, payload);
        }
        Ok(())
    }

    /// Adds a Close. A code that must not be sent is left out.
    ///
    /// # Errors
    /// As [`push`](Self::push).
    pub(crate) fn push_close(&mut self, frame: Option<CloseFrame>) -> io::Result<()> {
        self.push(Opcode::Close, close::payload(frame).into())
    }

    /// What is to be written, in two pieces.
    pub(crate) fn pieces(&self) -> [&[u8]; 2] {
        [
            self.buffer.get(self.written..).unwrap_or_default(),
            &self.tail,
        ]
    }

    /// So many bytes were written.
    pub(crate) fn advance(&mut self, n: usize) {
        let of_buffer = n.min(self.buffer.len() - self.written);
        self.written += of_buffer;
        self.tail.advance((n - of_buffer).min(self.tail.len()));
        if self.written == self.buffer.len() {
            self.buffer = Vec::new();
            self.written = 0;
        }
        if self.tail.is_empty() {
            self.tail = Bytes::new();
        }
    }

    /// What follows a large payload has to wait behind it, so what is left of it joins the buffer.
    fn copy_tail(&mut self) {
        if !self.tail.is_empty() {
            let tail = std::mem::take(&mut self.tail);
            self.reserve(tail.len());
            self.buffer.extend_from_slice(&tail);
        }
    }

    /// A lone frame gets what it needs. With a second one there is a burst, which gets a whole buffer.
    fn reserve(&mut self, more: usize) {
        if self.buffer.is_empty() {
            self.buffer.reserve_exact(more);
        } else if self.buffer.capacity() - self.buffer.len() < more {
            self.buffer.drain(..self.written);
            self.written = 0;
            self.buffer.reserve(more.max(self.gather));
        }
    }
}
