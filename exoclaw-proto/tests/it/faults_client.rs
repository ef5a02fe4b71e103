//! The client under the faults of gateways, over real sockets.

use std::net::SocketAddr;

use async_trait::async_trait;
use exoclaw_proto::client::ClientConfig;
use exoclaw_proto::frame::StreamEvent;
use exoclaw_proto::net::{Client, ClientProtocol, connect_with, dialer};
use rpc_core::Limits;
use rpc_core::net::Dialer;
use rpc_core::net::ws::WsDialer;
use serde_json::{Value, json};
use switchboard_testing::faults::client::{
    ClientUnderTest, Ended, Line, SharedEvents, Started, Terms, check_all,
};

/// A client with a token, whose calls are chats.
struct Chats;

fn config(terms: &Terms) -> ClientConfig {
    ClientConfig {
        handshake_timeout: terms.handshake,
        keep_alive: terms.keep_alive(),
        chat_idle_timeout: Some(terms.silence),
        limits: Limits {
            max_message_bytes: terms.max_message,
            ..Limits::default()
        },
        link: terms.link.clone(),
        ..ClientConfig::new("t")
    }
}

#[async_trait]
impl ClientUnderTest for Chats {
    type Protocol = ClientProtocol;
    type Handle = Client;

    const STEPS: usize = 1;
    const CALLS: bool = true;
    // Known gateways answer a ping only between requests.
    const CALLS_OUTLAST_PINGS: bool = true;

    fn dialer(&self, address: SocketAddr, terms: &Terms) -> WsDialer {
        dialer(&format!("ws://{address}"), &config(terms)).unwrap()
    }

    fn start<D: Dialer>(&self, dialer: D, terms: Terms) -> Started<Self> {
        let (client, events, connection) = connect_with(dialer, config(&terms));
        (client, events, tokio::spawn(connection.run()))
    }

    async fn step(&self, line: &mut dyn Line, _: usize) -> Option<()> {
        assert_eq!(line.recv().await?, json!({"token": "t"}));
        line.send(json!({"ok": true, "version": "0.1.0"})).await
    }

    async fn call(&self, client: &Client, _: &SharedEvents<Self>) -> Ended {
        let mut chat = client.chat("hi").await;
        let mut ends = Vec::new();
        while let Some(step) = chat.next().await {
            match step {
                Ok(StreamEvent::Text(_)) => assert_eq!(ends, []),
                Ok(other) => panic!("{other:?}"),
                Err(error) => ends.push(Ended::from(Err::<(), _>(error))),
            }
        }
        assert!(ends.len() <= 1, "{ends:?}");
        assert!(chat.outcome().is_some());
        ends.pop().unwrap_or(Ended::Answered)
    }

    async fn called(&self, line: &mut dyn Line) -> Option<Value> {
        let mut frame = line.recv().await?;
        assert_eq!(frame["method"], "chat.send");
        Some(frame["id"].take())
    }

    async fn progress(&self, line: &mut dyn Line, id: &Value) -> Option<()> {
        line.send(json!({"id": id, "event": "text", "data": "so far"}))
            .await
    }

    async fn answer(&self, line: &mut dyn Line, id: &Value) -> Option<()> {
        self.progress(line, id).await?;
        line.send(json!({"id": id, "event": "done"})).await
    }

    async fn load(&self, client: &Client, bytes: usize) -> Ended {
        client.chat("x".repeat(bytes)).await.finish().await.into()
    }

    fn event(&self, number: usize) -> Value {
        json!({"id": "0", "error": format!("parse error: {number}")})
    }

    fn frames_with(&self, json: &str) -> Vec<String> {
        vec![
            format!(r#"{{"ok":true,"version":{json}}}"#),
            format!(r#"{{"id":"1","result":{json}}}"#),
            format!(r#"{{"id":"1","event":"text","data":{json}}}"#),
            format!(r#"{{"other":{json}}}"#),
        ]
    }
}

#[test]
fn the_client_survives_every_fault() {
    check_all(&Chats);
}
