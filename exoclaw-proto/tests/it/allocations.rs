//! How many allocations the hot paths cost once they are warm. Printed, and bounded from above.

use std::time::Instant;

use allocation_counter::measure;
use bytes::BytesMut;
use exoclaw_proto::codec::{NoParams, encode_event, encode_request};
use exoclaw_proto::frame::{BorrowedEvent, ChatSend, ClientFrame, Request, ServerFrame};
use exoclaw_proto::{CallId, StreamEvent};
use rpc_core::{Incoming, Limits, Machine, Outgoing};

use crate::gateway::ready;

const ROUNDS: u64 = 1_000;
const TEXT: &str = r#"{"data":"Hello world","event":"text","id":"c1"}"#;

/// Allocations of [`ROUNDS`] rounds, after as many to warm up.
#[expect(clippy::print_stdout, reason = "the figures are there to be read")]
fn cost(what: &str, mut round: impl FnMut()) -> u64 {
    (0..ROUNDS).for_each(|_| round());
    let count = measure(|| (0..ROUNDS).for_each(|_| round())).count_total;
    println!("{what}: {count} allocations in {ROUNDS} rounds");
    count
}

#[test]
fn decoding_frames_without_escapes_costs_no_allocation() {
    let limits = Limits::default();
    for text in [
        TEXT,
        r#"{"data":{"input_tokens":1,"output_tokens":2},"event":"usage","id":"c1"}"#,
        r#"{"data":{"id":"t","name":"echo","input":7},"event":"tool_use","id":"c1"}"#,
        r#"{"event":"done","id":"c1"}"#,
        r#"{"id":"c1","result":"pong"}"#,
        r#"{"id":"c1","error":"no"}"#,
    ] {
        let count = cost(text, || {
            assert!(ServerFrame::decode(text, &limits).unwrap().id().is_some());
        });
        assert_eq!(count, 0, "{text}");
    }
    let request =
        r#"{"id":"1","method":"chat.send","params":{"channel":"c","account":"a","content":"hi"}}"#;
    let count = cost("request", || {
        assert!(ClientFrame::decode(request, &limits).is_ok());
        let request = Request::decode(request, &limits).unwrap();
        assert!(request.call(&limits).is_ok());
    });
    assert_eq!(count, 0);
}

#[test]
fn encoding_into_a_buffer_with_room_costs_no_allocation() {
    let mut buffer = BytesMut::with_capacity(4096);
    let id = CallId::from_raw(7);
    let chat = ChatSend::<&str>::new("websocket", "user", "hello there");
    let count = cost("chat.send", || {
        buffer.clear();
        encode_request(&mut buffer, id, "chat.send", &chat).unwrap();
        encode_request(&mut buffer, id, "ping", &NoParams {}).unwrap();
    });
    assert_eq!(count, 0);
    let event: BorrowedEvent<'_> = StreamEvent::Text("Hello world".into());
    let count = cost("text event", || {
        buffer.clear();
        encode_event(&mut buffer, &"c1", &event).unwrap();
    });
    assert_eq!(count, 0);
}

#[test]
fn a_text_event_costs_the_client_one_allocation_and_a_discarded_frame_none() {
    let now = Instant::now();
    let mut client = ready(7, now).client;
    let chat = ChatSend::<&str>::new("websocket", "user", "hi");
    let id = client.chat_send(&chat, now).unwrap();
    let text = TEXT.replace("c1", &id.to_string());
    let event = cost("text through the client", || {
        client.handle_message(Incoming::Text(&text), now);
        assert!(client.poll_event().is_some());
    });
    assert_eq!(event, ROUNDS);
    let usage =
        format!(r#"{{"data":{{"input_tokens":1,"output_tokens":2}},"event":"usage","id":"{id}"}}"#);
    let event = cost("usage through the client", || {
        client.handle_message(Incoming::Text(&usage), now);
        assert!(client.poll_event().is_some());
    });
    assert_eq!(event, 0);
    client.cancel(id);
    let late = cost("text of a dropped chat", || {
        client.handle_message(Incoming::Text(&text), now);
        assert!(client.poll_event().is_none());
    });
    assert_eq!(late, 0);
}

#[test]
fn an_answered_request_costs_a_client_one_allocation_besides_its_frame() {
    let now = Instant::now();
    let mut client = ready(7, now).client;
    let mut answer = String::with_capacity(256);
    let call = cost("request and answer", || {
        let id = client.ping(now).unwrap();
        let Some(Outgoing::Text(request)) = client.poll_transmit() else {
            panic!("no request")
        };
        answer.clear();
        answer.push_str(r#"{"id":""#);
        // The id as it was sent, so that nothing is allocated here.
        answer.push_str(&request.as_str()[7..23]);
        answer.push_str(r#"","result":"pong"}"#);
        drop(request);
        client.handle_message(Incoming::Text(&answer), now);
        assert!(client.poll_event().is_some());
        assert!(!client.cancel(id));
    });
    // Now and then the outbox needs a fresh buffer for many frames.
    assert!(call <= ROUNDS + ROUNDS / 5, "{call}");
}
