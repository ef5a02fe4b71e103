//! The client against a gateway of hand-written frames, under virtual time.

use std::time::{Duration, Instant};

use exoclaw_proto::client::{ClientConfig, ClientEvent, ClientState};
use exoclaw_proto::error::ErrorKind;
use exoclaw_proto::frame::{ChatSend, StreamEvent, Usage};
use exoclaw_proto::id::CallId;
use rpc_core::{CallError, CloseReason, Machine as _};
use serde_json::json;

use crate::gateway::{Machines, line, ready};

fn chat(line: &mut Machines, content: &str) -> CallId {
    let now = line.now();
    let chat = ChatSend::new("websocket", "user", content);
    line.client.chat_send(&chat, now).unwrap()
}

#[test]
fn the_example_conversation_of_the_specification() {
    let config = ClientConfig::new("secret");
    let mut line = line(config, 0, Instant::now());
    line.settle();
    assert_eq!(line.take_server_events(), [json!({"token": "secret"})]);
    line.server.hello();
    line.settle();
    let now = line.now();
    line.client.ping(now).unwrap();
    line.settle();
    let ping = line.take_server_events().remove(0);
    line.server
        .say(&json!({"id": ping["id"], "result": "pong", "error": null}));
    chat(&mut line, "Hello, how are you?");
    line.settle();
    let id = line.take_server_events().remove(0)["id"].clone();
    line.server.step(&id, "text", &json!("Hello"));
    line.server.step(&id, "text", &json!(" world"));
    line.server.step(
        &id,
        "usage",
        &json!({"input_tokens": 150, "output_tokens": 42}),
    );
    line.server.done(&id);
    line.settle();
    let now = line.now();
    line.client.close(now);
    line.settle();
    insta::assert_snapshot!(line.trace().to_string());
    let events = line.take_client_events();
    let [
        ClientEvent::Ready(_),
        ClientEvent::Reply { .. },
        ClientEvent::Chat { .. },
        ClientEvent::Chat { .. },
        ClientEvent::Chat {
            event: StreamEvent::Usage(_),
            ..
        },
        ClientEvent::ChatEnded {
            result: Ok(summary),
            ..
        },
        ClientEvent::Closed(CloseReason::Local),
    ] = &events[..]
    else {
        panic!("{events:?}")
    };
    assert_eq!(summary.usage, Usage::new(150, 42));
    assert_eq!(summary.text_bytes, 11);
}

#[test]
fn a_close_with_4001_after_the_token_is_final() {
    let config = ClientConfig::new("wrong");
    let mut line = line(config, 0, Instant::now());
    line.set_latency(Duration::from_millis(10));
    line.settle();
    line.server.close(4001);
    line.advance(Duration::from_millis(20));
    let events = line.take_client_events();
    assert!(matches!(
        &events[..],
        [ClientEvent::Closed(CloseReason::Authentication { .. })]
    ));
}

#[test]
fn a_hello_that_crosses_the_token_is_accepted() {
    let config = ClientConfig::new("not wanted");
    let mut line = line(config, 0, Instant::now());
    line.set_latency(Duration::from_millis(10));
    line.server.hello();
    line.advance(Duration::from_millis(10));
    assert_eq!(line.client.state(), ClientState::Ready);
    line.server
        .say(&json!({"id": "0", "error": "parse error: missing field `id`"}));
    line.advance(Duration::from_millis(10));
    assert!(matches!(
        line.take_client_events()[..],
        [ClientEvent::Ready(_)]
    ));
}

#[test]
fn a_slow_provider_times_out_while_another_chat_streams() {
    let mut line = ready(1, Instant::now());
    let (stuck, busy) = (chat(&mut line, "a"), chat(&mut line, "b"));
    line.settle();
    let ids: Vec<_> = line
        .take_server_events()
        .iter()
        .map(|frame| frame["id"].clone())
        .collect();
    for _ in 0..8 {
        line.advance(Duration::from_secs(10));
        line.server.step(&ids[1], "text", &json!("x"));
    }
    line.settle();
    let ended: Vec<_> = line
        .take_client_events()
        .into_iter()
        .filter_map(|event| match event {
            ClientEvent::ChatEnded { id, result } => Some((id, result)),
            _ => None,
        })
        .collect();
    assert!(matches!(ended[..], [(id, Err(CallError::TimedOut { .. }))] if id == stuck));
    // What the gateway says about it afterwards goes nowhere.
    line.server
        .step(&ids[0], "error", &json!("provider error: too late"));
    line.server.done(&ids[0]);
    line.server.done(&ids[1]);
    line.settle();
    let events = line.take_client_events();
    assert!(matches!(events[..], [ClientEvent::ChatEnded { id, result: Ok(_) }] if id == busy));
    assert_eq!(line.client.stray_frames(), 2);
}

#[test]
fn errors_before_and_during_a_stream_are_one_outcome() {
    let mut line = ready(1, Instant::now());
    let (refused, broken) = (chat(&mut line, "a"), chat(&mut line, "b"));
    line.settle();
    let frames = line.take_server_events();
    line.server.say(
        &json!({"id": frames[0]["id"], "error": "token budget exceeded (session: 9500/10000)"}),
    );
    line.server
        .step(&frames[1]["id"], "error", &json!("provider error: gone"));
    line.server.done(&frames[1]["id"]);
    line.settle();
    let kinds: Vec<_> = line
        .take_client_events()
        .into_iter()
        .map(|event| match event {
            ClientEvent::ChatEnded {
                id,
                result: Err(CallError::Remote(error)),
            } => (id, error.kind()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        [
            (refused, ErrorKind::BudgetExceeded),
            (broken, ErrorKind::Provider)
        ]
    );
}
