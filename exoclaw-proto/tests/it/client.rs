//! The client against a gateway of hand-written frames, under virtual time.

use std::time::{Duration, Instant};

use exoclaw_proto::client::{ClientConfig, ClientEvent, ClientState};
use exoclaw_proto::frame::{ChatSend, StreamEvent, Usage};
use exoclaw_proto::id::CallId;
use rpc_core::{CloseReason, Machine as _};
use serde_json::json;

use crate::gateway::{Machines, line};

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
        .send(&json!({"id": ping["id"], "result": "pong", "error": null}));
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
fn a_hello_that_crosses_the_token_is_accepted() {
    let config = ClientConfig::new("not wanted");
    let mut line = line(config, 0, Instant::now());
    line.set_latency(Duration::from_millis(10));
    line.server.hello();
    line.advance(Duration::from_millis(10));
    assert_eq!(line.client.state(), ClientState::Ready);
    line.server
        .send(&json!({"id": "0", "error": "parse error: missing field `id`"}));
    line.advance(Duration::from_millis(10));
    assert!(matches!(
        line.take_client_events()[..],
        [ClientEvent::Ready(_)]
    ));
}
