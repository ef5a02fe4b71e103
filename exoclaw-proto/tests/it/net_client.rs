//! The client over a line in memory and over a real WebSocket.

use std::time::Duration;

use exoclaw_proto::client::{ClientConfig, ClientEvent};
use exoclaw_proto::error::ErrorKind;
use exoclaw_proto::frame::{ChatSend, StreamEvent, Usage};
use exoclaw_proto::net::{Client, Events, connect_with};
use futures_util::{SinkExt, StreamExt};
use rpc_core::net::mem::{self, MemListener, MemTransport};
use rpc_core::net::{LinkEvent, LinkState, Message, Transport};
use rpc_core::{CallError, CloseFrame, CloseReason, Delivery, Limits, Outgoing};
use serde_json::{Value, json};

/// The gateway's end of one connection.
struct Gateway<T>(T);

impl<T: Transport> Gateway<T> {
    async fn send(&mut self, frame: Value) {
        let text = frame.to_string();
        let _ = self.0.send(Outgoing::Text(text.into())).await;
    }

    async fn hello(&mut self) {
        self.send(json!({"ok": true, "version": "0.1.0"})).await;
    }

    async fn recv(&mut self) -> Option<Value> {
        loop {
            match self.0.next().await? {
                Ok(Message::Text(text)) => return serde_json::from_str(text.as_str()).ok(),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }

    /// Answers whatever comes until the client goes.
    async fn serve(mut self) {
        while let Some(frame) = self.recv().await {
            let id = &frame["id"];
            match frame["method"].as_str() {
                Some("ping") => self.send(json!({"id": id, "result": "pong"})).await,
                Some("status") => {
                    let status = json!({"plugins": 2, "sessions": 5, "version": "0.1.0"});
                    self.send(json!({"id": id, "result": status})).await;
                }
                Some("plugin.list") => {
                    let plugins = json!([{"name": "echo"}, {"name": "telegram"}]);
                    self.send(json!({"id": id, "result": plugins})).await;
                }
                Some("chat.send") => self.chat(&frame).await,
                Some(other) => {
                    let error = format!("unknown method: {other}");
                    self.send(json!({"id": id, "error": error})).await;
                }
                None => {}
            }
        }
    }

    /// Says back what it was told, word by word.
    async fn chat(&mut self, frame: &Value) {
        let id = &frame["id"];
        let content = frame["params"]["content"].as_str().unwrap_or_default();
        for word in content.split_inclusive(' ') {
            self.send(json!({"id": id, "event": "text", "data": word}))
                .await;
        }
        for _ in 0..2 {
            let usage = json!({"input_tokens": 3, "output_tokens": 1});
            self.send(json!({"id": id, "event": "usage", "data": usage}))
                .await;
        }
        self.send(json!({"id": id, "event": "done"})).await;
    }
}

async fn accept(listener: &mut MemListener) -> Gateway<MemTransport> {
    let mut gateway = Gateway(listener.accept().await.expect("a connection"));
    gateway.hello().await;
    gateway
}

fn open(config: ClientConfig) -> (Client, Events, MemListener) {
    let (dialer, listener) = mem::listen(64);
    let (client, events, connection) = connect_with(dialer, config);
    tokio::spawn(connection.run());
    (client, events, listener)
}

/// A client whose gateway answers everything.
async fn served() -> Client {
    let (client, _, mut listener) = open(ClientConfig::default());
    tokio::spawn(accept(&mut listener).await.serve());
    client.ready().await.unwrap();
    client
}

/// A client and the gateway's end, for chats that are played.
async fn played() -> (Client, Gateway<MemTransport>) {
    let (client, _, mut listener) = open(ClientConfig::default());
    let gateway = accept(&mut listener).await;
    client.ready().await.unwrap();
    (client, gateway)
}

#[tokio::test(start_paused = true)]
async fn requests_give_typed_replies() {
    let client = served().await;
    client.ping().await.unwrap();
    let status = client.status().await.unwrap();
    assert_eq!(
        (&*status.version, status.plugins, status.sessions),
        ("0.1.0", 2, 5)
    );
    let plugins = client.plugin_list().await.unwrap();
    let names: Vec<_> = plugins.iter().map(|plugin| &*plugin.name).collect();
    assert_eq!(names, ["echo", "telegram"]);
    let error = client.session_list().await.unwrap_err();
    assert!(matches!(error, CallError::Remote(error) if error.kind() == ErrorKind::UnknownMethod));
    let answer = client.call("ping", &json!({"any": 1})).await.unwrap();
    assert_eq!(answer.get(), r#""pong""#);
    let error = client.call("nope", &json!(null)).await.unwrap_err();
    assert_eq!(error.delivery(), Delivery::Delivered);
}

#[tokio::test(start_paused = true)]
async fn a_mistyped_reply_is_a_peer_error() {
    for status in [
        json!("pong"),
        json!({"version": "0.1.0", "plugins": 1}),
        json!({"version": "0.1.0", "plugins": -1, "sessions": 0}),
    ] {
        let (client, mut gateway) = played().await;
        let asked = tokio::spawn(async move { client.status().await });
        let id = gateway.recv().await.unwrap()["id"].clone();
        gateway.send(json!({"id": id, "result": status})).await;
        let Err(CallError::Remote(error)) = asked.await.unwrap() else {
            panic!("no error")
        };
        let start = "an unexpected answer: ";
        assert!(error.message().starts_with(start), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_chat_stream_ends_after_its_outcome() {
    let client = served().await;
    let mut chat = client.chat("hello there").await;
    let mut texts = Vec::new();
    let mut usages = 0;
    while let Some(event) = chat.next().await {
        assert!(chat.outcome().is_none());
        match event.unwrap() {
            StreamEvent::Text(text) => texts.push(text.to_string()),
            StreamEvent::Usage(_) => usages += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((texts, usages), (vec!["hello ".into(), "there".into()], 2));
    assert_eq!(chat.summary().unwrap().usage, Usage::new(6, 2));
    assert!(chat.id().is_some());
    assert!(chat.next().await.is_none());
    assert_eq!(client.chat("a b").await.finish().await.unwrap(), "a b");
    // As a stream for combinators, too.
    let events: Vec<_> = StreamExt::collect(client.chat("x").await).await;
    assert_eq!(events.len(), 3);
}

/// The time that the gateway below takes for a chat. Virtual, as all time of these tests.
const CHAT_TIME: Duration = Duration::from_secs(3);

/// A client of a gateway that reads the next request when it has answered the last one.
async fn served_in_order() -> Client {
    let (client, mut gateway) = played().await;
    tokio::spawn(async move {
        while let Some(frame) = gateway.recv().await {
            let id = &frame["id"];
            if frame["method"] == "chat.send" {
                tokio::time::sleep(CHAT_TIME).await;
                gateway.chat(&frame).await;
            } else {
                gateway.send(json!({"id": id, "result": "pong"})).await;
            }
        }
    });
    client
}

#[tokio::test(start_paused = true)]
async fn requests_wait_for_earlier_ones_at_an_ordered_gateway() {
    let client = served_in_order().await;
    let mut chats = Vec::new();
    for n in 0..100 {
        chats.push(client.chat(n.to_string()).await);
    }
    let ping = tokio::spawn({
        let client = client.clone();
        async move { client.ping().await }
    });
    for (n, mut chat) in chats.into_iter().enumerate() {
        assert_eq!(chat.finish().await, Ok(n.to_string()));
    }
    assert_eq!(ping.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_request_waits_for_a_dropped_chat() {
    let client = served_in_order().await;
    for _ in 0..30 {
        let chat = client.chat("never mind").await;
        while chat.id().is_none() {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(client.ping().await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn chats_and_calls_can_have_a_total_timeout() {
    let client = served_in_order().await;
    let mut first = client.chat("first").await;
    let place = || ChatSend::new("websocket", "user", "second");
    let mut late = client.chat_within(Some(CHAT_TIME), place()).await;
    let call = client.call_within(Some(CHAT_TIME), "ping", &json!(null));
    assert!(matches!(call.await, Err(CallError::TimedOut { .. })));
    assert!(matches!(
        late.finish().await,
        Err(CallError::TimedOut { .. })
    ));
    assert_eq!(first.finish().await.unwrap(), "first");
    let mut patient = client.chat_within(None, place()).await;
    assert_eq!(patient.finish().await.unwrap(), "second");
}

#[tokio::test(start_paused = true)]
async fn the_configuration_can_set_a_total_timeout() {
    let config = ClientConfig {
        chat_total_timeout: Some(CHAT_TIME),
        ..ClientConfig::default()
    };
    let (client, _, mut listener) = open(config);
    let _silent = accept(&mut listener).await;
    client.ready().await.unwrap();
    let before = tokio::time::Instant::now();
    let ended = client.chat("hi").await.finish().await;
    assert!(matches!(ended, Err(CallError::TimedOut { .. })));
    assert_eq!(before.elapsed().as_secs(), CHAT_TIME.as_secs());
}

#[tokio::test(start_paused = true)]
async fn an_error_is_the_last_item_of_a_stream() {
    let (client, mut gateway) = played().await;
    let mut chat = client.chat("hi").await;
    let id = gateway.recv().await.unwrap()["id"].clone();
    gateway
        .send(json!({"id": id, "event": "text", "data": "so far"}))
        .await;
    gateway
        .send(json!({"id": id, "event": "error", "data": "provider error: x"}))
        .await;
    gateway.send(json!({"id": id, "event": "done"})).await;
    assert!(matches!(
        chat.next().await,
        Some(Ok(StreamEvent::Text(text))) if text == "so far"
    ));
    let Some(Err(CallError::Remote(error))) = chat.next().await else {
        panic!("no error")
    };
    assert_eq!(error.kind(), ErrorKind::Provider);
    assert!(chat.next().await.is_none());
    assert!(matches!(chat.outcome(), Some(Err(_))) && chat.summary().is_none());
    assert!(chat.finish().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn a_long_answer_waits_until_it_is_read() {
    let client = served().await;
    let words = "word ".repeat(5_000);
    let mut waiting = client.chat(&*words).await;
    client.ping().await.unwrap();
    assert_eq!(waiting.finish().await.unwrap(), words);
}

#[tokio::test(start_paused = true)]
async fn endless_text_is_limited() {
    let limits = Limits {
        max_event_bytes: 8,
        ..Limits::default()
    };
    let config = ClientConfig {
        limits,
        ..ClientConfig::default()
    };
    let (client, _, mut listener) = open(config);
    tokio::spawn(accept(&mut listener).await.serve());
    client.ready().await.unwrap();
    assert_eq!(
        client.chat("12345 78").await.finish().await.unwrap(),
        "12345 78"
    );
    let error = client.chat("12345 789").await.finish().await.unwrap_err();
    assert!(matches!(
        error,
        CallError::Closed {
            reason: CloseReason::TooLarge { max: 8 },
            ..
        }
    ));
}

#[tokio::test(start_paused = true)]
async fn a_failing_gateway_that_accepted_the_token_before_is_retried() {
    for token in [None, Some("t")] {
        let config = ClientConfig {
            token: token.map(Into::into),
            ..ClientConfig::default()
        };
        let (client, mut events, mut listener) = open(config);
        let first = accept(&mut listener).await;
        client.ready().await.unwrap();
        first.0.cutter().cut();
        let silent = listener.accept().await.unwrap();
        let mut closes = Gateway(listener.accept().await.unwrap());
        let close = CloseFrame::new(CloseFrame::NORMAL, "");
        closes.0.send(Outgoing::Close(close)).await.unwrap();
        tokio::spawn(accept(&mut listener).await.serve());
        while client.state() != (LinkState::Ready { generation: 2 }) {
            assert!(events.next_link().await.is_some());
        }
        assert_eq!(client.ping().await, Ok(()));
        drop(silent);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_token_stops_reconnecting() {
    for close in [None, Some(CloseFrame::new(4001, ""))] {
        let config = ClientConfig::new("wrong");
        let (client, _, mut listener) = open(config);
        let mut gateway = Gateway(listener.accept().await.unwrap());
        assert_eq!(gateway.recv().await.unwrap(), json!({"token": "wrong"}));
        match close {
            Some(frame) => gateway.0.send(Outgoing::Close(frame)).await.unwrap(),
            None => {
                gateway
                    .send(json!({"error": "auth_failed", "code": 4001}))
                    .await;
            }
        }
        let reason = client.ready().await.unwrap_err();
        assert!(matches!(reason, CloseReason::Authentication { .. }));
        assert!(matches!(client.state(), LinkState::GaveUp { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn errors_without_a_known_id_are_events() {
    let (client, mut events, mut listener) = open(ClientConfig::default());
    let mut gateway = accept(&mut listener).await;
    client.ready().await.unwrap();
    gateway
        .send(json!({"id": "0", "error": "parse error: expected ident"}))
        .await;
    let error = loop {
        if let LinkEvent::Event(ClientEvent::GatewayError(error)) =
            events.next_link().await.unwrap()
        {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::Parse);
}
