//! The server under faults, over real sockets.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rpc_core::testing::conformance;
use rpc_core::{Limits, Secret, Str};
use snek_proto::error::RpcError;
use snek_proto::frame::{Call, User};
use snek_proto::net::{Backend, CallReply, Peer, Replied, Server, ServerOptions};
use snek_proto::server::{ServerConfig, ServerConn};
use switchboard_testing::faults::server::{ServerUnderTest, Serving, Terms, check_all};
use switchboard_testing::faults::{End, RawPeer, upgrade_request};

/// Lets everyone in; panics, hangs or pushes as it is told.
struct Obedient;

impl Backend for Obedient {
    async fn login(
        &self,
        _: &Arc<Peer>,
        username: &str,
        _: &Secret<Str>,
    ) -> Result<User, RpcError> {
        if username == "undecided" {
            std::future::pending::<()>().await;
        }
        Ok(User::new(username, username))
    }

    async fn call(
        &self,
        peer: &Arc<Peer>,
        call: &Call,
        reply: CallReply<'_>,
    ) -> Result<Replied, RpcError> {
        match call.method() {
            "panic" => panic!("as asked"),
            "hang" => std::future::pending().await,
            "large" => reply.send(&"x".repeat(1 << 20)),
            "pour" => {
                let event = format!(r#"{{"event":"x","data":"{}"}}"#, "x".repeat(64 << 10));
                let event = rpc_core::Text::from(event);
                for _ in 0..1_000 {
                    peer.push(event.clone());
                    tokio::task::yield_now().await;
                }
                reply.send(&())
            }
            "tick" => loop {
                peer.push(rpc_core::Text::from(r#"{"event":"tick","data":1}"#));
                tokio::time::sleep(Duration::from_millis(1)).await;
            },
            method => reply.send(&method),
        }
    }
}

struct Subject(Serving);

fn call(method: &str, id: &str) -> String {
    format!(r#"{{"method":"{method}","args":[],"kwargs":{{}},"callId":"{id}"}}"#)
}

fn login(name: &str) -> String {
    format!(r#"{{"method":"login","args":["{name}","p"],"kwargs":{{}},"callId":"login"}}"#)
}

/// The answer to this call.
async fn answer_to(peer: &mut RawPeer, id: &str) -> io::Result<String> {
    let id = format!(r#""callId":"{id}""#);
    loop {
        let text = peer.next_text().await?;
        if text.contains(&id) {
            return Ok(text);
        }
    }
}

/// Asks for this, and expects this in the answer.
async fn expect(peer: &mut RawPeer, method: &str, part: &str) -> io::Result<()> {
    peer.text(&call(method, method)).await?;
    let answer = answer_to(peer, method).await?;
    assert!(answer.contains(part), "{answer}");
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
            connection,
            http,
            driver,
            shutdown_timeout: terms.shutdown,
        };
        let server = Server::bind("127.0.0.1:0", Obedient, options)
            .await
            .unwrap();
        Self(Serving::start(server))
    }

    fn serving(&self) -> &Serving {
        &self.0
    }

    fn upgrade(&self) -> String {
        upgrade_request("/rpc.ws", "")
    }

    async fn enter(&self, peer: &mut RawPeer, name: &str) -> io::Result<()> {
        peer.text(&login(name)).await?;
        answer_to(peer, "login").await.map(drop)
    }

    async fn exchange(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        expect(peer, "ping", r#""ping""#).await
    }

    fn states(&self) -> &'static [&'static str] {
        &[
            "upgraded",
            "login is checked",
            "logged in",
            "call is open",
            "events come",
        ]
    }

    async fn bring_to(&self, peer: &mut RawPeer, name: &str, state: &str) -> io::Result<()> {
        match state {
            "upgraded" => Ok(()),
            "login is checked" => peer.text(&login("undecided")).await,
            "logged in" => self.enter(peer, name).await,
            "call is open" => {
                self.enter(peer, name).await?;
                self.hang(peer, name).await
            }
            _ => {
                self.enter(peer, name).await?;
                peer.text(&call("tick", "tick")).await?;
                peer.next_text().await.map(drop)
            }
        }
    }

    async fn panic(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        expect(peer, "panic", "internal error").await
    }

    async fn hang(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        peer.text(&call("hang", "hang")).await
    }

    async fn oversize(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        expect(peer, "large", "too large").await
    }

    async fn pour(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        peer.text(&call("pour", "pour")).await
    }

    fn small_text(&self) -> String {
        call("ping", "small")
    }

    fn stranger(&self) -> Option<End> {
        Some(End::Close(1008))
    }
}

#[test]
fn the_server_survives_every_fault() {
    check_all::<Subject>();
}

#[test]
fn a_clock_that_jumps_gives_one_fresh_grace() {
    let config = ServerConfig {
        handshake_timeout: None,
        ..ServerConfig::default()
    };
    let mut conn = ServerConn::new(config, Instant::now());
    conformance::a_late_deadline_gives_one_fresh_grace(&mut conn);
}
