//! A client by hand: what it says, and what it is told.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::net::{TcpSocket, TcpStream};

use crate::wire::{Wire, answer};

pub(crate) fn registration(name: &str) -> String {
    let payload = json!({"name": name, "description": format!("The client {name}.")});
    json!({"type": "registration", "payload": payload}).to_string()
}

/// A response with this payload: `null` for none of its own.
pub(crate) fn response(id: &str, kind: &str, payload: &Value) -> String {
    let payload = json!({"messageId": id, "type": kind, "payload": payload});
    json!({"type": "response", "payload": payload}).to_string()
}

pub(crate) fn ack(id: &str) -> String {
    response(id, "ack", &json!({}))
}

pub(crate) fn reject(id: &str, reason: &str) -> String {
    response(id, "reject", &json!({"reason": reason}))
}

/// The answer to a request from this address.
pub(crate) async fn ask_from(local: &str, address: SocketAddr, request: &str) -> String {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(local.parse().unwrap()).unwrap();
    answer(socket.connect(address).await.unwrap(), request).await
}

impl Wire {
    /// Whether no one listens there.
    pub(crate) async fn open_refused(address: SocketAddr) -> bool {
        TcpStream::connect(address).await.is_err()
    }

    /// A client that is registered under this name.
    pub(crate) async fn client(address: SocketAddr, name: &str) -> Self {
        let mut wire = Self::open(address).await;
        let answer = wire.register(name).await;
        assert_eq!(answer["success"], true, "{answer}");
        wire
    }

    /// The payload of the answer to a registration.
    pub(crate) async fn register(&mut self, name: &str) -> Value {
        self.send(&registration(name)).await;
        self.payload("registration_response").await
    }

    /// The payload of the next frame, which is of this type.
    pub(crate) async fn payload(&mut self, kind: &str) -> Value {
        let text = self.text().await;
        let mut frame: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(frame["type"], kind, "{text}");
        frame["payload"].take()
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> Value {
        self.payload("message").await
    }

    /// The id of the next message.
    pub(crate) async fn id(&mut self) -> String {
        self.message().await["id"].as_str().unwrap().to_owned()
    }
}
