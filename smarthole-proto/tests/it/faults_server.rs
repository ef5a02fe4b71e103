//! The server under faults, over real sockets.

use std::io;
use std::pin::pin;
use std::time::Instant;

use async_trait::async_trait;
use rpc_core::testing::conformance;
use serde_json::Value;
use smarthole_proto::hub::{HubConfig, HubError, Input, Unroutable};
use smarthole_proto::limits;
use smarthole_proto::net::{RouterRuntime, Server, ServerOptions, Settled};
use smarthole_proto::router::RouterError;
use smarthole_proto::server::{ServerConfig, ServerConn};
use switchboard_testing::faults::server::{ServerUnderTest, Serving, Terms, check_all};
use switchboard_testing::faults::{End, RawPeer, upgrade_request};

use crate::harness::Obedient;
use crate::raw_client::{ack, registration};

struct Subject {
    serving: Serving,
    runtime: RouterRuntime,
    max_message: usize,
}

/// The registered name for a name in a test.
fn registered(name: &str) -> String {
    name.replace(' ', "-")
}

/// A text that is meant for this client.
fn to(name: &str, text: &str) -> Input {
    Input::text(format!("{}: {text}", registered(name)))
}

#[async_trait]
impl ServerUnderTest for Subject {
    async fn start(terms: Terms) -> Self {
        let options = ServerOptions::default();
        let connection = ServerConfig {
            handshake_timeout: Some(terms.opening),
            keep_alive: terms.keep_alive,
            limits: terms.limits(limits::defaults()),
            ..ServerConfig::default()
        };
        let mut hub = HubConfig {
            max_open_bytes: usize::MAX,
            ..HubConfig::default()
        };
        hub.limits = connection.limits.clone();
        let (http, driver) = (terms.http(options.http), terms.driver(options.driver));
        let options = ServerOptions {
            runtime: RouterRuntime::new(hub),
            connection,
            http,
            driver,
            shutdown_timeout: terms.shutdown,
            ..ServerOptions::default()
        };
        let server = Server::bind("127.0.0.1:0", Obedient::default(), options)
            .await
            .unwrap();
        let runtime = server.runtime();
        Self {
            serving: Serving::start(server),
            runtime,
            max_message: terms.max_message,
        }
    }

    fn serving(&self) -> &Serving {
        &self.serving
    }

    fn upgrade(&self) -> String {
        upgrade_request("/", "")
    }

    async fn enter(&self, peer: &mut RawPeer, name: &str) -> io::Result<()> {
        peer.text(&registration(&registered(name))).await?;
        let answer = peer.next_text().await?;
        assert!(answer.contains(r#""success":true"#), "{answer}");
        Ok(())
    }

    /// Here the server asks, and the client answers.
    async fn exchange(&self, peer: &mut RawPeer, name: &str) -> io::Result<()> {
        let mut asked = pin!(self.runtime.ask(to(name, "hi")));
        loop {
            tokio::select! {
                biased;
                settled = &mut asked => {
                    assert!(settled.as_ref().is_ok_and(Settled::is_taken), "{settled:?}");
                    return Ok(());
                }
                text = peer.next_text() => {
                    let message: Value = serde_json::from_str(&text?)?;
                    if let Some(id) = message["payload"]["id"].as_str() {
                        peer.text(&ack(id)).await?;
                    }
                }
            }
        }
    }

    fn states(&self) -> &'static [&'static str] {
        &["upgraded", "registered", "message is open", "acknowledged"]
    }

    async fn bring_to(&self, peer: &mut RawPeer, name: &str, state: &str) -> io::Result<()> {
        if state == "upgraded" {
            return Ok(());
        }
        self.enter(peer, name).await?;
        match state {
            "message is open" => {
                self.runtime.submit(to(name, "hi")).unwrap();
                peer.next_text().await.map(drop)
            }
            "acknowledged" => self.exchange(peer, name).await,
            _ => Ok(()),
        }
    }

    async fn panic(&self, _: &mut RawPeer, _: &str) -> io::Result<()> {
        let settled = self.runtime.ask(Input::text("panic")).await.unwrap();
        let why = Unroutable::Router(RouterError::Failed("internal error".into()));
        assert_eq!(settled.unroutable, Some(why));
        Ok(())
    }

    async fn hang(&self, _: &mut RawPeer, _: &str) -> io::Result<()> {
        self.runtime.submit(Input::text("hang")).unwrap();
        Ok(())
    }

    async fn oversize(&self, _: &mut RawPeer, name: &str) -> io::Result<()> {
        let refused = self.runtime.submit(to(name, &"x".repeat(self.max_message)));
        assert!(
            matches!(refused, Err(HubError::TooLarge { .. })),
            "{refused:?}"
        );
        Ok(())
    }

    async fn pour(&self, _: &mut RawPeer, name: &str) -> io::Result<()> {
        let long = "x".repeat(self.max_message / 2);
        let name = registered(name);
        let is_there = || {
            let clients = self.runtime.clients();
            clients
                .iter()
                .any(|client| *client.registration.name == *name)
        };
        let mut sent = 0;
        while is_there() {
            sent += 1;
            assert!(sent < 1_000, "{sent} messages are hoarded");
            self.runtime.submit(to(&name, &long)).unwrap();
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    fn small_text(&self) -> String {
        ack("msg-nobody-has-sent")
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
    let config = ServerConfig::default();
    let mut conn = ServerConn::new(config, Instant::now());
    conformance::a_late_deadline_gives_one_fresh_grace(&mut conn);
}
