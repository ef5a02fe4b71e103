//! [`Breach`]: frames that no peer may send.

use rpc_core::net::ws::Role;
use switchboard_faults::{Fault, RawFrame};

/// A rule of frames.
#[derive(Clone, Copy, Debug)]
pub(super) enum Breach {
    /// The largest message.
    Size,
    /// Text is UTF-8.
    Text,
    /// Clients mask, and servers do not.
    Mask,
    /// The others of RFC 6455, section 5.
    Frame,
}

impl Breach {
    /// The code of the Close that answers it.
    pub(super) const fn code(self) -> u16 {
        match self {
            Self::Size => 1009,
            Self::Text => 1007,
            Self::Mask | Self::Frame => 1002,
        }
    }

    /// Every way to break it, as a peer of this role whose messages have so many bytes at most.
    pub(super) fn faults(self, role: Role, max: usize) -> Vec<Fault> {
        let text = |payload: &[u8]| RawFrame::text(payload);
        let part = || vec![b' '; max / 2 + 1];
        let wrong_mask = role != Role::Client;
        let all = match self {
            Self::Size => vec![
                // In one frame, of which the other end sees the header first, or in several.
                vec![text(b"").announcing(max as u64 + 1)],
                vec![text(b"x").announcing(1 << 40)],
                vec![RawFrame::text(vec![b' '; max + 1])],
                vec![RawFrame::text(vec![b'x'; 64 * max])],
                vec![
                    RawFrame::text(part()).unfinished(),
                    RawFrame::continuation(true, part()),
                ],
                vec![
                    RawFrame::text(part()).unfinished(),
                    RawFrame::continuation(false, part()),
                    RawFrame::continuation(true, part()),
                ],
            ],
            Self::Text => vec![
                vec![text(b"{\"type\":\"\xff\"}")],
                // Over the border of two frames.
                vec![
                    text(b"\xe2\x82").unfinished(),
                    RawFrame::continuation(true, "("),
                ],
                vec![
                    text(b"\xe2\x82").unfinished(),
                    RawFrame::continuation(true, ""),
                ],
                // The reason of a Close.
                vec![RawFrame::new(0x88, b"\x03\xe8\xff")],
            ],
            Self::Mask => vec![
                vec![text(b"{\"type\":\"x\"}").masked(wrong_mask)],
                vec![RawFrame::ping("").masked(wrong_mask)],
            ],
            Self::Frame => vec![
                // Reserved bits, a reserved opcode.
                vec![RawFrame::new(0xc1, "{}")],
                vec![RawFrame::new(0x83, "{}")],
                // A continuation of nothing, a message within a message.
                vec![RawFrame::continuation(true, "{}")],
                vec![text(b"{").unfinished(), text(b"{}")],
                vec![text(b"{").unfinished(), text(b"{").unfinished()],
                // Control frames that are in pieces, long, or broken.
                vec![RawFrame::ping("").unfinished()],
                vec![RawFrame::ping([0; 126])],
                vec![RawFrame::new(0x88, [3])],
            ],
        };
        all.into_iter().map(Fault::Frames).collect()
    }
}
