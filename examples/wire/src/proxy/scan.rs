//! [`Scanner`]: the messages in a stream of WebSocket bytes (RFC 6455), for a proxy that passes the
//! bytes on as they are.

use std::io::Cursor;

use crate::transcript::Kind;
use bytes::{Buf as _, Bytes, BytesMut};
use data_encoding::HEXLOWER;
use switchboard_faults::mask;
use tokio_tungstenite::tungstenite::protocol::frame::FrameHeader;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Control, Data, OpCode};

/// The longest message that is put together, in bytes.
pub(crate) const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// A message as it is recorded: a note is of bytes that are not one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message {
    /// What it is.
    pub kind: Kind,
    /// Text, in which what is not UTF-8 is replaced; the digits of bytes; the reason of a Close.
    pub data: String,
    /// The code of a Close.
    pub code: Option<u16>,
}

impl Message {
    fn new(kind: Kind, data: impl Into<String>) -> Self {
        Self {
            kind,
            data: data.into(),
            code: None,
        }
    }
}

/// A reader of the messages in the bytes that one side sends. Holds at most one message.
#[derive(Debug, Default)]
pub(crate) struct Scanner {
    bytes: BytesMut,
    /// The message whose frames are still coming: its kind and its payload so far.
    partial: Option<(Data, Vec<u8>)>,
    /// Bytes of a long frame that are still to be skipped.
    skip: u64,
    is_lost: bool,
    /// The bytes of the messages, if they are wanted: of the last one, and of the one still coming.
    raw: Option<Box<[BytesMut; 2]>>,
    /// Bytes that are not a part of a message, if they are wanted.
    other: BytesMut,
}

impl Scanner {
    /// Creates a scanner that keeps the bytes of each message for [`take_bytes`](Self::take_bytes).
    pub(crate) fn keeping_bytes() -> Self {
        let raw = Some(Box::default());
        Self {
            raw,
            ..Self::default()
        }
    }

    /// Returns the bytes of the last message, with all of its frames.
    pub(crate) fn take_bytes(&mut self) -> Bytes {
        let raw = self.raw.as_mut();
        raw.map_or_else(Bytes::new, |raw| std::mem::take(&mut raw[0]).freeze())
    }

    /// Returns the bytes before the next message that belong to none: of messages that are too long, and behind what
    /// is not a frame.
    pub(crate) fn take_other(&mut self) -> Bytes {
        std::mem::take(&mut self.other).freeze()
    }

