//! Goals 1 to 4: reading frames and writing them. A file for each protocol has its frames and the
//! types that a user would write for them.

mod acolyte;
mod connectonion;
mod exoclaw;
mod smarthole;
mod snek;

use std::hint::black_box;

use jsonrpsee_types::SubscriptionResponse;
use rmcp::model::ServerJsonRpcMessage;
use rpc_core::Limits;
use rpc_core::encode::encode_into;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::work::Work;

pub(crate) fn works() -> Vec<Work> {
    let mut works = exoclaw::works();
    works.extend(snek::works());
    works.extend(smarthole::works());
    works.extend(connectonion::works());
    works.extend(acolyte::works());
    works
}

/// Reads the text so many times. What comes out is something that another task can have.
fn repeat<T>(n: u64, text: &str, read: impl Fn(&str) -> T) {
    for _ in 0..n {
        black_box(read(black_box(text)));
    }
}

fn parse<T: DeserializeOwned>(text: &str) -> T {
    serde_json::from_str(text).unwrap()
}

/// The same, where what is read may keep pieces of the text.
fn kept<T: Deserialize<'static>>(text: &'static str) -> T {
    serde_json::from_str(text).unwrap()
}

/// A frame and how its crate reads it, beside the same types read by `serde_json`.
fn reading<O: 'static, F: DeserializeOwned + 'static>(
    name: &'static str,
    bytes: u64,
    text: fn() -> String,
    decode: impl Fn(&str, &Limits) -> O + 'static,
    finish: impl Fn(F) -> O + 'static,
) -> Work {
    Work::new(name, bytes, move |n| {
        let limits = Limits::default();
        repeat(n, &text(), |text| decode(text, &limits));
    })
    .beside("our types, serde_json", move |n| {
        repeat(n, &text(), |text| finish(parse::<F>(text)));
    })
}

impl Work {
    /// A hot frame, beside the types of a user, `T`, and what carries its payload elsewhere: a
    /// subscription of jsonrpsee with `P`, and a notification of the Model Context Protocol.
    fn hot<T: DeserializeOwned + 'static, P: DeserializeOwned + 'static>(
        self,
        text: fn() -> String,
        subscription: fn() -> String,
        notification: fn() -> String,
    ) -> Self {
        self.beside("serde derive", move |n| repeat(n, &text(), parse::<T>))
            .beside("jsonrpsee", move |n| {
                // Its client tries a response first; that failed attempt is not counted.
                repeat(n, &subscription(), |text| {
                    let bytes = text.as_bytes();
                    let envelope: SubscriptionResponse<'_, Box<RawValue>> =
                        serde_json::from_slice(bytes).unwrap();
                    black_box(parse::<P>(envelope.params.result.get()));
                    black_box(envelope);
                });
            })
            .beside("rmcp", move |n| {
                repeat(n, &notification(), parse::<ServerJsonRpcMessage>);
            })
    }
}

/// Writing into a buffer that is used again: what `ours` makes of the text beside `serde_json` with
/// the types of a user.
fn writing<T: Serialize + 'static>(
    name: &'static str,
    bytes: u64,
    text: fn() -> String,
    ours: impl Fn(u64, &str, &mut String) + 'static,
    theirs: impl Fn(&'static str) -> T + 'static,
) -> Work {
    Work::new(name, bytes, move |n| {
        let text = text();
        let mut buffer = String::with_capacity(2 * text.len() + 256);
        ours(n, &text, &mut buffer);
        assert!(buffer == text, "{name} writes {buffer}");
    })
    .beside("to_writer", move |n| {
        let text: &str = text().leak();
        let frame = theirs(text);
        let mut buffer = Vec::with_capacity(2 * text.len() + 256);
        for _ in 0..n {
            buffer.clear();
            serde_json::to_writer(&mut buffer, black_box(&frame)).unwrap();
            black_box(&buffer[..]);
        }
        assert!(buffer == text.as_bytes(), "{name} is written otherwise");
    })
    .allocating(0.0)
}

/// A frame of ours, written so many times.
fn write<F: Serialize>(n: u64, frame: &F, buffer: &mut String) {
    for _ in 0..n {
        buffer.clear();
        encode_into(black_box(frame), buffer).unwrap();
        black_box(&buffer[..]);
    }
}

/// The least that a reader of JSON must do: check the text from end to end, keeping it as it is.
fn scan(n: u64, text: &str) {
    for _ in 0..n {
        black_box(serde_json::from_str::<&RawValue>(black_box(text)).unwrap());
    }
}
