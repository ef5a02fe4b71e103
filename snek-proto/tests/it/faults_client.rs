//! The client under the faults of servers, over real sockets.

use std::net::SocketAddr;

use async_trait::async_trait;
use rpc_core::Limits;
use rpc_core::net::Dialer;
use rpc_core::net::ws::WsDialer;
use serde_json::{Value, json};
use snek_proto::client::ClientConfig;
use snek_proto::frame::Final;
use snek_proto::net::{Client, ClientProtocol, connect_with, dialer};
use switchboard_testing::faults::client::{
    ClientUnderTest, Ended, Line, SharedEvents, Started, Terms, check_all,
};

/// A client whose calls are messages.
struct Messages;

fn config(terms: &Terms) -> ClientConfig {
    ClientConfig {
        handshake_timeout: Some(terms.handshake),
        keep_alive: terms.keep_alive(),
        limits: Limits {
            max_message_bytes: terms.max_message,
            ..Limits::default()
        },
        link: terms.link.clone(),
        ..ClientConfig::new("mybot", "mypassword")
    }
}

#[async_trait]
impl ClientUnderTest for Messages {
    type Protocol = ClientProtocol;
    type Handle = Client;

    const STEPS: usize = 3;
    const CALLS: bool = true;

    fn dialer(&self, address: SocketAddr, terms: &Terms) -> WsDialer {
        dialer(&format!("ws://{address}"), &config(terms)).unwrap()
    }

    fn start<D: Dialer>(&self, dialer: D, terms: Terms) -> Started<Self> {
        let (client, events, connection) = connect_with(dialer, config(&terms));
        (client, events, tokio::spawn(connection.run()))
    }

    async fn step(&self, line: &mut dyn Line, step: usize) -> Option<()> {
        let frame = line.recv().await?;
        let steps = [
            ("login", json!({"username": "mybot"})),
            ("get_user", json!({"username": "mybot", "nick": "MyBot"})),
            (
                "get_channels",
                json!([{"uid": "ch1", "name": "general", "tag": "public"}]),
            ),
        ];
        let (method, data) = &steps[step];
        assert_eq!(frame["method"], *method);
        line.send(json!({"callId": frame["callId"], "data": data}))
            .await
    }

    async fn call(&self, client: &Client, _: &SharedEvents<Self>) -> Ended {
        client.send_message("ch1", "hi", Final::Yes).await.into()
    }

    async fn called(&self, line: &mut dyn Line) -> Option<Value> {
        let mut frame = line.recv().await?;
        assert_eq!(frame["method"], "send_message");
        Some(frame["callId"].take())
    }

    async fn progress(&self, _: &mut dyn Line, _: &Value) -> Option<()> {
        Some(())
    }

    async fn answer(&self, line: &mut dyn Line, id: &Value) -> Option<()> {
        line.send(json!({"callId": id, "data": {}})).await
    }

    async fn load(&self, client: &Client, bytes: usize) -> Ended {
        let text = "x".repeat(bytes);
        client.send_message("ch1", &text, Final::Yes).await.into()
    }

    fn event(&self, number: usize) -> Value {
        let data = json!({"channel_uid": "ch1", "color": format!("#{number:06x}")});
        json!({"event": "set_typing", "data": data})
    }

    fn frames_with(&self, json: &str) -> Vec<String> {
        vec![
            format!(r#"{{"event":"weather","data":{json}}}"#),
            format!(r#"{{"event":"message","message":{json}}}"#),
            format!(r#"{{"callId":"0000000000000000","data":{json}}}"#),
            format!(r#"{{"other":{json}}}"#),
        ]
    }
}

#[test]
fn the_client_survives_every_fault() {
    check_all(&Messages);
}
