//! Many requests on one connection, and clients that read slowly.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{ChatSend, Method, Plugin, Session, Status};
use exoclaw_proto::net::{AppError, Backend, ChatReply, Peer, Server, ServerOptions};
use rpc_core::Str;

use crate::harness::{chat, start};
use crate::wire::{Frame, Wire, frame, text};

const STREAMS: usize = 1_000;

#[tokio::test]
async fn a_thousand_streams_share_a_responsive_connection() {
    let server = start(ServerOptions::default()).await;
    let mut wire = server.client().await;
    for n in 0..STREAMS {
        wire.send(&chat(&n.to_string(), "wait")).await;
    }
    for _ in 0..STREAMS {
        assert!(wire.text().await.contains("..."));
    }
    wire.write(&frame(9, b"there?")).await;
    assert_eq!(wire.next().await, Frame::Pong(b"there?".to_vec()));
    wire.send(r#"{"id":"p","method":"ping"}"#).await;
    assert_eq!(wire.text().await, r#"{"id":"p","result":"pong"}"#);
    server.gate.notify_waiters();
    let mut ended = 0;
    while ended < STREAMS {
        ended += usize::from(wire.text().await.contains(r#""event":"done""#));
    }
}

#[tokio::test]
async fn a_thousand_streams_to_a_slow_reader_arrive_whole_and_in_order() {
    let server = start(ServerOptions::default()).await;
    let mut wire = server.client().await;
    for n in 0..STREAMS {
        wire.send(&chat(&n.to_string(), "fifty")).await;
    }
    let mut next: HashMap<String, u64> = HashMap::new();
    let mut ended = 0;
    while ended < STREAMS {
        let frame: serde_json::Value = serde_json::from_str(&wire.text().await).unwrap();
        let stream = next.entry(frame["id"].as_str().unwrap().to_owned());
        let count = stream.or_default();
        if frame["event"] == "done" {
            assert_eq!(*count, 50);
            ended += 1;
        } else {
            assert_eq!(frame["data"], count.to_string());
        }
        *count += 1;
    }
    wire.send(r#"{"id":"p","method":"ping"}"#).await;
    assert_eq!(wire.text().await, r#"{"id":"p","result":"pong"}"#);
}

/// Lists one session with a large key.
struct Large {
    key: Str,
    made: Arc<AtomicUsize>,
}

impl Backend for Large {
    async fn status(&self, _: &Arc<Peer>) -> Status {
        Status::default()
    }

    async fn plugins(&self, _: &Arc<Peer>) -> Vec<Plugin> {
        Vec::new()
    }

    async fn chat(&self, _: &Arc<Peer>, _: ChatSend, _: ChatReply) -> Result<(), AppError> {
        Ok(())
    }

    fn extensions(&self) -> &[Method] {
        &[Method::SessionList]
    }

    async fn session_list(&self, _: &Arc<Peer>) -> Result<Vec<Session>, RpcError> {
        self.made.fetch_add(1, Ordering::Relaxed);
        Ok(vec![Session {
            key: self.key.clone(),
            turns: 1,
            last_active: 0,
        }])
    }
}

/// A connection to a server with this backend, and how often it was asked.
async fn open_large() -> (Wire, Arc<AtomicUsize>) {
    let made = Arc::new(AtomicUsize::new(0));
    let backend = Large {
        key: "x".repeat(256 * 1024).into(),
        made: Arc::clone(&made),
    };
    let options = ServerOptions::default();
    let server = Server::bind("127.0.0.1:0", backend, options).await.unwrap();
    let address = server.local_addr();
    tokio::spawn(server.run());
    (Wire::open(address).await, made)
}

#[tokio::test]
async fn a_backends_extensions_are_advertised_and_served() {
    let (mut wire, _) = open_large().await;
    let hello = r#"{"ok":true,"version":"0.1.0","extensions":["session.list"]}"#;
    assert_eq!(wire.text().await, hello);
    wire.send(r#"{"id":"1","method":"session.list"}"#).await;
    assert!(
        wire.text()
            .await
            .starts_with(r#"{"id":"1","result":[{"key":"xx"#)
    );
    wire.send(r#"{"id":"2","method":"chat.history","params":{}}"#)
        .await;
    let unknown = r#"{"id":"2","error":"unknown method: chat.history"}"#;
    assert_eq!(wire.text().await, unknown);
}

#[tokio::test]
async fn replies_are_not_produced_for_a_client_that_does_not_read() {
    const ASKED: usize = 400;
    let (mut wire, made) = open_large().await;
    wire.text().await;
    let ask = text(r#"{"id":"1","method":"session.list"}"#);
    wire.write(&ask.repeat(ASKED)).await;
    wire.text().await;
    // What the sockets and the outbox take, and one more.
    assert!(made.load(Ordering::Relaxed) < ASKED / 2);
    for _ in 1..ASKED {
        wire.text().await;
    }
    assert_eq!(made.load(Ordering::Relaxed), ASKED);
}
