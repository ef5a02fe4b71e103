//! The WebSocket framing, for a comparison with another implementation.

use bytes::Bytes;

use crate::net::Message;
use crate::net::ws::Role;
use crate::net::ws::frame::{FrameError, FrameReader, FrameWriter, Opcode};

/// What became of a peer's bytes.
#[derive(Debug)]
pub struct Outcome {
    /// All messages up to the refusal or the first Close.
    pub messages: Vec<Message>,
    /// Why the bytes that followed were refused.
    pub refused: Option<&'static str>,
}

/// Decodes a peer's bytes as they come in chunks.
pub fn read<'a>(role: Role, max_message: usize, chunks: impl Iterator<Item = &'a [u8]>) -> Outcome {
    let mut reader = FrameReader::new(role, max_message);
    let mut messages = Vec::new();
    for chunk in chunks {
        reader.push(chunk);
        loop {
            match reader.next_message() {
                Ok(Some(message)) => {
                    let is_last = matches!(message, Message::Close(_));
                    messages.push(message);
                    if is_last {
                        let refused = None;
                        return Outcome { messages, refused };
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    let refused = Some(match error {
                        FrameError::Protocol(why) | FrameError::NotUtf8(why) => why,
                        FrameError::TooLarge => "a message is too large",
                    });
                    return Outcome { messages, refused };
                }
            }
        }
    }
    Outcome {
        messages,
        refused: None,
    }
}

/// Encodes messages, each in one frame.
pub fn write(role: Role, messages: &[Message]) -> Vec<u8> {
    let mut writer = FrameWriter::new(role, 64);
    for message in messages {
        let (opcode, payload) = match message {
            Message::Text(text) => (Opcode::Text, text.clone().into_bytes()),
            Message::Binary(bytes) => (Opcode::Binary, bytes.clone()),
            Message::Ping(bytes) => (Opcode::Ping, bytes.clone()),
            Message::Pong(bytes) => (Opcode::Pong, bytes.clone()),
            Message::Close(frame) => {
                writer.push_close(frame.clone()).unwrap();
                continue;
            }
        };
        writer.push(opcode, payload).unwrap();
    }
    let bytes = writer.pieces().concat();
    writer.advance(bytes.len());
    assert_eq!(writer.pieces().concat(), Bytes::new(), "all is written");
    bytes
}
