//! `serde_json::to_writer` with derived structs that borrow, into a `Vec`.

use std::hint::black_box;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::text;

pub(super) const ID: &str = "0f1e2d3c4b5a6978";

#[derive(Serialize)]
pub(super) struct Frame<'a, D> {
    pub(super) id: &'a str,
    pub(super) event: &'a str,
    pub(super) data: D,
}

#[derive(Serialize)]
struct Tool<'a> {
    id: &'a str,
    name: &'a str,
    input: &'a RawValue,
}

#[derive(Serialize)]
pub(super) struct Request<'a> {
    method: &'a str,
    args: (&'a str, &'a str, bool),
    kwargs: Empty,
    #[serde(rename = "callId")]
    call_id: &'a str,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
pub(super) struct Usage {
    input_tokens: u64,
    output_tokens: u64,
}

#[derive(Serialize)]
pub(super) struct Message<'a> {
    event: &'a str,
    message: &'a str,
    username: &'a str,
    user_nick: &'a str,
    channel_uid: &'a str,
    is_final: bool,
}

pub(super) fn used() -> Frame<'static, Usage> {
    Frame {
        id: black_box(ID),
        event: black_box("usage"),
        data: black_box(Usage {
            input_tokens: 150,
            output_tokens: 42,
        }),
    }
}

pub(super) fn said(content: &str) -> Message<'_> {
    black_box(Message {
        event: "message",
        message: content,
        username: "ann",
        user_nick: "Ann",
        channel_uid: "ch1",
        is_final: false,
    })
}

pub(super) fn frame(content: &str) -> Frame<'_, &str> {
    Frame {
        id: black_box(ID),
        event: black_box("text"),
        data: black_box(content),
    }
}

pub(super) fn request() -> Request<'static> {
    Request {
        method: black_box("send_message"),
        args: black_box(("ch1", "Hello, how are you?", true)),
        kwargs: Empty {},
        call_id: black_box(ID),
    }
}

fn write(buffer: &mut Vec<u8>, value: &impl Serialize) {
    buffer.clear();
    serde_json::to_writer(&mut *buffer, value).unwrap();
}

pub(crate) fn written(content: &str) -> Vec<u8> {
    let mut buffer = Vec::new();
    write(&mut buffer, &frame(content));
    buffer
}

pub(crate) fn sent() -> Vec<u8> {
    let mut buffer = Vec::new();
    write(&mut buffer, &request());
    buffer
}

fn text(n: u64, content: &str) {
    let mut buffer = Vec::with_capacity(2 * content.len() + 256);
    for _ in 0..n {
        write(&mut buffer, &frame(content));
        black_box(&buffer[..]);
    }
}

pub(crate) fn text_small(n: u64) {
    text(n, &text::words(45));
}

pub(crate) fn text_1k(n: u64) {
    text(n, &text::words(970));
}

pub(crate) fn text_code(n: u64) {
    text(n, &text::code(970));
}

pub(crate) fn text_200k(n: u64) {
    text(n, &text::words(200_000));
}

pub(crate) fn tool(n: u64) {
    let input = text::sessions();
    let raw: &RawValue = serde_json::from_str(&input).unwrap();
    let mut buffer = Vec::with_capacity(input.len() + 256);
    for _ in 0..n {
        let data = Tool {
            id: "call_1",
            name: "search",
            input: black_box(raw),
        };
        let frame = Frame {
            id: black_box(ID),
            event: "tool_use",
            data,
        };
        write(&mut buffer, &frame);
        black_box(&buffer[..]);
    }
}

pub(crate) fn send_message(n: u64) {
    let mut buffer = Vec::with_capacity(4096);
    for _ in 0..n {
        write(&mut buffer, &request());
        black_box(&buffer[..]);
    }
}

pub(crate) fn usage(n: u64) {
    let mut buffer = Vec::with_capacity(4096);
    for _ in 0..n {
        write(&mut buffer, &used());
        black_box(&buffer[..]);
    }
}

pub(crate) fn message(n: u64) {
    let content = text::words(20);
    let mut buffer = Vec::with_capacity(4096);
    for _ in 0..n {
        write(&mut buffer, &said(&content));
        black_box(&buffer[..]);
    }
}
