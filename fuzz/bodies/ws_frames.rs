//! The WebSocket framing beside tungstenite's: the same bytes give the same messages.
//!
//! The body stands here and not in the library, because the library does not depend on tungstenite.

use std::io::{self, Read, Write};

use rpc_core::fuzzing::ws::{Outcome, read, write};
use rpc_core::message::{CloseFrame, Text};
use rpc_core::net::Message;
use rpc_core::net::ws::Role;
use tungstenite::protocol::{self, WebSocket, WebSocketConfig};
use tungstenite::{Error, Message as Theirs};

/// Small, so that short inputs reach it.
const MAX: usize = 300;

/// What we refuse and tungstenite takes: of control frames those whose length has a longer form.
const STRICTER: [&str; 4] = [
    "a control frame is longer than 125 bytes",
    "a length is not in its shortest form",
    "a length has its highest bit set",
    "a message has many empty fragments",
];
/// Tungstenite hands out another Close instead.
const BAD_CODE: &str = "a Close has a code that is not sent";
/// In the registry of codes, but not known to tungstenite.
const BAD_GATEWAY: u16 = 1014;

/// Decodes bytes with both and compares, then encodes what came and lets tungstenite decode it.
///
/// The first byte holds settings: bit 0, we are the client; bit 1, the input is a list of frames
/// (first byte, length, payload), which get the rest of their headers here, else it is what is on the
/// line; bits 2 to 4, how many bytes of chunk sizes follow.
pub(crate) fn ws_frames(input: &[u8]) {
    let Some((&settings, rest)) = input.split_first() else {
        return;
    };
    let role = match settings & 1 {
        0 => Role::Server,
        _ => Role::Client,
    };
    let count = usize::from(settings >> 2 & 7).min(rest.len());
    let (sizes, rest) = rest.split_at(count);
    let line = match settings & 2 {
        0 => rest.to_vec(),
        _ => frames(role, rest),
    };
    let ours = read(role, MAX, chunks(&line, sizes).into_iter());
    let whole = read(role, MAX, [line.as_slice()].into_iter());
    assert_eq!(ours.messages, whole.messages, "chunking");
    assert_eq!(ours.refused, whole.refused, "chunking");
    if matches!(ours.messages.last(), Some(Message::Close(Some(frame))) if frame.code == BAD_GATEWAY)
    {
        return;
    }
    compare(&ours, role, line);

    for (role, peer) in [(Role::Client, Role::Server), (Role::Server, Role::Client)] {
        let line = write(role, &ours.messages);
        let theirs = reference(peer, &line);
        assert_eq!(theirs.messages, ours.messages, "what we write");
        assert!(theirs.refused.is_none(), "{:?}", theirs.refused);
    }
}

fn compare(ours: &Outcome, role: Role, mut line: Vec<u8>) {
    let mut theirs = reference(role, &line);
    if ours.refused.is_some() && theirs.refused.is_none() {
        // We refuse a header, they the whole frame.
        line.resize(line.len() + MAX + 14, 0);
        theirs = reference(role, &line);
    }
    let common = ours.messages.len().min(theirs.messages.len());
    let (same, more) = ours.messages.split_at(common);
    let (theirs_same, theirs_more) = theirs.messages.split_at(common);
    assert_eq!(same, theirs_same);
    // They look at every fragment, we at the whole message: until it ends, only what comes between
    // its fragments may be handed out.
    let is_data = |message: &Message| matches!(message, Message::Text(_) | Message::Binary(_));
    let only_between = !more.iter().any(is_data);
    match (ours.refused, theirs.refused.as_ref()) {
        (Some(why), Some(Error::Utf8(_))) if STRICTER.contains(&why) => assert!(only_between),
        (Some(why), _) if STRICTER.contains(&why) => assert!(more.is_empty()),
        (Some(BAD_CODE), _) => {
            let other = matches!(theirs_more, [Message::Close(Some(frame))] if frame.code == 1002);
            assert!(other || theirs.refused.is_some());
        }
        (_, Some(Error::Utf8(_))) => assert!(theirs_more.is_empty() && only_between),
        (ours, theirs) => {
            assert!(more.is_empty() && theirs_more.is_empty());
            assert_eq!(ours.is_some(), theirs.is_some(), "{ours:?}, {theirs:?}");
        }
    }
}

/// What tungstenite says to the same bytes.
struct Reference {
    messages: Vec<Message>,
    refused: Option<Error>,
}

fn reference(role: Role, line: &[u8]) -> Reference {
    let role = match role {
        Role::Client => protocol::Role::Client,
        Role::Server => protocol::Role::Server,
    };
    let config = WebSocketConfig::default()
        .read_buffer_size(64)
        .max_message_size(Some(MAX))
        .max_frame_size(Some(MAX));
    let mut socket = WebSocket::from_raw_socket(Line(line), role, Some(config));
    let mut messages = Vec::new();
    let refused = loop {
        let message = match socket.read() {
            Ok(Theirs::Text(text)) => Message::Text(Text::from(text.as_str())),
            Ok(Theirs::Binary(bytes)) => Message::Binary(bytes),
            Ok(Theirs::Ping(bytes)) => Message::Ping(bytes),
            Ok(Theirs::Pong(bytes)) => Message::Pong(bytes),
            Ok(Theirs::Close(frame)) => {
                let frame =
                    frame.map(|frame| CloseFrame::new(frame.code.into(), frame.reason.as_str()));
                messages.push(Message::Close(frame));
                break None;
            }
            Ok(Theirs::Frame(_)) => panic!("never read"),
            Err(Error::Io(_)) => break None,
            Err(error) => break Some(error),
        };
        messages.push(message);
    };
    Reference { messages, refused }
}

/// Gives bytes, and waits for more at their end; what is written is lost.
struct Line<'a>(&'a [u8]);

impl Read for Line<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::ErrorKind::WouldBlock.into()),
            n => Ok(n),
        }
    }
}

impl Write for Line<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Frames with correct lengths, masked where the peer of `role` has to.
fn frames(role: Role, mut list: &[u8]) -> Vec<u8> {
    let mut line = Vec::new();
    while let [first, len, rest @ ..] = list {
        let (payload, after) = rest.split_at(usize::from(*len).min(rest.len()));
        list = after;
        line.push(*first);
        let masked = if role == Role::Server { 0x80 } else { 0 };
        // It came as one byte, and there may be less.
        match u8::try_from(payload.len()).unwrap_or(u8::MAX) {
            len @ ..126 => line.push(masked | len),
            len => line.extend_from_slice(&[masked | 126, 0, len]),
        }
        if masked == 0 {
            line.extend_from_slice(payload);
        } else {
            let key = [*first, *len, 0x5a, 0xa5];
            line.extend_from_slice(&key);
            line.extend(payload.iter().zip(key.iter().cycle()).map(|(a, b)| a ^ b));
        }
    }
    line
}

/// The line in chunks of these sizes, over and over; in one piece if there are none.
fn chunks<'a>(mut line: &'a [u8], sizes: &[u8]) -> Vec<&'a [u8]> {
    if sizes.is_empty() {
        return vec![line];
    }
    let mut chunks = Vec::new();
    for size in sizes.iter().cycle() {
        if line.is_empty() {
            break;
        }
        let (chunk, after) = line.split_at(usize::from(*size).clamp(1, line.len()));
        chunks.push(chunk);
        line = after;
    }
    chunks
}
