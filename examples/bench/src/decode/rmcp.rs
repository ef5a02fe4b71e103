//! rmcp's model: a progress notification for a text, a log notification for a message.

use std::hint::black_box;

use rmcp::model::ServerJsonRpcMessage;

use crate::text;

pub(crate) fn read(n: u64, text: &str) {
    for _ in 0..n {
        let message: ServerJsonRpcMessage = serde_json::from_str(black_box(text)).unwrap();
        black_box(message);
    }
}

pub(crate) fn text_small(n: u64) {
    read(n, &text::progress(&text::words(45)));
}

pub(crate) fn text_1k(n: u64) {
    read(n, &text::progress(&text::words(970)));
}

pub(crate) fn message_small(n: u64) {
    read(n, &text::logged(&text::snek_message("Hello world")));
}

pub(crate) fn message_1k(n: u64) {
    read(n, &text::logged(&text::snek_message(&text::words(890))));
}

pub(crate) fn text_200k(n: u64) {
    read(n, &text::progress(&text::words(200_000)));
}

/// They stay a `Value`.
pub(crate) fn channels(n: u64) {
    read(n, &text::logged(&text::channels()));
}
