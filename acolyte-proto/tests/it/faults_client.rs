//! The client under the faults of servers, over real sockets. The protocol has no handshake of its own.

use std::net::SocketAddr;

use acolyte_proto::client::{ChatUpdate, ClientConfig, Outcome};
use acolyte_proto::event::Event;
use acolyte_proto::frame::ChatRequest;
use acolyte_proto::net::{Client, ClientProtocol, connect_with, dialer};
use async_trait::async_trait;
use rpc_core::Limits;
use rpc_core::net::Dialer;
use rpc_core::net::ws::WsDialer;
use serde_json::{Value, json};
use switchboard_testing::faults::client::{
    ClientUnderTest, Ended, Line, SharedEvents, Started, Terms, check_all,
};

/// A client whose calls are chats.
struct Chats;

fn config(terms: &Terms) -> ClientConfig {
    ClientConfig {
        keep_alive: terms.keep_alive(),
        limits: Limits {
            max_message_bytes: terms.max_message,
            ..Limits::default()
        },
        link: terms.link.clone(),
        ..ClientConfig::default()
    }
}

fn ended(outcome: Outcome) -> Ended {
    match outcome {
        Outcome::Done(_) => Ended::Answered,
        Outcome::Closed { reason, delivery } => Ended::Closed { reason, delivery },
        Outcome::TimedOut { delivery } => Ended::TimedOut { delivery },
        Outcome::NotSent(refused) => Ended::Refused(refused),
        other => Ended::Otherwise(format!("{other:?}")),
    }
}

#[async_trait]
impl ClientUnderTest for Chats {
    type Protocol = ClientProtocol;
    type Handle = Client;

    const STEPS: usize = 0;
    const CALLS: bool = true;

    fn dialer(&self, address: SocketAddr, terms: &Terms) -> WsDialer {
        dialer(&format!("ws://{address}"), &config(terms)).unwrap()
    }

    fn start<D: Dialer>(&self, dialer: D, terms: Terms) -> Started<Self> {
        let (client, events, connection) = connect_with(dialer, config(&terms));
        (client, events, tokio::spawn(connection.run()))
    }

    async fn step(&self, _: &mut dyn Line, _: usize) -> Option<()> {
        Some(())
    }

    async fn call(&self, client: &Client, _: &SharedEvents<Self>) -> Ended {
        let mut chat = client.chat(ChatRequest::new("hi", "m")).await;
        let mut ends = Vec::new();
        while let Some(update) = chat.next().await {
            match update {
                ChatUpdate::Ended(outcome) => ends.push(ended(outcome)),
                ChatUpdate::Started | ChatUpdate::Event(Event::TextDelta(_)) => {
                    assert_eq!(ends, []);
                }
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(ends.len(), 1);
        ends.remove(0)
    }

    async fn called(&self, line: &mut dyn Line) -> Option<Value> {
        let mut frame = line.recv().await?;
        assert_eq!(frame["type"], "chat.start");
        Some(frame["id"].take())
    }

    async fn progress(&self, line: &mut dyn Line, id: &Value) -> Option<()> {
        line.send(json!({"id": id, "type": "chat.started"})).await?;
        let event = json!({"type": "text-delta", "text": "so far"});
        line.send(json!({"id": id, "type": "chat.event", "event": event}))
            .await
    }

    async fn answer(&self, line: &mut dyn Line, id: &Value) -> Option<()> {
        self.progress(line, id).await?;
        let reply = json!({"output": "fine", "outputStreamed": true, "model": "m"});
        line.send(json!({"id": id, "type": "chat.done", "reply": reply}))
            .await
    }

    async fn load(&self, client: &Client, bytes: usize) -> Ended {
        let request = ChatRequest::new("x".repeat(bytes), "m");
        ended(client.chat(request).await.finish().await)
    }

    fn event(&self, number: usize) -> Value {
        let error = format!("Invalid RPC message {number}");
        json!({"id": "rpc_unknown", "type": "error", "error": error})
    }

    fn frames_with(&self, json: &str) -> Vec<String> {
        vec![
            format!(r#"{{"id":"rpc_1","type":"status.result","status":{json}}}"#),
            format!(r#"{{"id":"rpc_1","type":"chat.event","event":{json}}}"#),
            format!(r#"{{"id":"rpc_1","type":"other","more":{json}}}"#),
        ]
    }
}

#[test]
fn the_client_survives_every_fault() {
    check_all(&Chats);
}
