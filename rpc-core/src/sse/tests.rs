//! The decoder against the standard's examples and a naive model; the encoder against the decoder.

use bytes::BytesMut;
use proptest::prelude::*;

use super::*;
use crate::limits::Limits;

fn decoder() -> Decoder {
    Decoder::new(&Limits::default())
}

fn feed(decoder: &mut Decoder, mut bytes: &[u8]) -> Vec<Result<Event, SseError>> {
    std::iter::from_fn(|| decoder.decode(&mut bytes)).collect()
}

fn events(text: &[u8]) -> Vec<Event> {
    feed(&mut decoder(), text)
        .into_iter()
        .map(|event| event.unwrap())
        .collect()
}

fn data(text: &[u8]) -> Vec<String> {
    events(text).into_iter().map(|event| event.data).collect()
}

fn named(data: &str, name: &str) -> Event {
    let event = Some(name.to_owned());
    Event {
        event,
        ..Event::new(data)
    }
}

fn identified(data: &str, id: &str) -> Event {
    let id = Some(id.to_owned());
    Event {
        id,
        ..Event::new(data)
    }
}

fn encoded(event: &Event) -> Vec<u8> {
    let mut out = BytesMut::new();
    encode(event, &mut out).unwrap();
    out.to_vec()
}

#[test]
fn lines_of_data_are_joined() {
    let text = b"data: YHOO\ndata: +2\ndata: 10\n\n";
    assert_eq!(events(text), [Event::new("YHOO\n+2\n10")]);
}

#[test]
fn comments_empty_ids_and_one_leading_space_follow_the_standard() {
    let mut decoder = decoder();
    let text = b": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
    let got: Vec<_> = feed(&mut decoder, text)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    let expected = [
        identified("first event", "1"),
        identified("second event", ""),
        Event::new(" third event"),
    ];
    assert_eq!(got, expected);
    assert_eq!(decoder.last_event_id(), "");
}

#[test]
fn empty_data_is_an_event_and_an_unfinished_one_is_not() {
    let mut decoder = decoder();
    let got = feed(&mut decoder, b"data\n\ndata\ndata\n\ndata:");
    assert_eq!(got, [Ok(Event::new("")), Ok(Event::new("\n"))]);
    assert!(decoder.end());
    assert!(!decoder.end());
    assert_eq!(feed(&mut decoder, b"data:x\n\n"), [Ok(Event::new("x"))]);
}

#[test]
fn an_event_without_data_is_not_dispatched_but_its_id_and_retry_are_kept() {
    let mut decoder = decoder();
    let text = b"event: nothing\nid: 7\nretry: 1500\n\ndata: x\n\n";
    assert_eq!(feed(&mut decoder, text), [Ok(Event::new("x"))]);
    assert_eq!(decoder.last_event_id(), "7");
    assert_eq!(decoder.retry(), Some(Duration::from_millis(1500)));
}

#[test]
fn the_last_event_id_changes_with_the_event_and_outlives_the_stream() {
    let mut decoder = decoder();
    assert!(feed(&mut decoder, b"id: 1\ndata: x\n").is_empty());
    assert_eq!(decoder.last_event_id(), "");
    assert_eq!(feed(&mut decoder, b"\nid: 2\ndata: y\n").len(), 1);
    assert!(decoder.end());
    assert_eq!(decoder.last_event_id(), "1");
}

#[test]
fn every_line_ending_counts_once_even_when_split() {
    assert_eq!(
        data(b"data:a\rdata:b\r\rdata:c\r\ndata:d\r\n\r\ndata:e\n\n"),
        ["a\nb", "c\nd", "e"]
    );
    let mut decoder = decoder();
    assert!(feed(&mut decoder, b"data:a\r").is_empty());
    assert!(feed(&mut decoder, b"\ndata:b\r").is_empty());
    assert_eq!(feed(&mut decoder, b"\n\r"), [Ok(Event::new("a\nb"))]);
    assert!(feed(&mut decoder, b"\n").is_empty());
}

#[test]
fn a_byte_order_mark_is_dropped_at_the_start_only() {
    assert_eq!(data(b"\xef\xbb\xbfdata:a\n\n\xef\xbb\xbfdata:b\n\n"), ["a"]);
    let mut decoder = decoder();
    let bytes = b"\xef\xbb\xbfdata:a\n\n";
    let got: Vec<_> = bytes
        .chunks(1)
        .flat_map(|byte| feed(&mut decoder, byte))
        .collect();
    assert_eq!(got, [Ok(Event::new("a"))]);
}

#[test]
fn split_and_broken_utf8_is_handled() {
    let mut decoder = decoder();
    let got: Vec<_> = "data:é😀\n\n"
        .as_bytes()
        .chunks(1)
        .flat_map(|byte| feed(&mut decoder, byte))
        .collect();
    assert_eq!(got, [Ok(Event::new("é😀"))]);
    assert_eq!(
        data(b"data:a\xf0\x9f\x98\ndata:\xff!\n\n"),
        ["a\u{fffd}\n\u{fffd}!"]
    );
}

#[test]
fn ids_with_nul_and_invalid_retries_are_ignored() {
    let mut decoder = decoder();
    let text = b"id: 1\ndata: x\n\nid: a\0b\nretry: -5\nretry:\nretry: 1s\ndata: y\n\n";
    let got = feed(&mut decoder, text);
    assert_eq!(got, [Ok(identified("x", "1")), Ok(Event::new("y"))]);
    assert_eq!((decoder.last_event_id(), decoder.retry()), ("1", None));
    feed(&mut decoder, b"retry: 99999999999999999999999\n");
    assert_eq!(decoder.retry(), Some(Duration::from_millis(u64::MAX)));
}

