//! A backend that does what the content of a chat says, and a server around it.

use std::net::SocketAddr;
use std::sync::Arc;

use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{ChatSend, Plugin, Status, StreamEvent, Usage};
use exoclaw_proto::net::{AppError, Backend, ChatReply, Peer, Server, ServerHandle, ServerOptions};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use crate::wire::Wire;

pub(crate) struct Harness {
    /// Lets chats that `wait` go on.
    pub(crate) gate: Arc<Notify>,
    /// Names of chats whose future was dropped or has ended, and `disconnected`.
    reported: mpsc::UnboundedSender<String>,
}

/// Says what ended, even if it was dropped.
struct Guard(mpsc::UnboundedSender<String>, String);

impl Drop for Guard {
    fn drop(&mut self) {
        let _ = self.0.send(std::mem::take(&mut self.1));
    }
}

impl Backend for Harness {
    async fn status(&self, _: &Arc<Peer>) -> Status {
        Status::new("0.1.0", 1, 2)
    }

    async fn plugins(&self, _: &Arc<Peer>) -> Vec<Plugin> {
        panic!("no list")
    }

    async fn chat(
        &self,
        peer: &Arc<Peer>,
        chat: ChatSend,
        reply: ChatReply,
    ) -> Result<(), AppError> {
        let _guard = Guard(self.reported.clone(), chat.content.to_string());
        match &*chat.content {
            "hang" => {
                reply.text("...").await?;
                std::future::pending::<()>().await;
            }
            "wait" => {
                reply.text("...").await?;
                self.gate.notified().await;
                reply.text("done").await?;
            }
            "flood" => loop {
                reply.text(&"x".repeat(64 * 1024)).await?;
            },
            "many" => {
                for n in 0..10_000 {
                    reply.text(&format!("{n} ")).await?;
                }
                reply.usage(Usage::new(1, 2)).await?;
            }
            "fifty" => {
                for n in 0..50 {
                    reply.text(&n.to_string()).await?;
                }
            }
            "long" => reply.text(&"é".repeat(1024 * 1024)).await?,
            "long escapes" => reply.text(&"\u{1}".repeat(256 * 1024)).await?,
            "refuse" => return Err(AppError::Refused(RpcError::new("no"))),
            "refuse late" => {
                reply.text("x").await?;
                return Err(AppError::Refused(RpcError::new("no")));
            }
            "fail" => return Err(AppError::Failed(RpcError::provider("no"))),
            "panic" => panic!("asked to"),
            "panic late" => {
                reply.text("x").await?;
                panic!("asked to");
            }
            "gone" => return Err(AppError::Gone(exoclaw_proto::net::Gone)),
            "close" => peer.close(rpc_core::CloseFrame::new(4000, "told to")),
            "say and close" => {
                reply.text("bye").await?;
                peer.close(rpc_core::CloseFrame::new(4000, "told to"));
            }
            "too large" => {
                let large = StreamEvent::Text("x".repeat(8 * 1024 * 1024).into());
                reply.event(&large).await?;
                // Whoever goes on is told in the end.
                while reply.text("more").await.is_ok() {
                    tokio::task::yield_now().await;
                }
                return Err(AppError::Refused(RpcError::new("not told")));
            }
            "keep" => {
                // A clone that is used after the end.
                let reported = self.reported.clone();
                tokio::spawn(async move {
                    while reply.text("x").await.is_ok() {
                        tokio::task::yield_now().await;
                    }
                    let _ = reported.send("ended".to_owned());
                });
            }
            other => reply.text(other).await?,
        }
        Ok(())
    }

    async fn disconnected(&self, _: &Arc<Peer>) {
        let _ = self.reported.send("disconnected".to_owned());
    }
}

impl Harness {
    pub(crate) fn new() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (reported, recv) = mpsc::unbounded_channel();
        let harness = Self {
            gate: Arc::default(),
            reported,
        };
        (harness, recv)
    }
}

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) handle: ServerHandle,
    pub(crate) gate: Arc<Notify>,
    pub(crate) recv: mpsc::UnboundedReceiver<String>,
}

pub(crate) async fn start(options: ServerOptions) -> Running {
    let (harness, recv) = Harness::new();
    let gate = Arc::clone(&harness.gate);
    let server = Server::bind("127.0.0.1:0", harness, options).await.unwrap();
    let (address, handle) = (server.local_addr(), server.handle());
    tokio::spawn(server.run());
    Running {
        address,
        handle,
        gate,
        recv,
    }
}

impl Running {
    /// A client that was admitted without a token.
    pub(crate) async fn client(&self) -> Wire {
        let mut wire = Wire::open(self.address).await;
        assert_eq!(wire.text().await, r#"{"ok":true,"version":"0.1.0"}"#);
        wire
    }

    /// What has ended next.
    pub(crate) async fn ended(&mut self) -> String {
        tokio::time::timeout(crate::wire::LONG, self.recv.recv())
            .await
            .expect("something ends in time")
            .unwrap()
    }
}

pub(crate) fn chat(id: &str, content: &str) -> String {
    let params = json!({"channel": "c", "account": "a", "content": content});
    json!({"id": id, "method": "chat.send", "params": params}).to_string()
}