    /// Adds bytes that came.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        match self.is_lost {
            false => self.bytes.extend_from_slice(bytes),
            true if self.raw.is_some() => self.other.extend_from_slice(bytes),
            true => {}
        }
    }

    /// Leaves out bytes, or keeps them for [`take_other`](Self::take_other).
    fn leave(&mut self, len: usize) {
        let left = self.bytes.split_to(len);
        if let Some(raw) = &mut self.raw {
            self.other.unsplit(std::mem::take(&mut raw[1]));
            self.other.extend_from_slice(&left);
        }
    }

    /// Returns the next complete message.
    pub(crate) fn next_message(&mut self) -> Option<Message> {
        loop {
            let skipped = usize::try_from(self.skip)
                .unwrap_or(usize::MAX)
                .min(self.bytes.len());
            if skipped > 0 {
                self.leave(skipped);
            }
            self.skip -= skipped as u64;
            if self.skip > 0 || self.is_lost {
                return None;
            }
            let mut start = Cursor::new(&self.bytes);
            let Ok(parsed) = FrameHeader::parse(&mut start) else {
                self.is_lost = true;
                self.leave(self.bytes.len());
                let note = "bytes that are no WebSocket frame: nothing behind them is recorded";
                return Some(Message::new(Kind::Note, note));
            };
            let len = usize::try_from(start.position()).unwrap_or(usize::MAX);
            let (header, payload) = parsed?;
            let so_far = self
                .partial
                .as_ref()
                .map_or(0, |(_, payload)| payload.len());
            let whole = payload.saturating_add(so_far as u64);
            if whole > MAX_MESSAGE as u64 {
                self.leave(len);
                (self.skip, self.partial) = (payload, None);
                let note = format!("a message of {whole} bytes or more is too long to be recorded");
                return Some(Message::new(Kind::Note, note));
            }
            let payload = usize::try_from(payload).unwrap_or(usize::MAX);
            let end = len.saturating_add(payload);
            let whole = self.bytes.get(..end)?;
            if let Some(raw) = &mut self.raw {
                let [done, coming] = &mut **raw;
                let is_control = matches!(header.opcode, OpCode::Control(_));
                if is_control {
                    *done = BytesMut::from(whole);
                } else {
                    coming.extend_from_slice(whole);
                    if header.is_final {
                        *done = std::mem::take(coming);
                    }
                }
            }
            let payload = whole.get(len..).unwrap_or_default().to_vec();
            self.bytes.advance(end);
            if let Some(message) = self.frame(&header, payload) {
                return Some(message);
            }
        }
    }

    fn frame(&mut self, header: &FrameHeader, mut payload: Vec<u8>) -> Option<Message> {
        header.mask.inspect(|key| mask(&mut payload, *key));
        let data = match header.opcode {
            OpCode::Data(data) => data,
            OpCode::Control(Control::Ping) => {
                return Some(Message::new(Kind::Ping, HEXLOWER.encode(&payload)));
            }
            OpCode::Control(Control::Pong) => {
                return Some(Message::new(Kind::Pong, HEXLOWER.encode(&payload)));
            }
            // The others are not parsed.
            OpCode::Control(_) => {
                let code = payload.first_chunk().map(|code| u16::from_be_bytes(*code));
                let reason = String::from_utf8_lossy(payload.get(2..).unwrap_or_default());
                let close = Message::new(Kind::Close, reason);
                return Some(Message { code, ..close });
            }
        };
        let (data, payload) = match (data, self.partial.take()) {
            (Data::Continue, Some((data, mut partial))) => {
                partial.append(&mut payload);
                (data, partial)
            }
            // The rest of a message that was too long.
            (Data::Continue, None) => return None,
            (data, _) => (data, payload),
        };
        if !header.is_final {
            self.partial = Some((data, payload));
            return None;
        }
        Some(match data {
            Data::Binary => Message::new(Kind::Binary, HEXLOWER.encode(&payload)),
            _ => match String::from_utf8(payload) {
                Ok(text) => Message::new(Kind::Text, text),
                Err(error) => Message::new(Kind::Text, String::from_utf8_lossy(error.as_bytes())),
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], step: usize) -> Vec<Message> {
        let mut scanner = Scanner::default();
        let mut messages = Vec::new();
        for part in bytes.chunks(step) {
            scanner.push(part);
            messages.extend(std::iter::from_fn(|| scanner.next_message()));
        }
        messages
    }

    #[test]
    fn messages_are_found_wherever_the_bytes_are_cut() {
        // The examples of RFC 6455, section 5.7: unmasked, masked, in two frames, a ping between.
        let mut bytes = vec![0x81, 5, b'H', b'e', b'l', b'l', b'o'];
        bytes.extend([
            0x81, 0x85, 0x37, 0xfa, 0x21, 0x3d, 0x7f, 0x9f, 0x4d, 0x51, 0x58,
        ]);
        bytes.extend([
            0x01, 3, b'H', b'e', b'l', 0x89, 1, b'p', 0x80, 2, b'l', b'o',
        ]);
        bytes.extend([0x82, 126, 1, 0]);
        bytes.extend([7; 256]);
        bytes.extend([0x88, 5, 0x03, 0xe8, b'b', b'y', b'e', 0x88, 0]);
        let hello = || Message::new(Kind::Text, "Hello");
        let close = |code, reason| Message {
            code,
            ..Message::new(Kind::Close, reason)
        };
        let expected = [
            hello(),
            hello(),
            Message::new(Kind::Ping, "70"),
            hello(),
            Message::new(Kind::Binary, "07".repeat(256)),
            close(Some(1000), "bye"),
            close(None, ""),
        ];
        for step in [1, 2, 3, 7, 1000] {
            assert_eq!(all(&bytes, step), expected, "{step}");
        }
    }

    #[test]
    fn the_bytes_of_a_message_are_those_of_its_frames() {
        let (start, ping, end) = ([0x01, 1, b'a'], [0x89, 0x80, 1, 2, 3, 4], [0x80, 1, b'b']);
        let mut scanner = Scanner::keeping_bytes();
        scanner.push(&[&start[..], &ping, &end].concat());
        assert_eq!(scanner.next_message(), Some(Message::new(Kind::Ping, "")));
        assert_eq!(scanner.take_bytes(), ping.to_vec());
        assert_eq!(scanner.next_message(), Some(Message::new(Kind::Text, "ab")));
        assert_eq!(scanner.take_bytes(), [start, end].concat());
    }

    #[test]
    fn a_message_that_is_too_long_is_skipped_and_not_held() {
        let len = (MAX_MESSAGE + 1) as u64;
        let mut scanner = Scanner::default();
        scanner.push(&[0x82, 127]);
        scanner.push(&len.to_be_bytes());
        let note = scanner.next_message().unwrap();
        assert!(note.kind == Kind::Note && note.data.contains(&len.to_string()));
        for _ in 0..=MAX_MESSAGE / 4096 {
            assert_eq!(scanner.next_message(), None);
            assert!(scanner.bytes.len() <= 4096);
            scanner.push(&[0; 4096]);
        }
        let rest = (MAX_MESSAGE / 4096 + 1) * 4096 - (MAX_MESSAGE + 1);
        assert_eq!(rest % 2, 1, "what is left is read as frames: {rest}");
    }

    #[test]
    fn bytes_that_are_not_a_frame_end_the_reading() {
        let mut scanner = Scanner::default();
        scanner.push(&[0x83, 0, 0x81, 1, b'x']);
        assert_eq!(scanner.next_message().unwrap().kind, Kind::Note);
        scanner.push(&[0x81, 1, b'x']);
        assert_eq!(scanner.next_message(), None);
    }
}
