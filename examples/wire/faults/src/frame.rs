//! Frames, right or wrong: [`RawFrame`] to send, [`Received`] as they come.

use std::io::Cursor;

use rpc_core::net::ws::Role;
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::OpCode;

/// First bytes (RFC 6455, section 5.2): FIN and the opcode.
const FINAL: u8 = 0x80;
const TEXT: u8 = FINAL | 1;
const BINARY: u8 = FINAL | 2;
const CLOSE: u8 = FINAL | 8;
const PING: u8 = FINAL | 9;
const PONG: u8 = FINAL | 10;

const KEY: [u8; 4] = [1, 2, 3, 4];

/// A frame to send, right or wrong. Its side's mask is the default.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a frame is there to be sent"]
pub struct RawFrame {
    first: u8,
    payload: Vec<u8>,
    masked: Option<bool>,
    announced: Option<u64>,
}

impl RawFrame {
    /// A frame with this first byte: FIN, the reserved bits and the opcode.
    pub fn new(first: u8, payload: impl Into<Vec<u8>>) -> Self {
        Self {
            first,
            payload: payload.into(),
            masked: None,
            announced: None,
        }
    }

    /// A whole message of text, which need not be UTF-8.
    pub fn text(payload: impl Into<Vec<u8>>) -> Self {
        Self::new(TEXT, payload)
    }

    /// A whole binary message.
    pub fn binary(payload: impl Into<Vec<u8>>) -> Self {
        Self::new(BINARY, payload)
    }

    /// A ping.
    pub fn ping(payload: impl Into<Vec<u8>>) -> Self {
        Self::new(PING, payload)
    }

    /// A pong.
    pub fn pong(payload: impl Into<Vec<u8>>) -> Self {
        Self::new(PONG, payload)
    }

    /// A Close with this code and no reason.
    pub fn close(code: u16) -> Self {
        Self::new(CLOSE, code.to_be_bytes())
    }

    /// A continuation, the last one of its message or not.
    pub fn continuation(is_final: bool, payload: impl Into<Vec<u8>>) -> Self {
        Self::new(if is_final { FINAL } else { 0 }, payload)
    }

    /// The same frame as the first of several: without FIN.
    pub const fn unfinished(mut self) -> Self {
        self.first &= !FINAL;
        self
    }

    /// Masks, or does not, whatever the role asks for.
    pub const fn masked(mut self, masked: bool) -> Self {
        self.masked = Some(masked);
        self
    }

    /// Announces another length than the payload has.
    pub const fn announcing(mut self, len: u64) -> Self {
        self.announced = Some(len);
        self
    }

    /// The frame's bytes as this side sends them.
    #[must_use]
    pub fn into_bytes(mut self, role: Role) -> Vec<u8> {
        let has = |bit: u8| self.first & bit != 0;
        let header = FrameHeader {
            is_final: has(FINAL),
            rsv1: has(0x40),
            rsv2: has(0x20),
            rsv3: has(0x10),
            opcode: OpCode::from(self.first & 0xf),
            mask: self.masked.unwrap_or(role == Role::Client).then_some(KEY),
        };
        let len = self.announced.unwrap_or(self.payload.len() as u64);
        let mut bytes = Vec::new();
        // Writing to memory does not fail.
        let _ = header.format(len, &mut bytes);
        header.mask.inspect(|key| mask(&mut self.payload, *key));
        bytes.append(&mut self.payload);
        bytes
    }
}

/// Masks a payload, or takes its mask away.
pub fn mask(payload: &mut [u8], key: [u8; 4]) {
    // In pieces, which the compiler turns into a few instructions for many bytes.
    let (words, rest) = payload.as_chunks_mut();
    for word in words {
        *word = (u32::from_ne_bytes(*word) ^ u32::from_ne_bytes(key)).to_ne_bytes();
    }
    rest.iter_mut()
        .zip(key)
        .for_each(|(byte, key)| *byte ^= key);
}

/// A frame that came.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// FIN, the reserved bits and the opcode.
    pub first: u8,
    /// The payload, without its mask.
    pub payload: Vec<u8>,
}

impl Received {
    /// The first frame of these bytes and its length; `None` if it is not complete, or no frame.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut cursor = Cursor::new(bytes);
        let (header, len) = FrameHeader::parse(&mut cursor).ok()??;
        let start = usize::try_from(cursor.position()).ok()?;
        let end = start.checked_add(usize::try_from(len).ok()?)?;
        let mut payload = bytes.get(start..end)?.to_vec();
        header.mask.inspect(|key| mask(&mut payload, *key));
        let first = *bytes.first()?;
        Some((Self { first, payload }, end))
    }

    /// The text of a whole message; `None` for any other frame.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        let text = (self.first == TEXT).then_some(&self.payload)?;
        std::str::from_utf8(text).ok()
    }

    /// Whether this is a ping.
    #[must_use]
    pub const fn is_ping(&self) -> bool {
        self.first == PING
    }

    /// Whether this is a pong.
    #[must_use]
    pub const fn is_pong(&self) -> bool {
        self.first == PONG
    }

    /// The code of a Close, 1005 if it has none; `None` for any other frame.
    #[must_use]
    pub fn close_code(&self) -> Option<u16> {
        let code = self.payload.first_chunk().copied();
        (self.first == CLOSE).then(|| code.map_or(1005, u16::from_be_bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_frames_round_trip() {
        for len in [0, 125, 126, 65_535, 65_536] {
            for role in [Role::Client, Role::Server] {
                let payload = vec![7; len];
                let bytes = RawFrame::binary(payload.clone()).into_bytes(role);
                let (frame, used) = Received::parse(&bytes).unwrap();
                assert_eq!((frame.payload, used), (payload, bytes.len()));
                assert_eq!(Received::parse(&bytes[..bytes.len() - 1]), None);
            }
        }
    }
}
