//! The client under the faults of routers, over real sockets. It is the router that asks here: a call is
//! a message that the client holds, and its end the response.

use std::net::SocketAddr;

use async_trait::async_trait;
use rpc_core::net::ws::WsDialer;
use rpc_core::net::{Dialer, LinkEvent};
use rpc_core::{Limits, Refused};
use serde_json::{Value, json};
use smarthole_proto::client::ClientConfig;
use smarthole_proto::frame::{Answer, Notification};
use smarthole_proto::net::{Client, ClientProtocol, Event, InboundMessage, connect_with, dialer};
use switchboard_testing::faults::client::{
    ClientUnderTest, Ended, Line, SharedEvents, Started, Terms, check_all,
};

use crate::played::{acked, message, registration};

/// A client that responds to messages when the router asks a second time.
struct Responses;

fn config(terms: &Terms) -> ClientConfig {
    ClientConfig {
        handshake_timeout: Some(terms.handshake),
        keep_alive: terms.keep_alive(),
        limits: Limits {
            max_message_bytes: terms.max_message,
            ..Limits::default()
        },
        link: terms.link.clone(),
        ..ClientConfig::new(registration()).unwrap()
    }
}

fn sent(done: Result<(), Refused>) -> Ended {
    done.map_or_else(Ended::Refused, |()| Ended::Answered)
}

#[async_trait]
impl ClientUnderTest for Responses {
    type Protocol = ClientProtocol;
    type Handle = Client;

    const STEPS: usize = 1;
    const CALLS: bool = false;

    fn dialer(&self, address: SocketAddr, terms: &Terms) -> WsDialer {
        dialer(&format!("ws://{address}"), &config(terms)).unwrap()
    }

    fn start<D: Dialer>(&self, dialer: D, terms: Terms) -> Started<Self> {
        let (client, events, connection) = connect_with(dialer, config(&terms));
        (client, events, tokio::spawn(connection.run()))
    }

    async fn step(&self, line: &mut dyn Line, _: usize) -> Option<()> {
        assert_eq!(line.recv().await?["type"], "registration");
        let payload = json!({"success": true, "clientId": "c-1", "message": "welcome"});
        line.send(json!({"type": "registration_response", "payload": payload}))
            .await
    }

    async fn call(&self, client: &Client, events: &SharedEvents<Self>) -> Ended {
        let mut events = events.lock().await;
        while events.try_next_link().is_some() {}
        if !client.state().is_ready() {
            return Ended::Refused(Refused::NotConnected);
        }
        let mut held: Option<InboundMessage> = None;
        loop {
            match (events.next_link().await, &held) {
                (Some(LinkEvent::Event(Event::Message(message))), _) => held = Some(message),
                (Some(LinkEvent::Event(Event::Unknown { .. })), Some(message)) => {
                    return sent(message.ack().await);
                }
                (Some(LinkEvent::Event(_) | LinkEvent::Lagged(_)), _) => {}
                // The line is gone. The message itself would wait for the next one.
                (Some(_) | None, _) => return sent(client.respond("m-1", Answer::Ack).await),
            }
        }
    }

    async fn called(&self, line: &mut dyn Line) -> Option<Value> {
        line.send(message("m-1", "hi")).await?;
        Some(json!("m-1"))
    }

    async fn progress(&self, _: &mut dyn Line, _: &Value) -> Option<()> {
        Some(())
    }

    async fn answer(&self, line: &mut dyn Line, _: &Value) -> Option<()> {
        line.send(json!({"type": "now", "payload": {}})).await?;
        loop {
            // Rejections of a flood come first.
            let frame = line.recv().await?;
            if frame == acked("m-1") {
                return Some(());
            }
            assert_eq!(frame["payload"]["type"], "reject", "{frame}");
        }
    }

    async fn load(&self, client: &Client, bytes: usize) -> Ended {
        let notification = Notification::new("x".repeat(bytes));
        sent(
            client
                .respond("m-0", Answer::Notification(notification))
                .await,
        )
    }

    fn event(&self, number: usize) -> Value {
        message(&format!("flood-{number}"), "hi")
    }

    fn frames_with(&self, json: &str) -> Vec<String> {
        vec![
            format!(r#"{{"type":"message","payload":{json}}}"#),
            format!(r#"{{"type":"other","payload":{json}}}"#),
            format!(r#"{{"other":{json}}}"#),
        ]
    }
}

#[test]
fn the_client_survives_every_fault() {
    check_all(&Responses);
}
