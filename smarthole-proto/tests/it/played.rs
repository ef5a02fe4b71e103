//! A router on any line whose every frame the test decides.

use futures_util::{SinkExt, StreamExt};
use rpc_core::net::mem::{MemListener, MemTransport};
use rpc_core::net::{Message, Transport};
use rpc_core::{CloseFrame, Outgoing};
use serde_json::{Value, json};
use smarthole_proto::client::ClientConfig;
use smarthole_proto::frame::Registration;

/// The router's end of one connection.
pub struct Router<T = MemTransport>(pub T);

/// A client named `notes`.
pub fn config() -> ClientConfig {
    ClientConfig::new(registration()).unwrap()
}

pub fn registration() -> Registration {
    Registration::new("notes", "I keep notes.")
}

/// A response as it looks on the wire.
pub fn response(id: &str, tag: &str, payload: &Value) -> Value {
    json!({"type": "response", "payload": {"messageId": id, "type": tag, "payload": payload}})
}

pub fn rejected(id: &str, reason: &str) -> Value {
    response(id, "reject", &json!({"reason": reason}))
}

pub fn acked(id: &str) -> Value {
    response(id, "ack", &json!({}))
}

impl Router {
    /// The next connection, before anything is said.
    pub async fn accept(listener: &mut MemListener) -> Self {
        Self(listener.accept().await.expect("a connection"))
    }

    /// The next connection, registered.
    pub async fn registered(listener: &mut MemListener) -> Self {
        let mut router = Self::accept(listener).await;
        router.register().await;
        router
    }

    pub fn cut(self) {
        self.0.cutter().cut();
    }
}

impl<T: Transport> Router<T> {
    /// Takes the registration.
    pub async fn register(&mut self) {
        let frame = self.recv().await;
        assert_eq!(frame["type"], "registration", "{frame}");
        self.send(&json!({"type": "registration_response", "payload": {
            "success": true, "clientId": "c-1", "message": "Client 'notes' registered successfully",
        }}))
        .await;
    }

    /// Refuses the registration.
    pub async fn refuse(&mut self, code: &str) {
        let frame = self.recv().await;
        assert_eq!(frame["type"], "registration", "{frame}");
        self.send(&json!({"type": "registration_response", "payload": {
            "success": false, "code": code, "message": "no",
        }}))
        .await;
    }

    pub async fn send(&mut self, frame: &Value) {
        self.send_text(&frame.to_string()).await;
    }

    pub async fn send_text(&mut self, text: &str) {
        let _ = self.0.send(Outgoing::Text(text.into())).await;
    }

    /// Routes a message to the client.
    pub async fn route(&mut self, id: &str, text: &str) {
        self.send(&message(id, text)).await;
    }

    /// The next frame of the client, or its Close as `[code, reason]`.
    pub async fn recv(&mut self) -> Value {
        self.try_recv().await.expect("a frame")
    }

    /// The next frame; `None` once the line has ended.
    pub async fn try_recv(&mut self) -> Option<Value> {
        loop {
            match self.0.next().await? {
                Ok(Message::Text(text)) => return serde_json::from_str(text.as_str()).ok(),
                Ok(Message::Close(Some(CloseFrame { code, reason }))) => {
                    return Some(json!([code, reason]));
                }
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

/// A message as it looks on the wire.
pub fn message(id: &str, text: &str) -> Value {
    json!({"type": "message", "payload": {
        "id": id, "text": text, "timestamp": "2024-01-15T10:30:00.000Z",
        "metadata": {"inputMethod": "text", "directRouted": false},
    }})
}
