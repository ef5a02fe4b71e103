//! `sonic_rs::to_writer` with the same structs, into a `Vec`.

use std::hint::black_box;

use serde::Serialize;

use super::to_writer::{frame, request, said, used};
use crate::text;

fn write(buffer: &mut Vec<u8>, value: &impl Serialize) {
    buffer.clear();
    sonic_rs::to_writer(&mut *buffer, value).unwrap();
}

pub(crate) fn written(content: &str) -> Vec<u8> {
    let mut buffer = Vec::new();
    write(&mut buffer, &frame(content));
    buffer
}

fn text(n: u64, content: &str) {
    // It asks for six times the length of a text.
    let mut buffer = Vec::with_capacity(8 * content.len() + 256);
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