#[test]
fn a_line_over_the_limit_is_reported_once_and_costs_one_event() {
    for chunk in [1, 3, 1000] {
        let mut decoder = decoder().with_max_line_bytes(10);
        let text = b"data: a\n\nid: 9\ndata: far too long\ndata: b\nretry: 1234567\n\ndata: c\n\n";
        let got: Vec<_> = text
            .chunks(chunk)
            .flat_map(|part| feed(&mut decoder, part))
            .collect();
        let error = SseError::LineTooLong { max: 10 };
        assert_eq!(
            got,
            [Ok(Event::new("a")), Err(error), Ok(Event::new("c"))],
            "{chunk}"
        );
        assert_eq!(decoder.last_event_id(), "");
    }
}

#[test]
fn an_endless_line_uses_bounded_memory() {
    let mut decoder = decoder().with_max_line_bytes(100);
    let mut errors = 0;
    for _ in 0..1000 {
        errors += feed(&mut decoder, &[b'x'; 77]).len();
        assert!(format!("{decoder:?}").len() < 200);
    }
    assert_eq!(errors, 1);
    assert!(decoder.end());
}

#[test]
fn an_event_over_the_limit_is_reported_once_and_skipped() {
    let mut decoder = decoder().with_max_event_bytes(4);
    let got = feed(
        &mut decoder,
        b"data:1234\n\ndata:12\ndata:34\ndata:5\n\nevent:e\ndata:123\n\n",
    );
    let error = SseError::EventTooLarge { max: 4 };
    assert_eq!(
        got,
        [Ok(Event::new("1234")), Err(error), Ok(named("123", "e"))]
    );
    let empty_lines = b"data\n".repeat(100);
    assert_eq!(feed(&mut decoder, &empty_lines), [Err(error)]);
}

#[test]
fn invalid_names_and_ids_are_refused() {
    let mut out = BytesMut::new();
    for bad in ["a\nb", "a\rb"] {
        let event = encode(&named("", bad), &mut out);
        assert_eq!(event, Err(SseError::BadField { field: "event" }));
        let id = encode(&identified("", bad), &mut out);
        assert_eq!(id, Err(SseError::BadField { field: "id" }));
    }
    let id = encode(&identified("", "a\0b"), &mut out);
    assert_eq!(id, Err(SseError::BadField { field: "id" }));
    assert!(out.is_empty());
}

#[test]
fn an_event_is_written_field_by_field() {
    let event = Event {
        event: Some("tick".to_owned()),
        retry: Some(Duration::from_millis(250)),
        ..identified("a\r\nb\rc\n", "1")
    };
    let text = "id: 1\nevent: tick\nretry: 250\ndata: a\ndata: b\ndata: c\ndata: \n\n";
    assert_eq!(String::from_utf8(encoded(&event)).unwrap(), text);
}

/// The standard, read literally, over the whole text at once.
fn naive(bytes: &[u8]) -> Vec<(String, String, String)> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let Some((text, _)) = text.rsplit_once('\n') else {
        return Vec::new();
    };
    let (mut data, mut kind, mut id) = (String::new(), String::new(), String::new());
    let mut events = Vec::new();
    for line in text.split('\n') {
        if line.is_empty() {
            if let Some(data) = data.strip_suffix('\n') {
                events.push((kind.clone(), data.to_owned(), id.clone()));
            }
            data.clear();
            kind.clear();
            continue;
        }
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "data" => data = data + value + "\n",
            "event" => kind = value.to_owned(),
            "id" if !value.contains('\0') => id = value.to_owned(),
            _ => {}
        }
    }
    events
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        4 => prop::sample::select(vec![
            &b"data"[..], b"event", b"id", b"retry", b":", b": ", b" ", b"x", b"\0", b"12",
            b"\xef\xbb\xbf", "é".as_bytes(), b"\xf0\x9f", b"\xff",
        ]),
        3 => prop::sample::select(vec![&b"\n"[..], b"\r", b"\r\n", b"\n\n", b"data: y\n"]),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_chunking_agrees_with_the_standard(
        stream in stream(),
        cuts in prop::collection::vec(1_usize..7, 1..20),
    ) {
        let mut decoder = decoder();
        let mut got = Vec::new();
        let mut rest = &stream[..];
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (mut chunk, after) = rest.split_at(rest.len().min(*cut));
            rest = after;
            while let Some(event) = decoder.decode(&mut chunk) {
                let event = event.unwrap();
                let kind = event.event.unwrap_or_default();
                got.push((kind, event.data, decoder.last_event_id().to_owned()));
            }
        }
        prop_assert_eq!(got, naive(&stream));
    }

    #[test]
    fn chunking_never_changes_the_result_under_limits(stream in stream(), size in 1_usize..9) {
        let limited = || decoder().with_max_line_bytes(9).with_max_event_bytes(6);
        let (mut whole, mut parts) = (limited(), limited());
        let expected = feed(&mut whole, &stream);
        let got: Vec<_> = stream.chunks(size).flat_map(|part| feed(&mut parts, part)).collect();
        prop_assert_eq!(got, expected);
        prop_assert_eq!(parts.last_event_id(), whole.last_event_id());
        prop_assert_eq!(parts.end(), whole.end());
    }

    #[test]
    fn events_round_trip(
        data in "(?s)[^\r]{0,40}",
        name in prop::option::of("[^\r\n]{1,10}"),
        id in prop::option::of("[^\r\n\0]{0,10}"),
        retry in prop::option::of(any::<u32>()),
    ) {
        let mut event = Event::new(data);
        (event.event, event.id) = (name, id);
        event.retry = retry.map(|millis| Duration::from_millis(u64::from(millis)));
        prop_assert_eq!(events(&encoded(&event)), [event]);
    }
}
