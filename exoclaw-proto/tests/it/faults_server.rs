//! The server under faults, over real sockets.

use std::io;
use std::time::Instant;

use async_trait::async_trait;
use exoclaw_proto::auth::Auth;
use exoclaw_proto::net::{Server, ServerOptions};
use exoclaw_proto::server::{ServerConfig, ServerConn};
use rpc_core::Limits;
use rpc_core::testing::conformance;
use switchboard_testing::faults::server::{ServerUnderTest, Serving, Terms, check_all};
use switchboard_testing::faults::{End, RawPeer, upgrade_request};

use crate::harness::{Harness, chat};

struct Subject(Serving);

/// Says this, and waits for a message with this in it.
async fn expect(peer: &mut RawPeer, said: &str, part: &str) -> io::Result<()> {
    peer.text(said).await?;
    while !peer.next_text().await?.contains(part) {}
    Ok(())
}

#[async_trait]
impl ServerUnderTest for Subject {
    async fn start(terms: Terms) -> Self {
        let options = ServerOptions::default();
        let connection = ServerConfig {
            handshake_timeout: Some(terms.opening),
            keep_alive: terms.keep_alive,
            limits: terms.limits(Limits::default()),
            ..ServerConfig::default()
        };
        let (http, driver) = (terms.http(options.http), terms.driver(options.driver));
        let options = ServerOptions {
            auth: Auth::token("s3cret").unwrap(),
            connection,
            http,
            driver,
            shutdown_timeout: terms.shutdown,
        };
        let (harness, _) = Harness::new();
        let server = Server::bind("127.0.0.1:0", harness, options).await.unwrap();
        Self(Serving::start(server))
    }

    fn serving(&self) -> &Serving {
        &self.0
    }

    fn upgrade(&self) -> String {
        upgrade_request("/ws", "")
    }

    async fn enter(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        expect(peer, r#"{"token":"s3cret"}"#, r#""ok":true"#).await
    }

    async fn exchange(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        let ping = r#"{"id":"ping","method":"ping"}"#;
        expect(peer, ping, r#"{"id":"ping","result":"pong"}"#).await
    }

    fn states(&self) -> &'static [&'static str] {
        &["upgraded", "let in", "chat is open", "chat has begun"]
    }

    async fn bring_to(&self, peer: &mut RawPeer, name: &str, state: &str) -> io::Result<()> {
        if state == "upgraded" {
            return Ok(());
        }
        self.enter(peer, name).await?;
        match state {
            "let in" => Ok(()),
            "chat is open" => self.hang(peer, name).await,
            _ => expect(peer, &chat("begun", "hang"), r#""data":"...""#).await,
        }
    }

    async fn panic(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        let reported = r#"{"id":"panic","error":"internal error"}"#;
        expect(peer, &chat("panic", "panic"), reported).await
    }

    async fn hang(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        peer.text(&chat("hang", "hang")).await
    }

    async fn oversize(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        let reported = r#"{"id":"large","error":"the answer is too large"}"#;
        expect(peer, &chat("large", "too large"), reported).await
    }

    async fn pour(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        peer.text(&chat("pour", "flood")).await
    }

    fn small_text(&self) -> String {
        r#"{"id":"small","method":"ping"}"#.to_owned()
    }

    fn stranger(&self) -> Option<End> {
        Some(End::Close(4001))
    }
}

#[test]
fn the_server_survives_every_fault() {
    check_all::<Subject>();
}

#[test]
fn a_clock_that_jumps_gives_one_fresh_grace() {
    let mut conn = ServerConn::new(ServerConfig::default(), Auth::open(), Instant::now());
    conformance::a_late_deadline_gives_one_fresh_grace(&mut conn);
}
