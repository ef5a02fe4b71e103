//! Our crates, as their machines read a frame.

use std::hint::black_box;

use exoclaw_proto::frame::{Request, ServerFrame};
use rpc_core::{Limits, json};
use serde::Deserialize;
use snek_proto::frame::{Channel, ClientFrame, ServerFrame as SnekFrame};

use crate::text;

fn exoclaw(n: u64, text: &str) {
    let limits = Limits::default();
    for _ in 0..n {
        black_box(ServerFrame::decode(black_box(text), &limits).unwrap());
    }
}

fn snek_event(n: u64, text: &str) {
    let limits = Limits::default();
    for _ in 0..n {
        let frame = SnekFrame::decode(black_box(text), &limits).unwrap();
        black_box(frame.into_event().unwrap().unwrap());
    }
}

pub(crate) fn text_small(n: u64) {
    exoclaw(n, &text::exoclaw_text(&text::words(45)));
}

pub(crate) fn text_1k(n: u64) {
    exoclaw(n, &text::exoclaw_text(&text::words(970)));
}

pub(crate) fn text_code(n: u64) {
    exoclaw(n, &text::exoclaw_text(&text::code(970)));
}

pub(crate) fn text_200k(n: u64) {
    exoclaw(n, &text::exoclaw_text(&text::words(200_000)));
}

pub(crate) fn usage(n: u64) {
    exoclaw(n, text::USAGE);
}

pub(crate) fn result_raw(n: u64) {
    exoclaw(n, &text::exoclaw_result(&text::sessions()));
}

pub(crate) fn tool_raw(n: u64) {
    exoclaw(n, &text::exoclaw_tool_use(&text::sessions()));
}

pub(crate) fn chat_send(n: u64) {
    let limits = Limits::default();
    for _ in 0..n {
        black_box(Request::decode(black_box(text::CHAT_SEND), &limits).unwrap());
    }
}

pub(crate) fn message_small(n: u64) {
    snek_event(n, &text::snek_message("Hello world"));
}

pub(crate) fn message_1k(n: u64) {
    snek_event(n, &text::snek_message(&text::words(890)));
}

pub(crate) fn send_message(n: u64) {
    let limits = Limits::default();
    for _ in 0..n {
        let text = black_box(text::SEND_MESSAGE);
        let frame = ClientFrame::decode(text, &limits).unwrap();
        black_box(frame.call().unwrap());
    }
}

pub(crate) fn reply_raw(n: u64) {
    let limits = Limits::default();
    let text = text::snek_reply(&text::channels());
    for _ in 0..n {
        let frame = SnekFrame::decode(black_box(&text), &limits).unwrap();
        black_box(frame.into_result().unwrap());
    }
}

pub(crate) fn channels(n: u64) {
    let limits = Limits::default();
    let text = text::snek_reply(&text::channels());
    for _ in 0..n {
        let frame = SnekFrame::decode(black_box(&text), &limits).unwrap();
        let answer = frame.into_result().unwrap();
        black_box(json::parse::<Vec<Channel>>(answer.data().get(), &limits).unwrap());
    }
}

/// The same types, read by another deserializer.
fn serde<T: for<'de> Deserialize<'de>>(n: u64, text: &str) {
    for _ in 0..n {
        black_box(serde_json::from_str::<T>(black_box(text)).unwrap());
    }
}

pub(crate) fn serde_text_small(n: u64) {
    serde::<ServerFrame>(n, &text::exoclaw_text(&text::words(45)));
}

pub(crate) fn serde_text_1k(n: u64) {
    serde::<ServerFrame>(n, &text::exoclaw_text(&text::words(970)));
}

pub(crate) fn serde_text_code(n: u64) {
    serde::<ServerFrame>(n, &text::exoclaw_text(&text::code(970)));
}

pub(crate) fn serde_text_200k(n: u64) {
    serde::<ServerFrame>(n, &text::exoclaw_text(&text::words(200_000)));
}

pub(crate) fn serde_usage(n: u64) {
    serde::<ServerFrame>(n, text::USAGE);
}

pub(crate) fn serde_chat_send(n: u64) {
    serde::<Request>(n, text::CHAT_SEND);
}

fn serde_event(n: u64, text: &str) {
    for _ in 0..n {
        let frame: SnekFrame = serde_json::from_str(black_box(text)).unwrap();
        black_box(frame.into_event().unwrap().unwrap());
    }
}

pub(crate) fn serde_message_small(n: u64) {
    serde_event(n, &text::snek_message("Hello world"));
}

pub(crate) fn serde_message_1k(n: u64) {
    serde_event(n, &text::snek_message(&text::words(890)));
}

pub(crate) fn serde_channels(n: u64) {
    let text = text::snek_reply(&text::channels());
    for _ in 0..n {
        let frame: SnekFrame = serde_json::from_str(black_box(&text)).unwrap();
        let answer = frame.into_result().unwrap();
        black_box(serde_json::from_str::<Vec<Channel>>(answer.data().get()).unwrap());
    }
}

pub(crate) fn serde_send_message(n: u64) {
    for _ in 0..n {
        let frame: ClientFrame = serde_json::from_str(black_box(text::SEND_MESSAGE)).unwrap();
        black_box(frame.call().unwrap());
    }
}
