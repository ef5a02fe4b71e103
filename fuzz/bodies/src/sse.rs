//! Event streams.

use bytes::BytesMut;
use rpc_core::Limits;
use rpc_core::sse::{Decoder, Event, SseError, encode};

use crate::frames::{chunks, sizes_and_stream};

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
    let (sizes, stream) = sizes_and_stream(*count, rest);
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
    for mut chunk in chunks(stream, sizes) {
        while let Some(event) = decoder.decode(&mut chunk) {
            events.push(event);
        }
        assert!(chunk.is_empty(), "`None` takes all bytes");
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

    proptest::proptest! {
        #[test]
        fn likely_streams_hold_the_invariants(
            head in proptest::collection::vec(0_u8..9, 1..9),
            stream in "((data|id|event|retry|)(:|: |)[a-z0-9\u{0}é]{0,20}(\n|\r|\r\n|\n\n)){0,12}",
        ) {
            sse(&[head.as_slice(), stream.as_bytes()].concat());
        }
    }
}
