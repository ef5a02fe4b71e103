//! The body of every target of frames: what is read is written, and read again.

use std::fmt::Display;

use rpc_core::encode::encode;
use rpc_core::{Limits, Text};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::plain::{Plain, near};

/// Decodes a frame and checks that
///
/// - encoding and decoding again gives the same, and so does `serde_json`,
/// - what was written has no other value than was read under the same name,
/// - the size of a frame counts before anything else, and an error has words.
///
/// Returns the frame and what was written.
pub(crate) fn frame<T: Serialize + DeserializeOwned + PartialEq, E: Display>(
    text: &str,
    limits: &Limits,
    decode: impl Fn(&str, &Limits) -> Result<T, E>,
) -> Result<(T, Text), E> {
    let (read, once) = round_trip(text, limits, &decode)?;
    if let Plain::Clear(written) = Plain::read(once.as_str()) {
        let plain = serde_json::from_str::<T>(once.as_str()).ok();
        let is_same = plain.as_ref() == Some(&read);
        assert!(is_same, "`serde_json` reads another frame");
        if let Plain::Clear(read) = Plain::read(text) {
            assert!(agrees(&written, &read), "{written} of {read}");
        }
    }
    let mut limits = limits.clone();
    let mut reads = |bytes| {
        limits.max_message_bytes = bytes;
        decode(text, &limits).is_ok()
    };
    assert!(!reads(text.len() - 1), "one byte too many");
    assert!(reads(text.len()), "as many bytes as may be");
    Ok((read, once))
}

/// Decodes a text and checks that encoding and decoding again gives the same. Returns that, and
/// what was written.
pub(crate) fn round_trip<T: Serialize + PartialEq, E: Display>(
    text: &str,
    limits: &Limits,
    decode: impl Fn(&str, &Limits) -> Result<T, E>,
) -> Result<(T, Text), E> {
    let read = decode(text, limits)
        .inspect_err(|error| assert!(!error.to_string().is_empty(), "an error has words"))?;
    let written = written(&read);
    match decode(written.as_str(), limits) {
        Ok(again) => assert!(again == read, "the round trip changed what was read"),
        Err(error) => panic!("what was written must decode: {error}"),
    }
    Ok((read, written))
}

/// Returns whether what is written under a name is what was read under it. Numbers may differ in
/// the last bits, the text of a number or of JSON stands for it,
/// and so does the only text of an object.
fn agrees(written: &Value, read: &Value) -> bool {
    match (written, read) {
        (Value::Object(written), Value::Object(read)) => written.iter().all(|(name, value)| {
            // An unknown status is written as the nearest known one, and a question as its text, too.
            let differs = name == "status" || name == "text" && written.contains_key("question");
            let known = read.get(name).filter(|it| !it.is_null() && !differs);
            known.is_none_or(|known| agrees(value, known))
        }),
        // Nothing of another value is kept where an object belongs.
        (Value::Object(written), read) if !read.is_object() => written.is_empty(),
        (Value::Number(one), Value::Number(other)) => {
            one == other || one.as_f64().zip(other.as_f64()).is_some_and(near)
        }
        (Value::String(text), read) if !read.is_string() => {
            let mut parts = read
                .as_object()
                .into_iter()
                .flat_map(serde_json::Map::values);
            parts.any(|part| part == written)
                || serde_json::from_str(text).is_ok_and(|inner: Value| agrees(&inner, read))
        }
        _ => written == read,
    }
}

pub(crate) fn written(value: &impl Serialize) -> Text {
    match encode(value) {
        Ok(text) => text,
        Err(error) => panic!("what was decoded must encode: {error}"),
    }
}

/// A stream and how it is cut: the lowest three bits of the first byte say how many sizes of chunks
/// follow, and the stream is behind them. Gives the first byte, too.
pub(crate) fn sizes_and_stream(data: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (count, rest) = data.split_first()?;
    let (sizes, stream) = rest.split_at(usize::from(count & 7).min(rest.len()));
    Some((*count, sizes, stream))
}

/// What `decode` finds in the stream, in chunks of these sizes, over and over; in one piece if there
/// are none.
pub(crate) fn decoded<T>(
    mut stream: &[u8],
    sizes: &[u8],
    mut decode: impl FnMut(&mut &[u8]) -> Option<T>,
) -> Vec<T> {
    let mut found = Vec::new();
    let mut sizes = sizes.iter().cycle();
    while !stream.is_empty() {
        let size = sizes.next().map_or(stream.len(), |size| usize::from(*size));
        let (mut chunk, rest) = stream.split_at(size.clamp(1, stream.len()));
        found.extend(std::iter::from_fn(|| decode(&mut chunk)));
        assert!(chunk.is_empty(), "`None` takes all bytes");
        stream = rest;
    }
    found
}
