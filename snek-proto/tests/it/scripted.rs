//! A scripted server on an in-memory line: tests read its requests and decide about the answers.

use futures_util::{SinkExt, StreamExt};
use rpc_core::net::Message;
use rpc_core::net::mem::{self, MemTransport};
use rpc_core::{CloseFrame, Outgoing};
use serde_json::{Value, json};

/// One accepted connection.
pub struct Peer {
    transport: MemTransport,
}

#[derive(Debug)]
pub struct Request {
    pub method: String,
    pub args: Value,
    pub id: Value,
}

impl Peer {
    /// The next connection, before anything is said.
    pub async fn accept(listener: &mut mem::MemListener) -> Self {
        Self {
            transport: listener.accept().await.expect("a connection"),
        }
    }

    /// The next connection, logged in as `mybot` (`MyBot`) with the channels `ch1` and `dm1`.
    pub async fn logged_in(listener: &mut mem::MemListener) -> Self {
        let mut line = Self::accept(listener).await;
        line.log_in().await;
        line
    }

    pub async fn log_in(&mut self) {
        let channels = json!([
            {"uid": "ch1", "name": "general", "tag": "public"},
            {"uid": "dm1", "name": "DM", "tag": "dm"},
        ]);
        for (method, data) in [
            ("login", json!({"username": "mybot"})),
            ("get_user", json!({"username": "mybot", "nick": "MyBot"})),
            ("get_channels", channels),
        ] {
            let request = self.request().await;
            assert_eq!(request.method, method);
            self.answer(&request, data).await;
        }
    }

    /// The next request; `None` once the line has ended.
    pub async fn try_request(&mut self) -> Option<Request> {
        loop {
            match self.transport.next().await? {
                Ok(Message::Text(text)) => {
                    let mut frame: Value = serde_json::from_str(text.as_str()).expect("JSON");
                    return Some(Request {
                        method: frame["method"].as_str().expect("a method").to_owned(),
                        args: frame["args"].take(),
                        id: frame["callId"].take(),
                    });
                }
                Ok(_) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub async fn request(&mut self) -> Request {
        self.try_request().await.expect("a request")
    }

    pub async fn answer(&mut self, request: &Request, data: Value) {
        self.send(json!({"callId": request.id, "data": data})).await;
    }

    pub async fn refuse(&mut self, request: &Request, error: &str) {
        let data = json!({"error": error});
        self.send(json!({"callId": request.id, "success": false, "data": data}))
            .await;
    }

    pub async fn send_message(&mut self, channel: &str, username: &str, text: &str) {
        self.send(json!({
            "event": "message", "message": text, "username": username,
            "user_nick": username, "channel_uid": channel, "is_final": true,
        }))
        .await;
    }

    pub async fn send(&mut self, frame: Value) {
        let text = frame.to_string();
        let _ = self.transport.send(Outgoing::Text(text.into())).await;
    }

    /// Answers the next request, which has to be a complete message. Returns its channel and text.
    pub async fn posted(&mut self) -> (String, String) {
        let request = self.request().await;
        assert_eq!(request.method, "send_message", "{request:?}");
        assert_eq!(request.args[2], true, "{request:?}");
        self.answer(&request, json!({})).await;
        let part = |index: usize| request.args[index].as_str().unwrap_or_default().to_owned();
        (part(0), part(1))
    }

    pub async fn close(&mut self, code: u16) {
        let frame = CloseFrame::new(code, "");
        let _ = self.transport.send(Outgoing::Close(frame)).await;
    }

    pub fn cut(self) {
        self.transport.cutter().cut();
    }
}
