//! The host under faults, over real sockets.

use std::io;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use connectonion_proto::auth::{InviteCodes, Signer};
use connectonion_proto::frame::{EventKind, Thinking};
use connectonion_proto::limits::defaults;
use connectonion_proto::net::{
    Agent, AppError, Prompt, Reply, RuntimeOptions, Server, ServerOptions, Turn,
};
use connectonion_proto::server::{ServerConfig, ServerConn};
use connectonion_proto::trust::{AccessControl, TrustBook, TrustLevel};
use rpc_core::testing::conformance;
use serde_json::json;
use switchboard_testing::faults::server::{ServerUnderTest, Serving, Terms, check_all};
use switchboard_testing::faults::{End, RawPeer, upgrade_request};

use crate::staff::{Scripted, client_key, connect, host_key, input};

/// Says more than anybody reads, or more than fits, if it is told to; else it does as the other one.
struct Talkative;

impl Agent for Talkative {
    async fn run(&self, turn: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
        match &*prompt.text {
            "hang" => std::future::pending().await,
            "pour" => loop {
                let thought = Thinking::new("x".repeat(64 * 1024));
                turn.emit(EventKind::Thinking(thought))?;
                tokio::time::sleep(Duration::from_millis(1)).await;
            },
            "large" => Ok(Reply::new("x".repeat(1 << 20))),
            _ => Scripted.run(turn, prompt).await,
        }
    }
}

struct Subject(Serving);

/// Waits for a frame of this type.
async fn until(peer: &mut RawPeer, kind: &str) -> io::Result<String> {
    let kind = format!(r#""type":"{kind}""#);
    loop {
        let text = peer.next_text().await?;
        if text.contains(&kind) {
            return Ok(text);
        }
    }
}

async fn prompt(peer: &mut RawPeer, prompt: &str) -> io::Result<()> {
    peer.text(&input(prompt).to_string()).await
}

#[async_trait]
impl ServerUnderTest for Subject {
    async fn start(terms: Terms) -> Self {
        let mut book = TrustBook::default();
        book.contacts.insert(*client_key().address()).unwrap();
        let access = AccessControl::new(*host_key().address(), TrustLevel::Careful)
            .with_invites(InviteCodes::new(["red-onion"]).unwrap())
            .with_book(book);
        let runtime = RuntimeOptions::with_access(access);
        let mut options = ServerOptions::with_runtime(runtime);
        options.connection = ServerConfig {
            handshake_timeout: Some(terms.opening),
            keep_alive: terms.keep_alive,
            max_sent_bytes: terms.max_message,
            limits: terms.limits(defaults()),
            ..ServerConfig::default()
        };
        options.http = terms.http(options.http);
        options.driver = terms.driver(options.driver);
        options.shutdown_timeout = terms.shutdown;
        let host = Server::bind("127.0.0.1:0", Talkative, options)
            .await
            .unwrap();
        Self(Serving::start(host))
    }

    fn serving(&self) -> &Serving {
        &self.0
    }

    fn upgrade(&self) -> String {
        upgrade_request("/ws", "")
    }

    async fn enter(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        let connect = connect(&client_key(), json!({}));
        peer.text(&connect.to_string()).await?;
        until(peer, "CONNECTED").await.map(drop)
    }

    async fn exchange(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        peer.text(&self.small_text()).await?;
        until(peer, "SESSION_STATUS").await.map(drop)
    }

    fn states(&self) -> &'static [&'static str] {
        &[
            "upgraded",
            "at the gate",
            "connected",
            "run is under way",
            "question is open",
            "run is over",
        ]
    }

    async fn bring_to(&self, peer: &mut RawPeer, name: &str, state: &str) -> io::Result<()> {
        match state {
            "upgraded" => return Ok(()),
            "at the gate" => {
                let connect = connect(&Signer::from_seed(&[9; 32]), json!({}));
                peer.text(&connect.to_string()).await?;
                return until(peer, "ONBOARD_REQUIRED").await.map(drop);
            }
            _ => self.enter(peer, name).await?,
        }
        match state {
            "run is under way" => {
                prompt(peer, "think hard").await?;
                until(peer, "OUTPUT").await?;
                self.hang(peer, name).await
            }
            "question is open" => {
                prompt(peer, "ask Really?").await?;
                until(peer, "ask_user").await.map(drop)
            }
            "run is over" => {
                prompt(peer, "hi").await?;
                until(peer, "OUTPUT").await.map(drop)
            }
            _ => Ok(()),
        }
    }

    async fn panic(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        prompt(peer, "panic now").await?;
        until(peer, "ERROR").await.map(drop)
    }

    async fn hang(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        prompt(peer, "hang").await
    }

    async fn oversize(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        prompt(peer, "large").await?;
        until(peer, "OUTPUT").await.map(drop)
    }

    async fn pour(&self, peer: &mut RawPeer, _: &str) -> io::Result<()> {
        prompt(peer, "pour").await
    }

    fn small_text(&self) -> String {
        let session = json!({"session_id": "nobody"});
        json!({"type": "SESSION_STATUS", "session": session}).to_string()
    }

    fn stranger(&self) -> Option<End> {
        Some(End::Close(1008))
    }

    fn going(&self) -> u16 {
        1012
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
