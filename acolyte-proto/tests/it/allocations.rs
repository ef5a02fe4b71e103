//! How many allocations the hot paths cost once they are warm. Printed, and bounded from above.

use std::time::Instant;

use acolyte_proto::client::{ClientConfig, ClientConn};
use acolyte_proto::event::Event;
use acolyte_proto::frame::{Answer, ChatRequest, ClientFrame, Request, ServerFrame};
use acolyte_proto::id::RpcId;
use acolyte_proto::{codec, limits};
use allocation_counter::measure;
use rpc_core::{Incoming, Machine};

const ROUNDS: u64 = 1_000;
const TEXT: &str = r#"{"id":"rpc_0a1b2c3d","type":"chat.event","event":{"type":"text-delta","text":"Hello world"}}"#;

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
    let limits = limits::defaults();
    for text in [
        TEXT,
        r#"{"id":"rpc_0a1b2c3d","type":"chat.event","event":{"type":"reasoning","text":"Hm"}}"#,
        r#"{"id":"rpc_0a1b2c3d","type":"chat.event","event":{"type":"usage","inputTokens":1,"outputTokens":2}}"#,
        r#"{"id":"rpc_0a1b2c3d","type":"chat.event","event":{"type":"status","state":{"kind":"running"}}}"#,
        r#"{"id":"rpc_0a1b2c3d","type":"chat.event","event":{"type":"tool-call","toolCallId":"c","toolName":"t","args":{"a":1}}}"#,
        r#"{"id":"rpc_0a1b2c3d","type":"chat.event","event":{"type":"tool-output","toolCallId":"c","toolName":"t","content":{"kind":"text","text":"x"}}}"#,
        r#"{"id":"rpc_0a1b2c3d","type":"chat.event","event":{"type":"tool-result","toolCallId":"c","toolName":"t"}}"#,
        r#"{"id":"rpc_0a1b2c3d","type":"chat.accepted","taskId":"task_0a1b2c3d"}"#,
        r#"{"id":"rpc_0a1b2c3d","type":"chat.queued","position":1}"#,
        r#"{"id":"rpc_0a1b2c3d","type":"error","error":"no"}"#,
        // The tag need not be first.
        r#"{"event":{"text":"Hello","type":"text-delta"},"type":"chat.event","id":"rpc_0a1b2c3d"}"#,
    ] {
        let count = cost(text, || {
            assert!(ServerFrame::decode(text, &limits).is_ok());
        });
        assert_eq!(count, 0, "{text}");
    }
    let request = r#"{"id":"rpc_0a1b2c3d","type":"status.get"}"#;
    assert_eq!(
        cost("request", || drop(
            ClientFrame::decode(request, &limits).unwrap()
        )),
        0
    );
}

#[test]
fn encoding_into_a_buffer_with_room_costs_no_allocation() {
    let mut buffer = String::with_capacity(4096);
    let id = RpcId::random(7);
    let text = ServerFrame::new(id.clone(), Answer::Event(Event::text("Hello world")));
    let chat = Request::ChatStart(Box::new(ChatRequest::new("hello", "m")));
    let chat = ClientFrame::new(id, chat);
    let count = cost("text-delta and chat.start", || {
        buffer.clear();
        codec::encode_into(&text, &mut buffer).unwrap();
        codec::encode_into(&chat, &mut buffer).unwrap();
    });
    assert_eq!(count, 0);
}

#[test]
fn a_text_of_more_than_23_bytes_costs_one_allocation() {
    let limits = limits::defaults();
    let text = TEXT.replace("Hello world", "Hello world, and all who live in it");
    let count = cost("long", || {
        drop(ServerFrame::decode(&text, &limits).unwrap());
    });
    assert_eq!(count, ROUNDS);
}

#[test]
fn a_text_of_a_chat_costs_the_client_one_allocation() {
    let now = Instant::now();
    let mut conn = ClientConn::new(ClientConfig::default(), 7, now);
    let request = ChatRequest::new("hi", "m");
    let chat = conn.chat(&request, now).unwrap();
    let text = TEXT.replace("rpc_0a1b2c3d", &chat.to_string());
    while conn.poll_event().is_some() {}
    let count = cost("the client's text", || {
        conn.handle_message(Incoming::Text(&text), now);
        assert!(conn.poll_event().is_some());
    });
    assert!(count <= ROUNDS, "{count}");
}
