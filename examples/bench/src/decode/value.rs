//! `serde_json::Value` first, the type from it.

use std::hint::black_box;

use serde::Deserialize;
use serde_json::Value;

use super::derive::{Channel, Frame, Reply, SnekEvent};
use crate::text;

fn read<T: for<'de> Deserialize<'de>>(n: u64, text: &str) {
    for _ in 0..n {
        let value: Value = serde_json::from_str(black_box(text)).unwrap();
        black_box(serde_json::from_value::<T>(value).unwrap());
    }
}

pub(crate) fn text_small(n: u64) {
    read::<Frame>(n, &text::exoclaw_text(&text::words(45)));
}

pub(crate) fn text_1k(n: u64) {
    read::<Frame>(n, &text::exoclaw_text(&text::words(970)));
}

pub(crate) fn message_small(n: u64) {
    read::<SnekEvent>(n, &text::snek_message("Hello world"));
}

pub(crate) fn message_1k(n: u64) {
    read::<SnekEvent>(n, &text::snek_message(&text::words(890)));
}

pub(crate) fn channels(n: u64) {
    read::<Reply<Vec<Channel>>>(n, &text::snek_reply(&text::channels()));
}
