//! What is read is written, and read again.

use std::fmt::Display;

use rpc_core::encode::encode;
use rpc_core::{Limits, Text};
use serde::Serialize;

/// Decodes a text and checks that encoding and decoding again gives the same. Gives that, and what
/// was written.
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

pub(crate) fn written(value: &impl Serialize) -> Text {
    match encode(value) {
        Ok(text) => text,
        Err(error) => panic!("what was decoded must encode: {error}"),
    }
}

/// The size of a frame counts before anything else.
pub(crate) fn size_counts<T, E>(
    text: &str,
    limits: &Limits,
    decode: impl Fn(&str, &Limits) -> Result<T, E>,
) {
    let mut limits = limits.clone();
    let mut reads = |bytes| {
        limits.max_message_bytes = bytes;
        decode(text, &limits).is_ok()
    };
    assert!(!reads(text.len() - 1), "one byte too many");
    assert!(reads(text.len()), "as many bytes as may be");
}

/// The sizes of chunks, and the stream behind them: the lowest three bits of the first byte say how
/// many sizes follow.
pub(crate) fn sizes_and_stream(count: u8, data: &[u8]) -> (&[u8], &[u8]) {
    data.split_at(usize::from(count & 7).min(data.len()))
}

/// The stream in chunks of these sizes, over and over; in one piece if there are none.
pub(crate) fn chunks<'s>(stream: &'s [u8], sizes: &'s [u8]) -> impl Iterator<Item = &'s [u8]> {
    let mut rest = stream;
    let mut sizes = sizes.iter().cycle();
    std::iter::from_fn(move || {
        let size = sizes.next().map_or(rest.len(), |size| usize::from(*size));
        let (chunk, after) = rest.split_at(size.max(1).min(rest.len()));
        rest = after;
        (!chunk.is_empty()).then_some(chunk)
    })
}
