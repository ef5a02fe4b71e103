//! The reader of frames beside tungstenite's, which passes the Autobahn suite.

use std::collections::VecDeque;
use std::io::{self, Read, Write};

use proptest::prelude::*;
use rpc_core::CloseFrame;
use rpc_core::net::Message;
use rpc_core::net::ws::Role;
use switchboard_testing::faults::RawFrame;
use tokio_tungstenite::tungstenite::error::Error;
use tokio_tungstenite::tungstenite::protocol::{WebSocketConfig, WebSocketContext};
use tokio_tungstenite::tungstenite::{self as reference};

use crate::ws_frames::{MAX, ROLES, outcome, pieces, run, text};

/// The messages that were read, and the close code with which what follows them was refused.
type Reading = (Vec<Message>, Option<u16>);

/// A peer of which each read takes one of these pieces.
struct Peer(VecDeque<Vec<u8>>);

impl Read for Peer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(mut piece) = self.0.pop_front() else {
            return Ok(0);
        };
        let here = piece.len().min(buffer.len());
        buffer[..here].copy_from_slice(&piece[..here]);
        piece.drain(..here);
        if !piece.is_empty() {
            self.0.push_front(piece);
        }
        Ok(here)
    }
}

impl Write for Peer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn by_reference(role: Role, pieces: &[&[u8]]) -> Reading {
    // Of a frame that breaks two rules, the size is not the first.
    let config = WebSocketConfig::default().max_frame_size(None);
    let config = config.max_message_size(Some(MAX));
    let mut context = WebSocketContext::new(role, Some(config));
    let mut peer = Peer(pieces.iter().map(|piece| piece.to_vec()).collect());
    let mut messages = Vec::new();
    loop {
        messages.push(match context.read(&mut peer) {
            Ok(reference::Message::Text(it)) => text(&it),
            Ok(reference::Message::Binary(it)) => Message::Binary(it),
            Ok(reference::Message::Ping(it)) => Message::Ping(it),
            Ok(reference::Message::Pong(it)) => Message::Pong(it),
            // So it replaces a code that is not for the wire.
            Ok(reference::Message::Close(Some(it))) if it.reason == "Protocol violation" => {
                return (messages, Some(1002));
            }
            Ok(reference::Message::Close(close)) => {
                let close = close.map(|it| CloseFrame::new(it.code.into(), &*it.reason));
                messages.push(Message::Close(close));
                return (messages, None);
            }
            Ok(reference::Message::Frame(_)) => unreachable!("it is for writing only"),
            Err(Error::Protocol(reference::error::ProtocolError::ResetWithoutClosingHandshake)) => {
                return (messages, None);
            }
            Err(Error::Protocol(_)) => return (messages, Some(1002)),
            Err(Error::Utf8(_)) => return (messages, Some(1007)),
            Err(Error::Capacity(_)) => return (messages, Some(1009)),
            Err(error) => panic!("{error}"),
        });
    }
}

fn by_ours(role: Role, pieces: &[&[u8]]) -> Reading {
    let outcome = run(outcome(role, pieces.iter().copied()));
    let code = outcome.error.map(|_| match (role, &outcome.replies[..]) {
        (Role::Server, [.., 0x88, 2, c, d]) => u16::from_be_bytes([*c, *d]),
        (Role::Client, [.., 0x88, 0x82, a, b, _, _, c, d]) => u16::from_be_bytes([a ^ c, b ^ d]),
        (_, reported) => panic!("{reported:?}"),
    });
    (outcome.messages, code)
}

/// A payload that may be cut within a character.
fn payload() -> impl Strategy<Value = Vec<u8>> {
    let good = "a κόσμε € 𝄞".as_bytes();
    prop_oneof![
        6 => (0..=good.len(), 0..=good.len())
            .prop_map(|(a, b)| good[a.min(b)..a.max(b)].to_vec()),
        6 => "[a-z]{0,3}|.{0,50}".prop_map(String::into_bytes),
        1 => prop::collection::vec(any::<u8>(), 0..5),
        1 => (120_usize..140).prop_map(|len| vec![b'x'; len]),
        1 => prop::sample::select(vec![1023, 1024, 1025, 65_535, 65_536, MAX, MAX + 1])
            .prop_map(|len| vec![b'x'; len]),
    ]
}

/// A frame as a peer in this role sends it, mostly a right one.
fn frame(role: Role) -> impl Strategy<Value = Vec<u8>> {
    let first = prop_oneof![
        40 => prop::sample::select(vec![0x81, 0x01, 0x82, 0x02]),
        60 => prop::sample::select(vec![0x00, 0x00, 0x80]),
        20 => prop::sample::select(vec![0x89, 0x8a]),
        4 => any::<u8>(),
    ];
    let code = prop_oneof![
        prop::sample::select(vec![
            1000, 1003, 1004, 1005, 1006, 1007, 1013, 1015, 3000, 4999
        ]),
        // Tungstenite does not know 1014.
        any::<u16>().prop_filter("", |code| *code != 1014),
    ];
    let close = (code, payload()).prop_map(|(code, reason)| {
        RawFrame::new(0x88, [&code.to_be_bytes()[..], &reason].concat())
    });
    let right = (first, payload()).prop_map(|(first, payload)| RawFrame::new(first, payload));
    let frame = prop_oneof![
        30 => right.prop_map(move |frame| frame.into_bytes(role)),
        1 => close.prop_map(move |frame| frame.into_bytes(role)),
        1 => (payload(), any::<bool>())
            .prop_map(move |(it, masked)| RawFrame::text(it).masked(masked).into_bytes(role)),
    ];
    (frame, prop::bool::weighted(0.1)).prop_map(|(mut bytes, is_long)| {
        let len = bytes[1] & 0x7f;
        if is_long && len < 126 {
            // The length is longer than it needs to be.
            bytes.splice(1..2, [bytes[1] & 0x80 | 126, 0, len]);
        }
        bytes
    })
}

fn frames() -> impl Strategy<Value = (usize, Vec<Vec<u8>>)> {
    (0..ROLES.len()).prop_flat_map(|at| {
        let frames = prop::collection::vec(frame(ROLES[at].1), 0..20);
        frames.prop_map(move |frames| (at, frames))
    })
}

proptest! {
    #[test]
    fn any_frames_in_any_pieces_are_read_as_by_tungstenite(
        (at, frames) in frames(),
        sizes in prop::collection::vec(1_usize..2000, 1..8),
        small in prop::collection::vec(1_usize..9, 0..4),
    ) {
        let bytes = frames.concat();
        let sizes = [small, sizes].concat();
        let pieces = pieces(&bytes, &sizes);
        let ours = by_ours(ROLES[at].0, &pieces);
        prop_assert_eq!(ours, by_reference(ROLES[at].0, &pieces));
    }
}

#[test]
fn a_length_that_no_message_has_is_refused_at_once() {
    for announced in [1 << 63, u64::MAX, MAX as u64 + 1] {
        for (role, other) in ROLES {
            let bytes = RawFrame::binary([]).announcing(announced).into_bytes(other);
            assert_eq!(by_ours(role, &[&bytes]), (Vec::new(), Some(1009)));
        }
    }
}
