//! The header of a frame (RFC 6455, section 5.2).

use super::{FrameError, MAX_CONTROL};
use crate::net::ws::Role;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl Opcode {
    const fn from_bits(bits: u8) -> Option<Self> {
        match bits {
            0 => Some(Self::Continuation),
            1 => Some(Self::Text),
            2 => Some(Self::Binary),
            8 => Some(Self::Close),
            9 => Some(Self::Ping),
            10 => Some(Self::Pong),
            _ => None,
        }
    }

    pub(super) const fn is_control(self) -> bool {
        matches!(self, Self::Close | Self::Ping | Self::Pong)
    }
}

const FINAL: u8 = 0x80;
const RESERVED: u8 = 0x70;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;
/// Values of the 7-bit length that announce a longer one.
const LEN_16: u8 = 126;
const LEN_64: u8 = 127;

/// The header of one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    /// Whether the message ends with this frame.
    pub(super) is_final: bool,
    pub(super) opcode: Opcode,
    /// The key of a masked payload.
    pub(super) mask: Option<[u8; 4]>,
    /// Bytes of payload that follow.
    pub(super) len: u64,
}

impl Header {
    /// Most bytes that a header has.
    pub(super) const MAX: usize = 14;

    /// Reads the header at the start of `bytes`, which come from the peer of `role`, and says how
    /// long it is. `None` if it is not complete yet; what is wrong is reported as soon as it is seen.
    pub(super) fn parse(bytes: &[u8], role: Role) -> Result<Option<(Self, usize)>, FrameError> {
        let Some((&[first, second], rest)) = bytes.split_first_chunk() else {
            return Ok(None);
        };
        if first & RESERVED != 0 {
            return Err(FrameError::Protocol("reserved bits are set"));
        }
        let opcode = Opcode::from_bits(first & OPCODE)
            .ok_or(FrameError::Protocol("a reserved opcode is used"))?;
        let is_final = first & FINAL != 0;
        let is_masked = second & MASKED != 0;
        if is_masked != (role == Role::Server) {
            return Err(FrameError::Protocol(match role {
                Role::Server => "a frame of the client is not masked",
                Role::Client => "a frame of the server is masked",
            }));
        }
        let short = second & !MASKED;
        if opcode.is_control() {
            if !is_final {
                return Err(FrameError::Protocol("a control frame is fragmented"));
            }
            if usize::from(short) > MAX_CONTROL {
                return Err(FrameError::Protocol(
                    "a control frame is longer than 125 bytes",
                ));
            }
        }
        let Some((len, rest)) = parse_len(short, rest)? else {
            return Ok(None);
        };
        let (mask, rest) = if is_masked {
            let Some((&key, rest)) = rest.split_first_chunk() else {
                return Ok(None);
            };
            (Some(key), rest)
        } else {
            (None, rest)
        };
        let header = Self {
            is_final,
            opcode,
            mask,
            len,
        };
        Ok(Some((header, bytes.len() - rest.len())))
    }

    /// Appends the header in its shortest form.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        let first = if self.is_final { FINAL } else { 0 } | self.opcode as u8;
        let masked = if self.mask.is_some() { MASKED } else { 0 };
        if let Ok(len @ ..LEN_16) = u8::try_from(self.len) {
            out.extend_from_slice(&[first, masked | len]);
        } else if let Ok(len) = u16::try_from(self.len) {
            let [high, low] = len.to_be_bytes();
            out.extend_from_slice(&[first, masked | LEN_16, high, low]);
        } else {
            out.extend_from_slice(&[first, masked | LEN_64]);
            out.extend_from_slice(&self.len.to_be_bytes());
        }
        if let Some(key) = self.mask {
            out.extend_from_slice(&key);
        }
    }
}

/// The payload's length and what follows it.
fn parse_len(short: u8, bytes: &[u8]) -> Result<Option<(u64, &[u8])>, FrameError> {
    let (len, least, rest) = match short {
        LEN_16 => match bytes.split_first_chunk() {
            Some((&len, rest)) => (u64::from(u16::from_be_bytes(len)), u64::from(LEN_16), rest),
            None => return Ok(None),
        },
        LEN_64 => match bytes.split_first_chunk() {
            Some((&len, rest)) => (u64::from_be_bytes(len), 1 << 16, rest),
            None => return Ok(None),
        },
        short => (u64::from(short), 0, bytes),
    };
    if len < least {
        return Err(FrameError::Protocol("a length is not in its shortest form"));
    }
    if len >> 63 != 0 {
        return Err(FrameError::Protocol("a length has its highest bit set"));
    }
    Ok(Some((len, rest)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(bytes: &[u8]) -> Result<Option<(Header, usize)>, FrameError> {
        Header::parse(bytes, Role::Client)
    }

    #[test]
    fn what_is_put_is_parsed_again_at_every_length() {
        for len in [0, 1, 125, 126, 127, 65_535, 65_536, 1 << 40, (1 << 63) - 1] {
            for mask in [None, Some([1, 2, 3, 4])] {
                let header = Header {
                    is_final: len % 2 == 0,
                    opcode: Opcode::Binary,
                    mask,
                    len,
                };
                let mut bytes = Vec::new();
                header.put(&mut bytes);
                assert!(bytes.len() <= Header::MAX);
                let role = if mask.is_some() {
                    Role::Server
                } else {
                    Role::Client
                };
                let size = bytes.len();
                bytes.push(0xff);
                assert_eq!(Header::parse(&bytes, role), Ok(Some((header, size))));
                for cut in 0..size {
                    assert_eq!(Header::parse(&bytes[..cut], role), Ok(None), "{cut}");
                }
            }
        }
    }

    #[test]
    fn each_reserved_bit_is_refused() {
        for bit in [0x40, 0x20, 0x10] {
            assert!(parse(&[0x81 | bit, 0]).is_err());
        }
    }

    #[test]
    fn each_reserved_opcode_is_refused() {
        for opcode in (3..8).chain(11..16) {
            assert!(parse(&[0x80 | opcode, 0]).is_err(), "{opcode}");
        }
    }

    #[test]
    fn a_client_takes_no_masked_frame_and_a_server_no_other() {
        assert!(Header::parse(&[0x81, 0x80, 0, 0, 0, 0], Role::Client).is_err());
        assert!(Header::parse(&[0x81, 0x00], Role::Server).is_err());
    }

    #[test]
    fn a_control_frame_is_neither_fragmented_nor_long() {
        for opcode in [8, 9, 10] {
            assert!(parse(&[opcode, 0]).is_err());
            assert!(parse(&[0x80 | opcode, 126]).is_err());
            assert!(parse(&[0x80 | opcode, 125]).is_ok());
        }
    }

    #[test]
    fn a_length_has_its_shortest_form() {
        assert!(parse(&[0x82, 126, 0, 125]).is_err());
        assert!(parse(&[0x82, 126, 0, 126]).is_ok());
        assert!(parse(&[0x82, 127, 0, 0, 0, 0, 0, 0, 0xff, 0xff]).is_err());
        assert!(parse(&[0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0]).is_ok());
    }

    #[test]
    fn a_length_with_the_highest_bit_is_refused() {
        assert!(parse(&[0x82, 127, 0x80, 0, 0, 0, 0, 0, 0, 0]).is_err());
    }
}
