//! Bodies of fuzz targets, so that the same code runs under libFuzzer and under `cargo test`.
//!
//! Not part of the public interface: it may change in any release.

// A broken invariant is a crash: that is how a fuzz target reports.
#![allow(
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used
)]

mod json_reader;
mod json_writer;
mod script;

use bytes::BytesMut;

pub use json_reader::json_reader;
pub use json_writer::json_writer;
pub use script::{Script, assert_inert, fire};

use crate::limits::Limits;
use crate::sse::{Decoder, Event, SseError, encode};

/// Small, so that short inputs reach them.
const MAX_LINE: usize = 48;
const MAX_EVENT: usize = 40;

/// Decodes an event stream in several ways and checks that they agree.
///
/// The first byte of the input says how many of the following bytes are chunk sizes (at most 7);
/// the rest is the stream. Checked are: chunks of any size give the same result; no event exceeds
/// the limits; what was decoded is encoded and decoded to itself.
pub fn sse(input: &[u8]) {
    let Some((count, rest)) = input.split_first() else {
        return;
    };
    let count = usize::from(count & 7).min(rest.len());
    let (sizes, stream) = rest.split_at(count);

    let roomy = Limits::default();
    let whole = run(Decoder::new(&roomy), stream, &[]);
    assert_eq!(run(Decoder::new(&roomy), stream, sizes), whole, "chunking");
    for event in &whole.events {
        let event = event
            .as_ref()
            .expect("an input this small is within the limits");
        assert_round_trip(event);
    }

    let tight = || {
        Decoder::new(&roomy)
            .with_max_line_bytes(MAX_LINE)
            .with_max_event_bytes(MAX_EVENT)
    };
    let limited = run(tight(), stream, &[]);
    assert_eq!(run(tight(), stream, sizes), limited, "chunking in limits");
    assert_eq!(run(tight(), stream, &[1]), limited, "byte by byte");
    for event in &limited.events {
        match event {
            Ok(event) => assert_within_limits(event),
            Err(SseError::LineTooLong { max }) => assert_eq!(*max, MAX_LINE),
            Err(SseError::EventTooLarge { max }) => assert_eq!(*max, MAX_EVENT),
            Err(error) => panic!("not an error of the decoder: {error}"),
        }
    }
}

/// All that a decoder says about a stream.
#[derive(Debug, PartialEq)]
struct Outcome {
    events: Vec<Result<Event, SseError>>,
    last_event_id: String,
    retry: Option<std::time::Duration>,
    incomplete: bool,
}

/// Feeds the stream in chunks of these sizes, over and over; in one piece if there are none.
fn run(mut decoder: Decoder, stream: &[u8], sizes: &[u8]) -> Outcome {
    let mut events = Vec::new();
    let mut feed = |decoder: &mut Decoder, mut chunk: &[u8]| {
        while let Some(event) = decoder.decode(&mut chunk) {
            events.push(event);
        }
        assert!(chunk.is_empty(), "`None` takes all bytes");
    };
    if sizes.is_empty() {
        feed(&mut decoder, stream);
    } else {
        let mut rest = stream;
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let size = usize::from(*size).clamp(1, rest.len());
            let (chunk, after) = rest.split_at(size);
            feed(&mut decoder, chunk);
            rest = after;
        }
    }
    let incomplete = decoder.end();
    assert!(!decoder.end(), "nothing is left after the end");
    Outcome {
        events,
        last_event_id: decoder.last_event_id().to_owned(),
        retry: decoder.retry(),
        incomplete,
    }
}

fn assert_within_limits(event: &Event) {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let size = event.data.len() + length(&event.event) + length(&event.id);
    assert!(size <= MAX_EVENT, "{size} bytes in {event:?}");
}

fn assert_round_trip(event: &Event) {
    let mut text = BytesMut::new();
    encode(event, &mut text).expect("what was decoded can be written");
    let again = run(Decoder::new(&Limits::default()), &text, &[]);
    assert_eq!(again.events, [Ok(event.clone())], "decode of encode");
    assert!(!again.incomplete, "an encoded event is complete");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_that_end_anywhere_are_accepted() {
        let input = b"\x03\x01\x02\x05id: 1\r\nevent: tick\r\ndata: \xf0\x9f\x98\x80\r\n\r\ndata";
        for end in 0..=input.len() {
            sse(input.get(..end).unwrap());
        }
    }

    #[test]
    fn json_that_ends_anywhere_is_read_as_serde_json_reads_it() {
        let text = "{\"a\\u00e9\": [1, -0.5e+3, true, null, {\"\": \"\u{1f600}\\\\\"}], \"b\":{}}";
        for end in 0..=text.len() {
            json_reader(&text.as_bytes()[..end]);
        }
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_read_as_serde_json_reads_it(text: String) {
            json_reader(text.as_bytes());
        }

        #[test]
        fn likely_json_is_read_as_serde_json_reads_it(
            text in r#"([ \n\t\r]|[\[\]{},:\"]|"a"|"\\\\"|"\\u00[0-9]e"|"\\ud83d\\ude00"|"[é\\ -~]{0,20}"|true|false|null|-?[0-9]{0,3}(\.[0-9]{0,2})?([eE][+-]?[0-9]{0,3})?|:1,|"b":){0,12}"#,
        ) {
            json_reader(text.as_bytes());
        }

        #[test]
        fn any_bytes_hold_the_invariants(input: Vec<u8>) {
            sse(&input);
        }

        #[test]
        fn likely_streams_hold_the_invariants(
            head in proptest::collection::vec(0_u8..9, 1..9),
            stream in "((data|id|event|retry|)(:|: |)[a-z0-9\u{0}é]{0,20}(\n|\r|\r\n|\n\n)){0,12}",
        ) {
            sse(&[head.as_slice(), stream.as_bytes()].concat());
        }
    }
}
