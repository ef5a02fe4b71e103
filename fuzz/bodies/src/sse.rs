//! Event streams.

use std::time::Duration;

use bytes::BytesMut;
use rpc_core::Limits;
use rpc_core::sse::{Decoder, Event, SseError, encode};

use crate::frames::{decoded, sizes_and_stream};

/// Small, so that short inputs reach them.
const MAX_LINE: usize = 48;
const MAX_EVENT: usize = 40;

/// Decodes an event stream in several ways and checks that they agree.
///
/// The first byte of the input says how many of the following bytes are chunk sizes (at most 7);
/// the rest is the stream. Checked are: chunks of any size give the same result; no event exceeds
/// the limits; what was decoded is encoded and decoded to itself.
pub fn sse(input: &[u8]) {
    let Some((_, sizes, stream)) = sizes_and_stream(input) else {
        return;
    };
    let roomy = || Decoder::new(&Limits::default());
    let whole = run(roomy(), stream, &[]);
    assert_eq!(run(roomy(), stream, sizes), whole, "chunking");
    for event in &whole.0 {
        let event = event.as_ref().expect("it is within the limits");
        let mut text = BytesMut::new();
        encode(event, &mut text).expect("what was decoded can be written");
        let (again, .., incomplete) = run(roomy(), &text, &[]);
        assert_eq!(again, [Ok(event.clone())], "decode of encode");
        assert!(!incomplete, "an encoded event is complete");
    }

    let tight = || {
        let decoder = roomy().with_max_line_bytes(MAX_LINE);
        decoder.with_max_event_bytes(MAX_EVENT)
    };
    let limited = run(tight(), stream, &[]);
    assert_eq!(run(tight(), stream, sizes), limited, "chunking in limits");
    assert_eq!(run(tight(), stream, &[1]), limited, "byte by byte");
    for event in &limited.0 {
        match event {
            Ok(event) => assert_within_limits(event),
            Err(SseError::LineTooLong { max }) => assert_eq!(*max, MAX_LINE),
            Err(SseError::EventTooLarge { max }) => assert_eq!(*max, MAX_EVENT),
            Err(error) => panic!("not an error of the decoder: {error}"),
        }
    }
}

/// The events of a stream, its last id, its time for a retry, and whether its end was cut off.
type Outcome = (Vec<Result<Event, SseError>>, String, Option<Duration>, bool);

fn run(mut decoder: Decoder, stream: &[u8], sizes: &[u8]) -> Outcome {
    let events = decoded(stream, sizes, |chunk| decoder.decode(chunk));
    let incomplete = decoder.end();
    assert!(!decoder.end(), "nothing is left after the end");
    let last_id = decoder.last_event_id().to_owned();
    (events, last_id, decoder.retry(), incomplete)
}

fn assert_within_limits(event: &Event) {
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    let size = event.data.len() + length(&event.event) + length(&event.id);
    assert!(size <= MAX_EVENT, "{size} bytes in {event:?}");
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
