//! The client under the faults of hosts, over real sockets.

use std::net::SocketAddr;

use async_trait::async_trait;
use connectonion_proto::client::ClientConfig;
use connectonion_proto::net::{Client, ClientProtocol, connect_with, dialer};
use rpc_core::Limits;
use rpc_core::net::Dialer;
use rpc_core::net::ws::WsDialer;
use serde_json::{Value, json};
use switchboard_testing::faults::client::{
    ClientUnderTest, Ended, Line, SharedEvents, Started, Terms, check_all,
};

use crate::scripted::{client_key, connected, thinking};

/// A client whose calls are questions for a session. Runs outlast lines; see `net_resume`.
struct Questions;

fn options(terms: &Terms) -> ClientConfig {
    let limits = Limits {
        max_message_bytes: terms.max_message,
        ..Limits::default()
    };
    ClientConfig {
        handshake_timeout: Some(terms.handshake),
        silence_timeout: Some(terms.silence),
        answer_timeout: None,
        max_sent_bytes: terms.max_message,
        limits,
        link: terms.link.clone(),
        ..ClientConfig::default()
    }
}

#[async_trait]
impl ClientUnderTest for Questions {
    type Protocol = ClientProtocol;
    type Handle = Client;

    const STEPS: usize = 1;
    const CALLS: bool = true;

    fn dialer(&self, address: SocketAddr, terms: &Terms) -> WsDialer {
        dialer(&format!("ws://{address}"), &options(terms)).unwrap()
    }

    fn start<D: Dialer>(&self, dialer: D, terms: Terms) -> Started<Self> {
        let (agent, events, connection) = connect_with(dialer, client_key(), options(&terms));
        (agent, events, tokio::spawn(connection.run()))
    }

    async fn step(&self, line: &mut dyn Line, _: usize) -> Option<()> {
        assert_eq!(line.recv().await?["type"], "CONNECT");
        line.send(connected("new")).await
    }

    async fn call(&self, agent: &Client, _: &SharedEvents<Self>) -> Ended {
        agent.status("s-1").await.into()
    }

    async fn called(&self, line: &mut dyn Line) -> Option<Value> {
        let frame = line.recv().await?;
        assert_eq!(frame["type"], "SESSION_STATUS");
        Some(frame)
    }

    async fn progress(&self, _: &mut dyn Line, _: &Value) -> Option<()> {
        Some(())
    }

    async fn answer(&self, line: &mut dyn Line, _: &Value) -> Option<()> {
        line.send(json!({"type": "SESSION_STATUS", "session_id": "s-1", "status": "connected"}))
            .await
    }

    async fn load(&self, agent: &Client, bytes: usize) -> Ended {
        agent.status("x".repeat(bytes)).await.into()
    }

    fn event(&self, number: usize) -> Value {
        thinking(&number.to_string())
    }

    fn frames_with(&self, json: &str) -> Vec<String> {
        vec![
            format!(
                r#"{{"type":"thinking","id":"t","ts":1.5,"session_id":"s-1","content":{json}}}"#
            ),
            format!(r#"{{"type":"other","id":"t","ts":1.5,"session_id":"s-1","more":{json}}}"#),
            format!(r#"{{"other":{json}}}"#),
        ]
    }
}

#[test]
fn the_client_survives_every_fault() {
    check_all(&Questions);
}
