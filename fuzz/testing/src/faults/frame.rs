//! The frames of a [`RawPeer`](super::RawPeer), right or wrong: [`RawFrame`], [`Received`].

use rpc_core::net::ws::Role;

/// Opcodes (RFC 6455, section 5.2).
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

const FINAL: u8 = 0x80;
const MASKED: u8 = 0x80;
const KEY: [u8; 4] = [1, 2, 3, 4];

/// A frame to send, right or wrong. [`RawPeer::frame`](super::RawPeer::frame) masks it if its side
/// has to, by default.
#[derive(Clone, Debug)]
#[must_use = "a frame is sent by `RawPeer::frame`"]
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
        Self::new(FINAL | TEXT, payload)
    }

    /// A whole binary message.
    pub fn binary(payload: impl Into<Vec<u8>>) -> Self {
        Self::new(FINAL | BINARY, payload)
    }

    /// A ping.
    pub fn ping(payload: impl Into<Vec<u8>>) -> Self {
        Self::new(FINAL | PING, payload)
    }

    /// A pong.
    pub fn pong(payload: impl Into<Vec<u8>>) -> Self {
        Self::new(FINAL | PONG, payload)
    }

    /// A Close with this code and no reason.
    pub fn close(code: u16) -> Self {
        Self::new(FINAL | CLOSE, code.to_be_bytes())
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
    pub fn into_bytes(self, role: Role) -> Vec<u8> {
        let Self {
            first,
            mut payload,
            masked,
            announced,
        } = self;
        let is_masked = masked.unwrap_or(role == Role::Client);
        let len = announced.unwrap_or(payload.len() as u64);
        let bit = if is_masked { MASKED } else { 0 };
        let mut bytes = vec![first];
        match (u8::try_from(len), u16::try_from(len)) {
            (Ok(short @ ..126), _) => bytes.push(bit | short),
            (_, Ok(middle)) => {
                bytes.push(bit | 126);
                bytes.extend_from_slice(&middle.to_be_bytes());
            }
            _ => {
                bytes.push(bit | 127);
                bytes.extend_from_slice(&len.to_be_bytes());
            }
        }
        if is_masked {
            bytes.extend_from_slice(&KEY);
            for (byte, key) in payload.iter_mut().zip(KEY.iter().cycle()) {
                *byte ^= key;
            }
        }
        bytes.append(&mut payload);
        bytes
    }
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
    /// The text of a whole message; `None` for any other frame.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match self.first {
            0x81 => std::str::from_utf8(&self.payload).ok(),
            _ => None,
        }
    }

    /// Whether this is a ping.
    #[must_use]
    pub const fn is_ping(&self) -> bool {
        self.first == FINAL | PING
    }

    /// Whether this is a pong.
    #[must_use]
    pub const fn is_pong(&self) -> bool {
        self.first == FINAL | PONG
    }

    /// The code of a Close, 1005 if it has none; `None` for any other frame.
    #[must_use]
    pub fn close_code(&self) -> Option<u16> {
        (self.first == FINAL | CLOSE).then(|| match self.payload.first_chunk() {
            Some(code) => u16::from_be_bytes(*code),
            None => 1005,
        })
    }
}

/// The first frame of these bytes and its length; `None` if it is not complete.
pub(super) fn parse(bytes: &[u8]) -> Option<(Received, usize)> {
    let (&[first, second], rest) = bytes.split_first_chunk()?;
    let (len, rest) = match second & !MASKED {
        126 => {
            let (len, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*len)), rest)
        }
        127 => {
            let (len, rest) = rest.split_first_chunk()?;
            (usize::try_from(u64::from_be_bytes(*len)).ok()?, rest)
        }
        short => (usize::from(short), rest),
    };
    let (key, rest) = if second & MASKED == 0 {
        ([0; 4], rest)
    } else {
        let (key, rest) = rest.split_first_chunk()?;
        (*key, rest)
    };
    let mut payload = rest.get(..len)?.to_vec();
    for (byte, key) in payload.iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
    let used = bytes.len() - rest.len() + len;
    Some((Received { first, payload }, used))
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
                let (frame, used) = parse(&bytes).unwrap();
                assert_eq!((frame.payload, used), (payload, bytes.len()));
                assert_eq!(parse(&bytes[..bytes.len() - 1]), None);
            }
        }
    }
}
