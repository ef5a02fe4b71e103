//! Goals 1 and 4 for the protocols with one hot frame each: reading it and writing it.
//!
//! One file per protocol holds the frame, the types that a user would write for it, and what each
//! way does with them.

mod acolyte;
mod connectonion;
mod smarthole;

use std::hint::black_box;

use rpc_core::encode::encode_into;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decode::{jsonrpsee, rmcp};
use crate::text;
use crate::work::Work;

pub(crate) fn works() -> Vec<Work> {
    let mut works = smarthole::works();
    works.extend(connectonion::works());
    works.extend(acolyte::works());
    works
}

/// All write what was read.
pub(crate) fn assert_same() {
    smarthole::assert_same();
    connectonion::assert_same();
    acolyte::assert_same();
}

fn read_owned<T: for<'de> Deserialize<'de>>(n: u64, text: &str) {
    for _ in 0..n {
        black_box(serde_json::from_str::<T>(black_box(text)).unwrap());
    }
}

fn read_value<T: for<'de> Deserialize<'de>>(n: u64, text: &str) {
    for _ in 0..n {
        let value: Value = serde_json::from_str(black_box(text)).unwrap();
        black_box(serde_json::from_value::<T>(value).unwrap());
    }
}

fn read_jsonrpsee<T: for<'de> Deserialize<'de>>(n: u64, text: &str) {
    jsonrpsee::read::<T>(n, &text::subscription(text));
}

fn read_rmcp(n: u64, text: &str) {
    rmcp::read(n, &text::logged(text));
}

fn write_ours(n: u64, frame: &impl Serialize) {
    let mut buffer = String::with_capacity(4096);
    for _ in 0..n {
        buffer.clear();
        encode_into(black_box(frame), &mut buffer).unwrap();
        black_box(&buffer[..]);
    }
}

fn write_serde(n: u64, frame: &impl Serialize) {
    let mut buffer = Vec::with_capacity(4096);
    for _ in 0..n {
        buffer.clear();
        serde_json::to_writer(&mut buffer, black_box(frame)).unwrap();
        black_box(&buffer[..]);
    }
}

fn write_sonic(n: u64, frame: &impl Serialize) {
    let mut buffer = Vec::with_capacity(4096);
    for _ in 0..n {
        buffer.clear();
        sonic_rs::to_writer(&mut buffer, black_box(frame)).unwrap();
        black_box(&buffer[..]);
    }
}

/// Both frames are written as this text.
fn written_as(text: &str, ours: &impl Serialize, theirs: &impl Serialize) {
    let mut buffer = String::new();
    encode_into(ours, &mut buffer).unwrap();
    assert_eq!(buffer, text);
    assert_eq!(serde_json::to_string(theirs).unwrap(), text);
    assert_eq!(sonic_rs::to_string(theirs).unwrap(), text);
}
