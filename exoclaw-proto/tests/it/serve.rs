//! The server over real sockets: tokens, streams, faults of the backend, leaving and ending.

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use exoclaw_proto::auth::{Auth, AuthError};
use exoclaw_proto::limits;
use exoclaw_proto::net::{MemoryBackend, Server, ServerOptions, http_config};
use exoclaw_proto::server::ServerConfig;
use http::{Response, StatusCode};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use crate::harness::{Running, chat, start};
use crate::wire::{DEADLINE, Frame, Wire, ask, frame, text, upgrade_request};
use rpc_core::Limits;

const REFUSAL: &str = r#"{"error":"auth_failed","code":4001}"#;
const PING: &str = r#"{"id":"p","method":"ping"}"#;
const PONG: &str = r#"{"id":"p","result":"pong"}"#;

fn close_4001() -> Frame {
    Frame::Close(4001, "auth_failed".to_owned())
}

fn piece(id: &str, data: &str) -> String {
    format!(r#"{{"id":"{id}","event":"text","data":"{data}"}}"#)
}

fn done(id: &str) -> String {
    format!(r#"{{"id":"{id}","event":"done"}}"#)
}

fn connection(config: ServerConfig) -> ServerOptions {
    ServerOptions {
        connection: config,
        ..ServerOptions::default()
    }
}

fn with_token() -> ServerOptions {
    let auth = Auth::token("s3cret").unwrap();
    let config = ServerConfig {
        handshake_timeout: Some(DEADLINE),
        ..ServerConfig::default()
    };
    ServerOptions {
        auth,
        ..connection(config)
    }
}

async fn open() -> Running {
    start(ServerOptions::default()).await
}

#[tokio::test]
async fn a_refusal_arrives_despite_pipelined_input() {
    let server = start(with_token()).await;
    let mut piped = text(r#"{"token":"wrong"}"#);
    for _ in 0..16 {
        piped.extend(text(&"x".repeat(64 * 1024)));
    }
    for (behind, half_closed) in [
        (vec![], false),
        (vec![], true),
        // A Close of the client, and bytes that are not a frame.
        (frame(8, &1000_u16.to_be_bytes()), true),
        (vec![0xff; 100], false),
    ] {
        let mut wire = Wire::open(server.address).await;
        let mut bytes = piped.clone();
        bytes.extend(behind);
        wire.write(&bytes).await;
        if half_closed {
            wire.0.tcp.shutdown().await.unwrap();
        }
        assert_eq!(wire.next().await, Frame::Text(REFUSAL.to_owned()));
        assert_eq!(wire.next().await, close_4001());
        wire.write(&frame(8, &4001_u16.to_be_bytes())).await;
        assert_eq!(wire.next().await, Frame::End);
    }
}

#[tokio::test]
async fn a_close_after_a_wrong_token_does_not_lose_the_refusal() {
    let server = start(with_token()).await;
    let mut wire = Wire::open(server.address).await;
    let mut bytes = text(r#"{"token":"wrong"}"#);
    bytes.extend(frame(8, &1000_u16.to_be_bytes()));
    wire.write(&bytes).await;
    assert_eq!(wire.next().await, Frame::Text(REFUSAL.to_owned()));
    assert_eq!(wire.next().await, close_4001());
}

#[tokio::test]
async fn no_more_short_tokens_are_compared_than_guesses_are_free() {
    let server = start(with_token()).await;
    let guesses = (0..10).map(|guess| text(&format!(r#"{{"token":"{guess}"}}"#)));
    for guess in guesses {
        let mut wire = Wire::open(server.address).await;
        wire.write(&guess).await;
        assert_eq!(wire.next().await, Frame::Text(REFUSAL.to_owned()));
    }
    // One in a second: the others learn nothing of what they send.
    let more = (10..18).map(async |guess| {
        let mut wire = Wire::open(server.address).await;
        wire.write(&text(&format!(r#"{{"token":"{guess}"}}"#)))
            .await;
        wire.next().await
    });
    let mut answers = futures_util::future::join_all(more).await;
    answers.retain(|answer| matches!(answer, Frame::Text(_)));
    assert!(answers.len() <= 2, "{answers:?}");
}

#[tokio::test]
async fn other_machines_are_not_served_without_a_token() {
    let bind = Server::bind("0.0.0.0:0", MemoryBackend::new(), ServerOptions::default());
    let refused = bind.await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let why = refused.get_ref().unwrap().downcast_ref();
    assert_eq!(why, Some(&AuthError::TokenRequired));
    let bind = Server::bind("0.0.0.0:0", MemoryBackend::new(), with_token());
    assert!(bind.await.is_ok());
}

#[tokio::test]
async fn the_memory_backend_echoes_and_counts_sessions() {
    let backend = Arc::new(MemoryBackend::new().with_plugin("echo").with_plugin("b"));
    let server = Server::bind("localhost:0", backend.clone(), ServerOptions::default())
        .await
        .unwrap();
    assert_eq!(server.url(), format!("ws://{}/ws", server.local_addr()));
    let mut wire = Wire::open({
        let address = server.local_addr();
        tokio::spawn(server.run());
        address
    })
    .await;
    let hello = wire.text().await;
    wire.send(&chat("1", "hello world")).await;
    assert_eq!(wire.text().await, piece("1", "hello "));
    assert_eq!(wire.text().await, piece("1", "world"));
    let usage = r#"{"id":"1","event":"usage","data":{"input_tokens":2,"output_tokens":2}}"#;
    assert_eq!(wire.text().await, usage);
    assert_eq!(wire.text().await, done("1"));
    assert_eq!(backend.sessions(), 1);
    wire.send(r#"{"id":"2","method":"status"}"#).await;
    let version = limits::HELLO_VERSION;
    assert_eq!(hello, format!(r#"{{"ok":true,"version":"{version}"}}"#));
    let status =
        format!(r#"{{"id":"2","result":{{"version":"{version}","plugins":2,"sessions":1}}}}"#);
    assert_eq!(wire.text().await, status);
    wire.send(r#"{"id":"3","method":"plugin.list"}"#).await;
    let list = r#"{"id":"3","result":[{"name":"echo"},{"name":"b"}]}"#;
    assert_eq!(wire.text().await, list);
}

#[tokio::test]
async fn the_memory_backend_counts_each_valid_session_once() {
    let options = ServerOptions::default();
    let backend = Arc::new(MemoryBackend::new());
    let server = Server::bind("127.0.0.1:0", backend.clone(), options).await;
    let server = server.unwrap();
    let address = server.local_addr();
    tokio::spawn(server.run());
    let mut wire = Wire::open(address).await;
    wire.text().await;
    let longest = "p".repeat(1_022);
    for (channel, account, peer, sessions) in [
        ("c", "a", "main", 1),
        ("c", "a", "main", 1),
        ("d", "a", "main", 2),
        ("c", "b", "main", 3),
        ("c", "a", "p", 4),
        ("c", "a", &*longest, 5),
        ("cc", "a", &*longest, 5),
    ] {
        let params = json!({"channel": channel, "account": account, "peer": peer, "content": ""});
        let request = json!({"id": "1", "method": "chat.send", "params": params});
        wire.send(&request.to_string()).await;
        while wire.text().await != done("1") {}
        assert_eq!(backend.sessions(), sessions, "{channel} {account} {peer}");
    }
}

#[tokio::test]
async fn pings_are_answered_while_a_reply_streams() {
    let server = open().await;
    let mut wire = server.client().await;
    wire.send(&chat("1", "wait")).await;
    assert_eq!(wire.text().await, piece("1", "..."));
    wire.write(&frame(9, b"there?")).await;
    assert_eq!(wire.next().await, Frame::Pong(b"there?".to_vec()));
    wire.send(PING).await;
    assert_eq!(wire.text().await, PONG);
    wire.send(r#"{"id":"s","method":"status"}"#).await;
    assert!(wire.text().await.starts_with(r#"{"id":"s","result""#));
    server.gate.notify_one();
    assert_eq!(wire.text().await, piece("1", "done"));
    assert_eq!(wire.text().await, done("1"));
}

#[tokio::test]
async fn ordered_pings_wait_for_the_chat_before() {
    let config = ServerConfig {
        in_order: true,
        ..ServerConfig::default()
    };
    let server = start(connection(config)).await;
    let mut wire = server.client().await;
    wire.send(&chat("1", "wait")).await;
    wire.send(PING).await;
    wire.send(&chat("2", "second")).await;
    assert_eq!(wire.text().await, piece("1", "..."));
    assert!(wire.is_silent().await);
    server.gate.notify_one();
    for expected in [
        piece("1", "done"),
        done("1"),
        PONG.to_owned(),
        piece("2", "second"),
        done("2"),
    ] {
        assert_eq!(wire.text().await, expected);
    }
}

#[tokio::test]
async fn chats_run_concurrently_and_are_separated_by_id() {
    let server = open().await;
    let mut wire = server.client().await;
    wire.send(&chat("1", "wait")).await;
    wire.send(&chat("2", "quick")).await;
    assert_eq!(wire.text().await, piece("1", "..."));
    assert_eq!(wire.text().await, piece("2", "quick"));
    assert_eq!(wire.text().await, done("2"));
    server.gate.notify_one();
    assert_eq!(wire.text().await, piece("1", "done"));
}

#[tokio::test]
async fn thousands_of_chunks_arrive_in_order() {
    let server = open().await;
    let mut wire = server.client().await;
    wire.send(&chat("1", "many")).await;
    for n in 0..10_000 {
        assert_eq!(wire.text().await, piece("1", &format!("{n} ")));
    }
    assert!(wire.text().await.contains("usage"));
    assert_eq!(wire.text().await, done("1"));
}

#[tokio::test]
async fn an_oversized_text_is_split() {
    let limits = Limits {
        max_message_bytes: 64 * 1024,
        ..Limits::default()
    };
    let server = start(connection(ServerConfig {
        limits,
        ..ServerConfig::default()
    }))
    .await;
    let mut wire = server.client().await;
    for (content, letter, count) in [
        ("long", 'é', 1024 * 1024),
        // Six bytes each in a frame.
        ("long escapes", '\u{1}', 256 * 1024),
    ] {
        wire.send(&chat("1", content)).await;
        let mut whole = 0;
        loop {
            let frame: serde_json::Value = serde_json::from_str(&wire.text().await).unwrap();
            match frame["data"].as_str() {
                Some(text) => whole += text.chars().filter(|c| *c == letter).count(),
                None => break assert_eq!(frame["event"], "done"),
            }
        }
        assert_eq!(whole, count, "{content}");
    }
}

#[tokio::test]
async fn a_chat_has_its_backends_error_and_a_panic_is_internal() {
    let server = open().await;
    let mut wire = server.client().await;
    let response = |error: &str| format!(r#"{{"id":"1","error":"{error}"}}"#);
    let event = |error: &str| format!(r#"{{"id":"1","event":"error","data":"{error}"}}"#);
    for (content, frames) in [
        ("refuse", vec![response("no")]),
        ("refuse late", vec![piece("1", "x"), event("no"), done("1")]),
        ("fail", vec![event("provider error: no"), done("1")]),
        ("panic", vec![response("internal error")]),
        (
            "panic late",
            vec![piece("1", "x"), event("internal error"), done("1")],
        ),
        ("gone", vec![response("internal error")]),
    ] {
        wire.send(&chat("1", content)).await;
        for expected in frames {
            assert_eq!(wire.text().await, expected, "{content}");
        }
    }
    wire.send(r#"{"id":"1","method":"plugin.list"}"#).await;
    assert_eq!(wire.text().await, response("internal error"));
    wire.send(PING).await;
    assert_eq!(wire.text().await, PONG);
}

#[tokio::test]
async fn a_reply_that_outlives_its_chat_sends_nothing_more() {
    let mut server = open().await;
    let mut wire = server.client().await;
    wire.send(&chat("1", "keep")).await;
    assert_eq!(wire.text().await, done("1"));
    assert_eq!(server.ended().await, "keep");
    assert_eq!(server.ended().await, "ended");
    wire.send(PING).await;
    assert_eq!(wire.text().await, PONG);
}

#[tokio::test]
async fn a_close_is_echoed_with_its_code() {
    let mut server = open().await;
    let mut wire = server.client().await;
    wire.send(&chat("1", "hang")).await;
    assert_eq!(wire.text().await, piece("1", "..."));
    let mut close = 4321_u16.to_be_bytes().to_vec();
    close.extend(b"bye");
    wire.write(&frame(8, &close)).await;
    assert_eq!(wire.next().await, Frame::Close(4321, "bye".to_owned()));
    assert_eq!(wire.next().await, Frame::End);
    assert_eq!(server.ended().await, "hang");
    assert_eq!(server.ended().await, "disconnected");
}

#[tokio::test]
async fn a_client_lost_during_a_stream_ends_the_run() {
    let mut server = open().await;
    let mut wire = server.client().await;
    wire.send(&chat("1", "hang")).await;
    assert_eq!(wire.text().await, piece("1", "..."));
    drop(wire);
    assert_eq!(server.ended().await, "hang");
    assert_eq!(server.ended().await, "disconnected");
}

#[tokio::test]
async fn frames_before_a_close_arrive_before_it() {
    let server = open().await;
    let mut wire = server.client().await;
    wire.send(&chat("1", "say and close")).await;
    assert_eq!(wire.text().await, piece("1", "bye"));
    assert_eq!(wire.text().await, done("1"));
    assert_eq!(wire.next().await, Frame::Close(4000, "told to".to_owned()));
}

#[tokio::test]
async fn an_oversized_step_ends_the_chat_on_both_sides() {
    let mut server = open().await;
    let mut wire = server.client().await;
    wire.send(&chat("1", "too large")).await;
    let answer = r#"{"id":"1","error":"the answer is too large"}"#;
    assert_eq!(wire.text().await, answer);
    assert_eq!(server.ended().await, "too large");
    wire.send(PING).await;
    assert_eq!(wire.text().await, PONG);
}

#[tokio::test]
async fn a_drain_finishes_chats_and_closes_with_a_reason() {
    let mut server = open().await;
    let (mut busy, mut idle) = (server.client().await, server.client().await);
    busy.send(&chat("1", "wait")).await;
    assert_eq!(busy.text().await, piece("1", "..."));
    let handle = server.handle.clone();
    let drain = tokio::spawn(async move { handle.drain(Duration::from_secs(5)).await });
    let goodbye = Frame::Close(1001, "server shutdown".to_owned());
    assert_eq!(idle.next().await, goodbye);
    idle.write(&frame(8, &1001_u16.to_be_bytes())).await;
    busy.send(&chat("2", "too late")).await;
    let refused = r#"{"id":"2","error":"server shutdown"}"#;
    assert_eq!(busy.text().await, refused);
    server.gate.notify_one();
    assert_eq!(busy.text().await, piece("1", "done"));
    assert_eq!(busy.text().await, done("1"));
    assert_eq!(busy.next().await, goodbye);
    busy.write(&frame(8, &1001_u16.to_be_bytes())).await;
    let report = drain.await.unwrap();
    assert_eq!((report.finished, report.aborted), (2, 0));
    assert_eq!(server.ended().await, "disconnected");
}

#[tokio::test]
async fn a_drain_waits_five_seconds_by_default() {
    let mut server = start(ServerOptions::default()).await;
    let mut wire = server.client().await;
    wire.send(&chat("1", "hang")).await;
    assert_eq!(wire.text().await, piece("1", "..."));
    tokio::time::pause();
    let before = tokio::time::Instant::now();
    let handle = server.handle.clone();
    let drain = tokio::spawn(async move { handle.drain(Duration::from_secs(60)).await });
    assert_eq!(server.recv.recv().await.unwrap(), "hang");
    assert_eq!(before.elapsed().as_secs(), 5);
    drain.abort();
}

#[tokio::test]
async fn only_the_specified_path_upgrades() {
    let http = http_config().with_http(|request, _| async move {
        let mut response = Response::new(request.uri().path().to_owned());
        *response.status_mut() = StatusCode::ACCEPTED;
        response
    });
    let server = start(ServerOptions {
        http,
        ..ServerOptions::default()
    })
    .await;
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n");
    let answer = ask(server.address, &get("/health")).await;
    assert!(answer.starts_with("202") && answer.ends_with("/health"));
    let answer = ask(server.address, &upgrade_request("/ws/", "")).await;
    assert!(answer.starts_with("202") && answer.ends_with("/ws/"));
    let request = upgrade_request("/ws", "").replace("Sec-WebSocket-Key", "x-key");
    assert!(ask(server.address, &request).await.starts_with("400"));
    let plain = open().await;
    assert!(
        ask(plain.address, &upgrade_request("/", ""))
            .await
            .starts_with("404")
    );
}
