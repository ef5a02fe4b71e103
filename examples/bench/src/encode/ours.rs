//! Our codecs, into a `String`.

use std::hint::black_box;

use exoclaw_proto::codec::encode_event;
use exoclaw_proto::frame::{StreamEvent, ToolUse, Usage};
use rpc_core::Json;
use snek_proto::codec::{encode_into, encode_request};
use snek_proto::frame::{Event, Final, Message, NoKwargs};
use snek_proto::id::CallId;

use super::to_writer::ID;
use crate::text;

pub(crate) fn written(content: &str) -> Vec<u8> {
    let mut buffer = String::new();
    let event = StreamEvent::Text(content.into());
    encode_event(&mut buffer, &ID, &event).unwrap();
    buffer.into_bytes()
}

fn text(n: u64, content: &str) {
    let mut buffer = String::with_capacity(2 * content.len() + 256);
    let event = StreamEvent::Text(content.into());
    for _ in 0..n {
        buffer.clear();
        encode_event(&mut buffer, &black_box(ID), black_box(&event)).unwrap();
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
    let event = StreamEvent::ToolUse(ToolUse::new("call_1", "search", Json::new(&input).unwrap()));
    let mut buffer = String::with_capacity(input.len() + 256);
    for _ in 0..n {
        buffer.clear();
        encode_event(&mut buffer, &black_box(ID), black_box(&event)).unwrap();
        black_box(&buffer[..]);
    }
}

fn send(buffer: &mut String) {
    let id = CallId::from_raw(0x0f1e_2d3c_4b5a_6978);
    let args = black_box(("ch1", "Hello, how are you?", Final::Yes));
    encode_request(buffer, "send_message", &args, &NoKwargs {}, id).unwrap();
}

pub(crate) fn sent() -> Vec<u8> {
    let mut buffer = String::new();
    send(&mut buffer);
    buffer.into_bytes()
}

pub(crate) fn send_message(n: u64) {
    let mut buffer = String::with_capacity(4096);
    for _ in 0..n {
        buffer.clear();
        send(&mut buffer);
        black_box(&buffer[..]);
    }
}

fn measure(buffer: &mut String) {
    let usage = StreamEvent::Usage(black_box(Usage::new(150, 42)));
    encode_event(buffer, &black_box(ID), &usage).unwrap();
}

pub(crate) fn measured() -> Vec<u8> {
    let mut buffer = String::new();
    measure(&mut buffer);
    buffer.into_bytes()
}

pub(crate) fn usage(n: u64) {
    let mut buffer = String::with_capacity(4096);
    for _ in 0..n {
        buffer.clear();
        measure(&mut buffer);
        black_box(&buffer[..]);
    }
}

fn said(content: &str) -> Event {
    let mut message = Message::new("ch1", "ann", "Ann", content);
    message.is_final = Final::No;
    Event::Message(message)
}

pub(crate) fn pushed(content: &str) -> Vec<u8> {
    let mut buffer = String::new();
    encode_into(&said(content), &mut buffer).unwrap();
    buffer.into_bytes()
}

pub(crate) fn message(n: u64) {
    let event = said(&text::words(20));
    let mut buffer = String::with_capacity(4096);
    for _ in 0..n {
        buffer.clear();
        encode_into(black_box(&event), &mut buffer).unwrap();
        black_box(&buffer[..]);
    }
}
