//! jsonrpsee's types: the envelope of a subscription with a raw payload, as its client reads it,
//! then the payload. Its client tries a response first; that failed attempt is not counted.

use std::hint::black_box;

use jsonrpsee_types::SubscriptionResponse;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::derive::{Channel, Event, SnekEvent};
use crate::text;

pub(crate) fn read<T: for<'de> Deserialize<'de>>(n: u64, text: &str) {
    for _ in 0..n {
        let bytes = black_box(text).as_bytes();
        let envelope: SubscriptionResponse<'_, Box<RawValue>> =
            serde_json::from_slice(bytes).unwrap();
        black_box(serde_json::from_str::<T>(envelope.params.result.get()).unwrap());
        black_box(envelope);
    }
}

fn text(n: u64, text: &str) {
    let payload = format!(r#"{{"event":"text","data":{}}}"#, text::json(text));
    read::<Event>(n, &text::subscription(&payload));
}

pub(crate) fn text_small(n: u64) {
    text(n, &text::words(45));
}

pub(crate) fn text_1k(n: u64) {
    text(n, &text::words(970));
}

pub(crate) fn text_200k(n: u64) {
    text(n, &text::words(200_000));
}

pub(crate) fn channels(n: u64) {
    read::<Vec<Channel>>(n, &text::subscription(&text::channels()));
}

fn message(n: u64, text: &str) {
    read::<SnekEvent>(n, &text::subscription(&text::snek_message(text)));
}

pub(crate) fn message_small(n: u64) {
    message(n, "Hello world");
}

pub(crate) fn message_1k(n: u64) {
    message(n, &text::words(890));
}
