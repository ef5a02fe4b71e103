//! The least that a JSON reader must do: check the text from end to end, keeping it as it is.

use std::hint::black_box;

use serde_json::value::RawValue;

use crate::text;

fn scan(n: u64, text: &str) {
    for _ in 0..n {
        black_box(serde_json::from_str::<&RawValue>(black_box(text)).unwrap());
    }
}

pub(crate) fn result(n: u64) {
    scan(n, &text::exoclaw_result(&text::sessions()));
}

pub(crate) fn tool(n: u64) {
    scan(n, &text::exoclaw_tool_use(&text::sessions()));
}

pub(crate) fn reply(n: u64) {
    scan(n, &text::snek_reply(&text::channels()));
}
