//! What a server does with clients that send too much, or read too little.

use std::time::Duration;

use exoclaw_proto::net::ServerOptions;
use exoclaw_proto::server::ServerConfig;
use rpc_core::Limits;
use rpc_core::net::DriverConfig;
use rpc_core::rate::RateLimit;

use crate::harness::{Running, chat, start};
use crate::wire::{Frame, header, text};

const PING: &str = r#"{"id":"p","method":"ping"}"#;

async fn with_limits(limits: Limits) -> Running {
    let config = ServerConfig {
        limits,
        ..ServerConfig::default()
    };
    start(ServerOptions {
        connection: config,
        ..ServerOptions::default()
    })
    .await
}

#[tokio::test]
async fn the_default_message_limit_is_four_mebibytes() {
    const MOST: usize = 4 * 1024 * 1024;
    let server = start(ServerOptions::default()).await;
    let mut wire = server.client().await;
    wire.say(&" ".repeat(MOST)).await;
    assert!(wire.text().await.contains("parse error"));
    wire.send(&header(1, MOST as u64 + 1)).await;
    assert!(matches!(wire.next().await, Frame::Close(1009, _)));
}

#[tokio::test]
async fn a_client_above_the_rate_limit_is_closed_with_1008() {
    let rate = RateLimit::new(3, Duration::from_secs(60));
    let server = with_limits(Limits {
        max_message_rate: Some(rate),
        ..Limits::default()
    })
    .await;
    let mut wire = server.client().await;
    wire.send(&text(PING).repeat(4)).await;
    for _ in 0..3 {
        assert!(wire.text().await.contains("pong"));
    }
    assert!(matches!(wire.next().await, Frame::Close(1008, _)));
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
    wire.send(&piped).await;
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

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected_alone() {
    let driver = DriverConfig {
        write_timeout: Duration::from_millis(200),
        close_timeout: Duration::from_millis(100),
        ..DriverConfig::default()
    };
    let options = ServerOptions {
        driver,
        ..ServerOptions::default()
    };
    let mut server = start(options).await;
    let mut slow = server.client().await;
    let mut other = server.client().await;
    slow.say(&chat("1", "flood")).await;
    other.say(&chat("2", "hello")).await;
    assert!(other.text().await.contains("hello"));
    assert!(other.text().await.contains("done"));
    assert_eq!(server.ended().await, "hello");
    assert_eq!(server.ended().await, "flood");
    assert_eq!(server.ended().await, "disconnected");
    other.say(PING).await;
    assert!(other.text().await.contains("pong"));
}
