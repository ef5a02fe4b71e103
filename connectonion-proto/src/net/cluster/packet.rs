//! [`Packet`]: what two nodes send each other about one relayed connection, and its bytes.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use rpc_core::{CloseFrame, Text};

/// The bytes of a packet beside the contents of its frame, at most.
pub(crate) const OVERHEAD: usize = 32;

/// A relayed frame, or the end of the connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Frame {
    /// A text frame.
    Text(Text),
    /// A binary frame.
    Binary(Bytes),
    /// A Close. Nothing follows it.
    Close(Option<CloseFrame>),
    /// The connection was cut. Nothing follows it.
    Cut,
}

/// The kind of the frame that a piece belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Text,
    Binary,
    Close,
    Cut,
}

impl Kind {
    const ALL: [Self; 4] = [Self::Text, Self::Binary, Self::Close, Self::Cut];
}

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Packet {
    /// A piece of a frame.
    Data {
        /// The number of the piece in its direction, from 0.
        number: u64,
        kind: Kind,
        /// Whether the frame is complete with it.
        is_last: bool,
        bytes: Bytes,
    },
    /// What the receiver has got.
    Credit {
        /// The number of the piece that it expects next.
        expected: u64,
        /// The [cost](cost) of the pieces that it has passed on.
        passed: u64,
    },
    /// Asks for a `Credit`.
    Probe {
        /// The number of the piece that is sent next.
        next: u64,
    },
    /// The sender has given the connection up.
    Gone,
}

/// Returns what a piece counts for in the window: its memory, about.
pub(crate) const fn cost(bytes: usize) -> u64 {
    const EACH: u64 = 256;
    bytes as u64 + EACH
}

impl Packet {
    /// Encodes the packet for the connection with this id.
    pub(crate) fn encode(&self, id: u64) -> Bytes {
        let body = match self {
            Self::Data { bytes, .. } => bytes.len(),
            _ => 0,
        };
        let mut out = BytesMut::with_capacity(OVERHEAD + body);
        match self {
            Self::Data {
                number,
                kind,
                is_last,
                bytes,
            } => {
                out.put_u8(0);
                out.put_u64(id);
                out.put_u64(*number);
                out.put_u8(*kind as u8);
                out.put_u8(u8::from(*is_last));
                out.put_slice(bytes);
            }
            Self::Credit { expected, passed } => {
                out.put_u8(1);
                out.put_u64(id);
                out.put_u64(*expected);
                out.put_u64(*passed);
            }
            Self::Probe { next } => {
                out.put_u8(2);
                out.put_u64(id);
                out.put_u64(*next);
            }
            Self::Gone => {
                out.put_u8(3);
                out.put_u64(id);
            }
        }
        out.freeze()
    }

    /// Decodes a packet, and returns the id of its connection. `None` if it is none.
    pub(crate) fn decode(mut from: Bytes) -> Option<(u64, Self)> {
        let tag = from.try_get_u8().ok()?;
        let id = from.try_get_u64().ok()?;
        let packet = match tag {
            0 => {
                let number = from.try_get_u64().ok()?;
                let kind = *Kind::ALL.get(usize::from(from.try_get_u8().ok()?))?;
                let is_last = from.try_get_u8().ok()? != 0;
                Self::Data {
                    number,
                    kind,
                    is_last,
                    bytes: from,
                }
            }
            1 => Self::Credit {
                expected: from.try_get_u64().ok()?,
                passed: from.try_get_u64().ok()?,
            },
            2 => Self::Probe {
                next: from.try_get_u64().ok()?,
            },
            3 => Self::Gone,
            _ => return None,
        };
        Some((id, packet))
    }
}

impl Frame {
    /// Returns the kind and the contents.
    pub(crate) fn into_parts(self) -> (Kind, Bytes) {
        match self {
            Self::Text(text) => (Kind::Text, text.into_bytes()),
            Self::Binary(bytes) => (Kind::Binary, bytes),
            Self::Close(None) => (Kind::Close, Bytes::new()),
            Self::Close(Some(frame)) => {
                let mut bytes = BytesMut::with_capacity(2 + frame.reason.len());
                bytes.put_u16(frame.code);
                bytes.put_slice(frame.reason.as_bytes());
                (Kind::Close, bytes.freeze())
            }
            Self::Cut => (Kind::Cut, Bytes::new()),
        }
    }

    /// Puts a frame together. `None` if a text is not UTF-8.
    pub(crate) fn from_parts(kind: Kind, mut bytes: Bytes) -> Option<Self> {
        Some(match kind {
            Kind::Text => Self::Text(Text::new(bytes).ok()?),
            Kind::Binary => Self::Binary(bytes),
            Kind::Close => Self::Close(match bytes.try_get_u16() {
                Ok(code) => Some(CloseFrame::new(code, String::from_utf8_lossy(&bytes))),
                Err(_) => None,
            }),
            Kind::Cut => Self::Cut,
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packets() -> impl Strategy<Value = Packet> {
        prop_oneof![
            (any::<u64>(), 0..4_usize, any::<bool>(), any::<Vec<u8>>()).prop_map(
                |(number, kind, is_last, bytes)| Packet::Data {
                    number,
                    kind: Kind::ALL[kind],
                    is_last,
                    bytes: bytes.into(),
                }
            ),
            any::<(u64, u64)>().prop_map(|(expected, passed)| Packet::Credit { expected, passed }),
            any::<u64>().prop_map(|next| Packet::Probe { next }),
            Just(Packet::Gone),
        ]
    }

    proptest! {
        #[test]
        fn a_packet_is_read_as_it_was_written(id: u64, packet in packets()) {
            prop_assert_eq!(Packet::decode(packet.encode(id)), Some((id, packet)));
        }

        #[test]
        fn any_bytes_are_survived(bytes: Vec<u8>) {
            let _ = Packet::decode(bytes.into());
        }
    }

    #[test]
    fn a_frame_is_put_together_from_its_parts() {
        for frame in [
            Frame::Text("hé".into()),
            Frame::Binary(Bytes::from_static(b"\xff")),
            Frame::Close(None),
            Frame::Close(Some(CloseFrame::new(1012, "later"))),
            Frame::Cut,
        ] {
            let (kind, bytes) = frame.clone().into_parts();
            assert_eq!(Frame::from_parts(kind, bytes), Some(frame));
        }
        assert_eq!(
            Frame::from_parts(Kind::Text, Bytes::from_static(b"\xff")),
            None
        );
    }
}
