//! WebSocket messages as bytes (RFC 6455, sections 5 to 8), without a socket.
//!
//! A [`FrameReader`] takes bytes as they come and gives messages, a [`FrameWriter`] takes messages
//! and gives bytes. Neither holds memory while nothing is under way. The closing handshake and the
//! answers to pings are [`WsStream`](super::WsStream)'s.

mod close;
mod header;
mod mask;
mod reader;
mod writer;

pub(crate) use header::Opcode;
pub(crate) use reader::FrameReader;
pub(crate) use writer::FrameWriter;

use crate::message::CloseFrame;

/// Longest payload of a control frame in bytes.
pub(crate) const MAX_CONTROL: usize = 125;

/// Why the peer's bytes are not taken. The connection has to be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameError {
    /// Broken rules of the framing.
    Protocol(&'static str),
    /// Text that is not UTF-8.
    NotUtf8(&'static str),
    /// A message over the limit.
    TooLarge,
}

impl FrameError {
    /// The code of the Close that says so to the peer.
    pub(crate) const fn close_code(self) -> u16 {
        match self {
            Self::Protocol(_) => CloseFrame::PROTOCOL_ERROR,
            Self::NotUtf8(_) => 1007,
            Self::TooLarge => CloseFrame::TOO_BIG,
        }
    }
}

#[cfg(test)]
mod tests;
