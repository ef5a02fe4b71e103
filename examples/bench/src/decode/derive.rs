//! What a user writes first: derived enums and structs that own their strings.

use std::hint::black_box;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text;

/// An Exoclaw event in its envelope.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Frame {
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) event: Event,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", content = "data", rename_all = "snake_case")]
pub(crate) enum Event {
    Text(String),
    ToolUse {
        id: String,
        name: String,
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        content: String,
        #[serde(default)]
        is_error: bool,
    },
    Usage {
        input_tokens: u64,
        output_tokens: u64,
    },
    Done,
    Error(String),
}

#[derive(Debug, Deserialize)]
struct Request {
    id: String,
    #[serde(flatten)]
    call: Call,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "method", content = "params")]
enum Call {
    #[serde(rename = "ping")]
    Ping,
    #[serde(rename = "chat.send")]
    ChatSend {
        channel: String,
        account: String,
        peer: Option<String>,
        content: String,
    },
}

/// A Snek event.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub(crate) enum SnekEvent {
    Message {
        message: String,
        username: String,
        user_nick: String,
        channel_uid: String,
        is_final: bool,
    },
    SetTyping {
        data: Value,
    },
    Join {
        data: Value,
    },
    Leave {
        data: Value,
    },
}

#[derive(Debug, Deserialize)]
struct SnekRequest {
    #[serde(rename = "callId")]
    call_id: String,
    #[serde(flatten)]
    call: SnekCall,
}

#[derive(Debug, Deserialize)]
#[serde(tag = "method", content = "args", rename_all = "snake_case")]
enum SnekCall {
    SendMessage(String, String, bool),
    GetChannels(),
}

/// A Snek answer.
#[derive(Debug, Deserialize)]
pub(crate) struct Reply<T> {
    #[serde(rename = "callId")]
    pub(crate) call_id: String,
    pub(crate) success: bool,
    pub(crate) data: T,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Channel {
    pub(crate) uid: String,
    pub(crate) name: String,
    pub(crate) tag: Option<String>,
}

fn read<T: for<'de> Deserialize<'de>>(n: u64, text: &str) {
    for _ in 0..n {
        black_box(serde_json::from_str::<T>(black_box(text)).unwrap());
    }
}

pub(crate) fn text_small(n: u64) {
    read::<Frame>(n, &text::exoclaw_text(&text::words(45)));
}

pub(crate) fn text_1k(n: u64) {
    read::<Frame>(n, &text::exoclaw_text(&text::words(970)));
}

pub(crate) fn text_code(n: u64) {
    read::<Frame>(n, &text::exoclaw_text(&text::code(970)));
}

pub(crate) fn text_200k(n: u64) {
    read::<Frame>(n, &text::exoclaw_text(&text::words(200_000)));
}

pub(crate) fn usage(n: u64) {
    read::<Frame>(n, text::USAGE);
}

pub(crate) fn chat_send(n: u64) {
    read::<Request>(n, text::CHAT_SEND);
}

pub(crate) fn message_small(n: u64) {
    read::<SnekEvent>(n, &text::snek_message("Hello world"));
}

pub(crate) fn message_1k(n: u64) {
    read::<SnekEvent>(n, &text::snek_message(&text::words(890)));
}

pub(crate) fn send_message(n: u64) {
    read::<SnekRequest>(n, text::SEND_MESSAGE);
}

pub(crate) fn channels(n: u64) {
    read::<Reply<Vec<Channel>>>(n, &text::snek_reply(&text::channels()));
}
