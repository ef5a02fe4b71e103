//! The server under faults, over real sockets.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use acolyte_proto::limits;
use acolyte_proto::net::{Server, ServerOptions};
use acolyte_proto::server::{ServerConfig, ServerConn};
use async_trait::async_trait;
use rpc_core::testing::conformance;
use switchboard_testing::faults::server::{ServerUnderTest, Serving, Terms, check_all};
use switchboard_testing::faults::{End, RawPeer, upgrade_request};

use crate::daemon::{puppet, start};

struct Subject {
    serving: Serving,
    chats: AtomicUsize,
}

/// Waits for a message with both of these in it.
async fn until(peer: &mut RawPeer, id: &str, part: &str) -> io::Result<()> {
    let id = format!(r#""id":"{id}""#);
    loop {
        let text = peer.next_text().await?;
        if text.contains(&id) && text.contains(part) {
            return Ok(());
        }
    }
}

impl Subject {
    /// Starts a chat with an id of its own, and waits for a message about it.
    async fn chat(&self, peer: &mut RawPeer, message: &str, part: &str) -> io::Result<String> {
        let number = self.chats.fetch_add(1, Ordering::Relaxed);
        let id = format!("rpc_{}{number}", message.replace(' ', ""));
        peer.text(&start(&id, message).to_string()).await?;
        until(peer, &id, part).await?;
        Ok(id)
    }
}

#[async_trait]
impl ServerUnderTest for Subject {
    async fn start(terms: Terms) -> Self {
        let options = ServerOptions::default();
        let connection = ServerConfig {
            keep_alive: terms.keep_alive,
            limits: terms.limits(limits::defaults()),
            ..ServerConfig::default()
        };
        let (http, driver) = (terms.http(options.http), terms.driver(options.driver));
        let options = ServerOptions {
            connection,
            http,
            driver,
            shutdown_timeout: terms.shutdown,
            ..ServerOptions::default()
        };
        let (puppet, _, _) = puppet();
        let server = Server::bind("127.0.0.1:0", puppet, options).await.unwrap();
        Self {
            serving: Serving::start(server),
            chats: AtomicUsize::new(0),
        }
    }

    fn serving(&self) -> &Serving {
        &self.serving
    }

    fn upgrade(&self) -> String {
        upgrade_request("/v1/rpc", "")
    }

    async fn enter(&self, _: &mut RawPeer, _: &str) -> io::Result<()> {
        Ok(())
    }

    async fn exchange(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        peer.text(r#"{"id":"rpc_status","type":"status.get"}"#)
            .await?;
        until(peer, "rpc_status", "status.result").await
    }

    fn states(&self) -> &'static [&'static str] {
        &[
            "upgraded",
            "chat runs",
            "chat waits",
            "abort is under way",
            "chat was done",
        ]
    }

    async fn bring_to(&self, peer: &mut RawPeer, _: &str, state: &str) -> io::Result<()> {
        match state {
            "upgraded" => {}
            "chat was done" => drop(self.chat(peer, "hello", "chat.done").await?),
            state => {
                let running = self.chat(peer, "hang", "chat.event").await?;
                match state {
                    "chat waits" => drop(self.chat(peer, "hang", "chat.queued").await?),
                    "abort is under way" => {
                        let abort = format!(
                            r#"{{"id":"rpc_x","type":"chat.abort","payload":{{"requestId":"{running}"}}}}"#
                        );
                        peer.text(&abort).await?;
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    async fn panic(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        self.chat(peer, "panic", "chat.error").await.map(drop)
    }

    async fn hang(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        self.chat(peer, "hang", "chat.event").await.map(drop)
    }

    async fn oversize(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        self.chat(peer, "large step", "chat.error").await?;
        self.chat(peer, "large reply", "chat.error").await.map(drop)
    }

    async fn pour(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        self.chat(peer, "flood", "chat.event").await.map(drop)
    }

    fn small_text(&self) -> String {
        r#"{"id":"rpc_small","type":"status.get"}"#.to_owned()
    }

    fn stranger(&self) -> Option<End> {
        // The key comes with the upgrade request: there are no strangers behind it.
        None
    }
}

#[test]
fn the_server_survives_every_fault() {
    check_all::<Subject>();
}

#[test]
fn a_clock_that_jumps_gives_one_fresh_grace() {
    let config = ServerConfig::default();
    let mut conn = ServerConn::new(config, 7, Instant::now());
    conformance::a_late_deadline_gives_one_fresh_grace(&mut conn);
}
