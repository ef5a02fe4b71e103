//! A host on any line whose every frame the test decides.

use connectonion_proto::auth::{Signer, Verifier};
use connectonion_proto::frame::Signed;
use futures_util::{SinkExt, StreamExt};
use rpc_core::Outgoing;
use rpc_core::net::mem::{MemListener, MemTransport};
use rpc_core::net::{Message, Transport};
use serde_json::{Value, json};

/// The wall clock of every client here.
pub const NOW: f64 = 1_702_234_567.25;

/// The host's end of one connection. The queries that follow answers as their receipts are not
/// heard; `confirms` says whether they are replied to.
pub struct Host<T = MemTransport> {
    pub line: T,
    pub confirms: bool,
    awaits_receipt: bool,
}

pub fn client_key() -> Signer {
    Signer::from_seed(&[2; 32])
}

pub fn host_key() -> Signer {
    Signer::from_seed(&[1; 32])
}

/// Who has signed this frame for the host.
pub fn signed_by(frame: &Value) -> String {
    let payload = connectonion_proto::Json::of(&frame["payload"]).unwrap();
    let text = |name: &str| frame[name].as_str().unwrap();
    let signed = Signed::new(payload, text("from"), text("signature"));
    let verifier = Verifier {
        recipient: Some(*host_key().address()),
        ..Verifier::default()
    };
    let verified = verifier.verify(&signed, NOW).unwrap();
    verified.address.to_string()
}

pub fn connected(status: &str) -> Value {
    json!({"type": "CONNECTED", "session_id": "s-1", "status": status})
}

/// CONNECTED with a conversation that has this answer to `hello` in its second turn.
pub fn newer(status: &str, answer: &str) -> Value {
    let mut frame = connected(status);
    frame["server_newer"] = json!(true);
    frame["session"] = json!({"session_id": "s-1", "turn": 2, "messages": [
        {"role": "user", "content": "hello"}, {"role": "assistant", "content": answer},
    ]});
    frame["chat_items"] = json!([{"type": "user", "content": "hello", "id": "msg-1"}]);
    frame
}

pub fn event(tag: &str, id: &str, members: &Value) -> Value {
    let mut frame = json!({"type": tag, "id": id, "ts": 1.5, "session_id": "s-1"});
    for (name, value) in members.as_object().unwrap() {
        frame[name] = value.clone();
    }
    frame
}

pub fn user_input(prompt: &str, id: &str) -> Value {
    event("user_input", id, &json!({"content": prompt, "turn": 2}))
}

pub fn thinking(id: &str) -> Value {
    event("thinking", id, &json!({"content": "hm"}))
}

pub fn output(result: &str) -> Value {
    json!({"type": "OUTPUT", "result": result, "session_id": "s-1", "duration_ms": 3,
        "session": {"session_id": "s-1", "turn": 2, "iteration": 1, "result": result},
        "chat_items": []})
}

pub fn error(message: &str) -> Value {
    json!({"type": "ERROR", "message": message})
}

impl Host {
    /// The next connection, before anything is said.
    pub async fn accept(listener: &mut MemListener) -> Self {
        Self::on(listener.accept().await.expect("a connection"))
    }

    /// The next connection, let in with this answer. Returns its CONNECT, too.
    pub async fn answered(listener: &mut MemListener, answer: &Value) -> (Self, Value) {
        let mut host = Self::accept(listener).await;
        let connect = host.recv_type("CONNECT").await;
        host.send(answer).await;
        (host, connect)
    }

    pub fn cut(self) {
        self.line.cutter().cut();
    }
}

impl<T: Transport> Host<T> {
    pub const fn on(line: T) -> Self {
        Self {
            line,
            confirms: false,
            awaits_receipt: false,
        }
    }

    pub async fn send(&mut self, frame: &Value) {
        let _ = self
            .line
            .send(Outgoing::Text(frame.to_string().as_str().into()))
            .await;
    }

    pub async fn send_all(&mut self, frames: &[Value]) {
        for frame in frames {
            self.send(frame).await;
        }
    }

    /// The next frame of the client, or its Close as `{"close": code}`.
    pub async fn recv(&mut self) -> Value {
        self.try_recv().await.expect("a frame")
    }

    pub async fn recv_type(&mut self, tag: &str) -> Value {
        let frame = self.recv().await;
        assert_eq!(frame["type"], tag, "{frame}");
        frame
    }

    /// The next frame; `None` once the line has ended.
    pub async fn try_recv(&mut self) -> Option<Value> {
        loop {
            match self.line.next().await? {
                Ok(Message::Text(text)) => {
                    let frame: Value = serde_json::from_str(text.as_str()).ok()?;
                    let tag = frame["type"].as_str().unwrap_or_default();
                    let is_receipt = tag == "SESSION_STATUS" && self.awaits_receipt;
                    self.awaits_receipt = tag.ends_with("_RESPONSE");
                    if !is_receipt {
                        return Some(frame);
                    }
                    if self.confirms {
                        let id = &frame["session"]["session_id"];
                        let reply = json!({"type": "SESSION_STATUS", "session_id": id,
                            "status": "running"});
                        self.send(&reply).await;
                    }
                }
                Ok(Message::Close(Some(frame))) => return Some(json!({"close": frame.code})),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}
