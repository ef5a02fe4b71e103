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

use crate::goals;
use crate::text;
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
    name: impl Into<String>,
    bytes: u64,
    text: fn() -> String,
    decode: impl Fn(&str, &Limits) -> O + 'static,
    finish: impl Fn(F) -> O + 'static,
) -> Work {
    Work::new(name, bytes, move |n| {
        let limits = Limits::default();
        repeat(n, &text(), |text| decode(text, &limits));
    })
    .beside("our types, serde_json", goals::SAME, move |n| {
        repeat(n, &text(), |text| finish(parse::<F>(text)));
    })
}

impl Work {
    /// A hot frame, beside the types of a user, `O`, what carries its payload elsewhere, and sonic-rs:
    /// a subscription of jsonrpsee with `P`, and a notification of the Model Context Protocol.
    fn hot<O: DeserializeOwned + 'static, P: DeserializeOwned + 'static>(
        mut self,
        frame: fn() -> String,
        payload: fn() -> String,
        notification: impl Fn() -> String + 'static,
        sonic: fn(&str),
    ) -> Self {
        self.is_hot = true;
        let jsonrpsee = move |n| {
            // Its client tries a response first; that failed attempt is not counted.
            repeat(n, &text::subscription(&payload()), |text| {
                let envelope: SubscriptionResponse<'_, Box<RawValue>> =
                    serde_json::from_slice(text.as_bytes()).unwrap();
                black_box(parse::<P>(envelope.params.result.get()));
                black_box(envelope);
            });
        };
        let rmcp = move |n| repeat(n, &notification(), parse::<ServerJsonRpcMessage>);
        self.beside("serde derive", goals::DERIVE, move |n| {
            repeat(n, &frame(), parse::<O>)
        })
        .beside("jsonrpsee", goals::JSONRPSEE, jsonrpsee)
        .beside("rmcp", goals::RMCP, rmcp)
        .beside("sonic-rs", goals::SONIC, move |n| {
            repeat(n, &frame(), sonic)
        })
    }
}

/// A hot frame that all read and write as it is: our type, `F`, a user's `O`, sonic-rs, and a type of a user
/// that borrows its tag.
fn hot<F, O, D>(
    name: &str,
    bytes: u64,
    frame: fn() -> String,
    decode: fn(&str, &Limits) -> F,
    sonic: fn(&str),
    borrowed: fn(&'static str) -> D,
) -> [Work; 2]
where
    F: Serialize + DeserializeOwned + 'static,
    O: DeserializeOwned + 'static,
    D: Serialize + 'static,
{
    let logged = move || text::logged(&frame());
    let ours = |n, text: &str, buffer: &mut String| write(n, &parse::<F>(text), buffer);
    [
        reading(format!("decode {name}"), bytes, frame, decode, |it: F| it)
            .hot::<O, O>(frame, frame, logged, sonic),
        writing(
            format!("encode {name}"),
            bytes,
            goals::WRITE,
            frame,
            ours,
            borrowed,
        ),
    ]
}

/// Writing into a buffer that is used again: what `ours` makes of the text beside `serde_json` with
/// the types of a user, which take at least so many times our instructions.
fn writing<T: Serialize + 'static>(
    name: impl Into<String>,
    bytes: u64,
    least: f64,
    text: fn() -> String,
    ours: impl Fn(u64, &str, &mut String) + 'static,
    theirs: impl Fn(&'static str) -> T + 'static,
) -> Work {
    Work::new(name, bytes, move |n| {
        let text = text();
        let mut buffer = String::with_capacity(2 * text.len() + 256);
        ours(n, &text, &mut buffer);
        assert!(buffer == text, "we write {buffer}");
    })
    .beside("to_writer", least, move |n| {
        let text: &str = text().leak();
        let frame = theirs(text);
        let mut buffer = Vec::with_capacity(2 * text.len() + 256);
        for _ in 0..n {
            buffer.clear();
            serde_json::to_writer(&mut buffer, black_box(&frame)).unwrap();
            black_box(&buffer[..]);
        }
        assert!(buffer == text.as_bytes(), "{text} is written otherwise");
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

/// An answer that is left raw, beside the least that a reader of JSON must do: check the text from end
/// to end, keeping it as it is.
fn raw<O: 'static>(name: &str, text: fn() -> String, decode: fn(&str, &Limits) -> O) -> Work {
    Work::new(name, 200_000, move |n| {
        let limits = Limits::default();
        repeat(n, &text(), |text| decode(text, &limits));
    })
    .beside("serde_json scan", goals::SCAN, move |n| {
        let text = text();
        for _ in 0..n {
            black_box(serde_json::from_str::<&RawValue>(black_box(&text)).unwrap());
        }
    })
    .allocating(1.0)
}
