//! Our crates, as their machines read a frame.

use std::hint::black_box;

use exoclaw_proto::frame::{Request, ServerFrame};
use rpc_core::Limits;
use snek_proto::Channel;
use snek_proto::frame::ServerFrame as SnekFrame;

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
        black_box(frame.as_event().unwrap().unwrap());
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
        let request = Request::decode(black_box(text::CHAT_SEND), &limits).unwrap();
        black_box(request.call(&limits).unwrap());
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
        let frame = snek_proto::frame::ClientFrame::decode(text, &limits).unwrap();
        black_box(frame.call().unwrap());
    }
}

pub(crate) fn reply_raw(n: u64) {
    let limits = Limits::default();
    let text = text::snek_reply(&text::channels());
    for _ in 0..n {
        let frame = SnekFrame::decode(black_box(&text), &limits).unwrap();
        black_box(frame.as_reply().unwrap().data().unwrap());
    }
}

pub(crate) fn channels(n: u64) {
    let limits = Limits::default();
    let text = text::snek_reply(&text::channels());
    for _ in 0..n {
        let frame = SnekFrame::decode(black_box(&text), &limits).unwrap();
        let data = frame.as_reply().unwrap().data().unwrap();
        black_box(Channel::parse_list(data.get(), &limits).unwrap());
    }
}
