//! What a server does with clients that send too much, or read too little.

use exoclaw_proto::net::ServerOptions;
use exoclaw_proto::server::ServerConfig;

use switchboard_testing::faults::RawFrame;

use crate::harness::{chat, start};
use crate::wire::{Frame, text};

const PING: &str = r#"{"id":"p","method":"ping"}"#;

#[tokio::test]
async fn the_default_message_limit_is_four_mebibytes() {
    const MOST: usize = 4 * 1024 * 1024;
    let server = start(ServerOptions::default()).await;
    let mut wire = server.client().await;
    wire.send(&" ".repeat(MOST)).await;
    assert!(wire.text().await.contains("parse error"));
    let too_large = RawFrame::text("").announcing(MOST as u64 + 1);
    wire.0.frame(too_large).await.unwrap();
    assert!(matches!(wire.next().await, Frame::Close(1009, _)));
}

#[tokio::test]
async fn requests_above_the_limit_wait_and_none_is_lost() {
    let config = ServerConfig {
        max_requests: 2,
        ..ServerConfig::default()
    };
    let server = start(ServerOptions {
        connection: config,
        ..ServerOptions::default()
    })
    .await;
    let mut wire = server.client().await;
    let mut piped = text(&chat("1", "wait"));
    piped.extend(text(&chat("2", "wait")));
    piped.extend(text(PING));
    wire.write(&piped).await;
    assert!(wire.text().await.contains(r#""data":"...""#));
    assert!(wire.text().await.contains(r#""data":"...""#));
    assert!(wire.is_silent().await);
    server.gate.notify_one();
    let mut rest = Vec::new();
    for _ in 0..3 {
        rest.push(wire.text().await);
    }
    assert!(rest.iter().any(|text| text.contains("pong")), "{rest:?}");
}
