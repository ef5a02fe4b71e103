//! Our Exoclaw server; a chat answers as many frames as its content says.

use std::sync::Arc;

use exoclaw_proto::frame::{ChatSend, Plugin, Status};
use exoclaw_proto::net::{AppError, Backend, ChatReply, Peer, Server, ServerOptions};

use super::{CHUNK, CONNECTIONS, OnListen};
use crate::net::values::STATUS;
use crate::text;

struct Chunks(String);

impl Backend for Chunks {
    async fn status(&self, _: &Arc<Peer>) -> Status {
        let (version, plugins, sessions) = STATUS;
        Status::new(version, plugins, sessions)
    }

    async fn plugins(&self, _: &Arc<Peer>) -> Vec<Plugin> {
        Vec::new()
    }

    async fn chat(&self, _: &Arc<Peer>, chat: ChatSend, reply: ChatReply) -> Result<(), AppError> {
        for _ in 0..chat.content.parse().unwrap_or(0) {
            reply.text(&self.0).await?;
        }
        Ok(())
    }
}

pub(super) async fn serve(on_listen: OnListen) {
    let mut options = ServerOptions::default();
    options.connection.max_requests = 4_096;
    options.connection.limits.max_message_rate = None;
    options.http.limits.max_connections = CONNECTIONS;
    let server = Server::bind("127.0.0.1:0", Chunks(text::words(CHUNK)), options)
        .await
        .unwrap();
    on_listen(server.local_addr());
    server.run().await;
}
