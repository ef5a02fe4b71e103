//! How many allocations the hot paths cost once they are warm. Printed, and bounded from above.

use std::time::Instant;

use allocation_counter::measure;
use rpc_core::{Incoming, Limits, Machine, Outgoing};
use snek_proto::codec::encode_request;
use snek_proto::frame::NoKwargs;
use snek_proto::frame::{ClientFrame, Event, Final, ServerFrame};
use snek_proto::id::CallId;

use crate::played::ready;

const ROUNDS: u64 = 1_000;
const MESSAGE: &str = r#"{"event":"message","message":"Hello world","username":"ann","user_nick":"Ann","channel_uid":"ch1","is_final":true}"#;

/// Allocations of [`ROUNDS`] rounds, after as many to warm up.
#[expect(clippy::print_stdout, reason = "the figures are there to be read")]
fn cost(what: &str, mut round: impl FnMut()) -> u64 {
    (0..ROUNDS).for_each(|_| round());
    let count = measure(|| (0..ROUNDS).for_each(|_| round())).count_total;
    println!("{what}: {count} allocations in {ROUNDS} rounds");
    count
}

#[test]
fn decoding_short_texts_without_escapes_costs_no_allocation() {
    let limits = Limits::default();
    let event = cost("message event", || {
        let frame = ServerFrame::decode(MESSAGE, &limits).unwrap();
        let Some(Ok(Event::Message(message))) = frame.into_event() else {
            panic!("no message")
        };
        assert_eq!(message.username, "ann");
    });
    assert_eq!(event, 0);
    let reply = r#"{"callId":"0000000000000001","success":true,"data":{"channel_uid":"ch1"}}"#;
    let reply = cost("reply", || {
        let frame = ServerFrame::decode(reply, &limits).unwrap();
        assert!(frame.into_result().is_ok());
    });
    assert_eq!(reply, 0);
    let request = r#"{"method":"send_message","args":["ch1","hi",true],"kwargs":{},"callId":"1"}"#;
    let request = cost("request", || {
        let frame = ClientFrame::decode(request, &limits).unwrap();
        assert!(frame.call().is_ok());
    });
    assert_eq!(request, 0);
}

#[test]
fn encoding_into_a_buffer_with_room_costs_no_allocation() {
    let mut buffer = String::with_capacity(4096);
    let id = CallId::from_raw(7);
    let encoded = cost("send_message", || {
        buffer.clear();
        let args = ("ch1", "hello there", Final::Yes);
        encode_request(&mut buffer, "send_message", &args, &NoKwargs {}, id).unwrap();
    });
    assert_eq!(encoded, 0);
}

#[test]
fn short_events_and_dropped_replies_allocate_nothing() {
    let now = Instant::now();
    let mut client = ready(7, now).client;
    let event = cost("event through the client", || {
        client.handle_message(Incoming::Text(MESSAGE), now);
        assert!(client.poll_event().is_some());
    });
    assert_eq!(event, 0);
    let stray = r#"{"callId":"nobody waits","success":true,"data":{}}"#;
    let stray = cost("answer that nobody waits for", || {
        client.handle_message(Incoming::Text(stray), now);
        assert!(client.poll_event().is_none());
    });
    assert_eq!(stray, 0);
}

#[test]
fn a_call_allocates_only_its_frame() {
    let now = Instant::now();
    let mut client = ready(7, now).client;
    let mut answer = String::with_capacity(256);
    let call = cost("call and answer", || {
        client.ping(now).unwrap();
        let Some(Outgoing::Text(request)) = client.poll_transmit() else {
            panic!("no request")
        };
        let id = request.as_str().rsplit('"').nth(1).unwrap();
        answer.clear();
        answer.push_str(r#"{"callId":""#);
        answer.push_str(id);
        answer.push_str(r#"","data":1}"#);
        drop(request);
        client.handle_message(Incoming::Text(&answer), now);
        assert!(client.poll_event().is_some());
    });
    assert_eq!(call, ROUNDS);
}
