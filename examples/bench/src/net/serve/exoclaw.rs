//! Our Exoclaw server; a chat answers as many frames as its content says.

use std::sync::Arc;

use async_trait::async_trait;
use exoclaw_proto::frame::{ChatSend, Plugin, Status};
use exoclaw_proto::net::{
    Backend, ChatError, ChatReply, Context, Server, ServerOptions, http_config,
};
use exoclaw_proto::server::ServerConfig;
use rpc_core::Limits;
use rpc_core::decode::SharedStr;
use rpc_core::net::server::ServerLimits;

use super::CHUNK;
use crate::text;

struct Chunks(String);

#[async_trait]
impl Backend for Chunks {
    async fn status(&self, _: &Arc<Context>) -> Status {
        Status::new("0.1.0", 0, 0)
    }

    async fn plugins(&self, _: &Arc<Context>) -> Vec<Plugin> {
        Vec::new()
    }

    async fn chat(
        &self,
        _: &Arc<Context>,
        chat: ChatSend<SharedStr>,
        reply: ChatReply,
    ) -> Result<(), ChatError> {
        for _ in 0..chat.content.parse().unwrap_or(0) {
            reply.text(&self.0).await?;
        }
        Ok(())
    }
}

pub(super) async fn serve() {
    let connection = ServerConfig::default()
        .with_max_requests(4_096)
        .with_limits(Limits::default().with_max_message_rate(None));
    let limits = ServerLimits::default().with_max_connections(20_000);
    let options = ServerOptions::default()
        .with_connection(connection)
        .with_http(http_config().with_limits(limits));
    let server = Server::bind("127.0.0.1:0", Chunks(text::words(CHUNK)), options)
        .await
        .unwrap();
    println!("{}", server.local_addr());
    server.run().await;
}
