//! [`GatewayBackend`]: the [`Engine`] behind a server.

use std::sync::Arc;

use async_trait::async_trait;
use exoclaw_proto::RpcError;
use exoclaw_proto::frame::{ChatSend, OwnedCall, OwnedEvent, Plugin, Status};
use exoclaw_proto::net::{Backend, ChatError, ChatReply, Gone, Peer};
use rpc_core::decode::SharedStr;
use serde_json::value::RawValue;

use super::engine::{Engine, Reply};

/// An engine's answers to the clients of a server.
#[derive(Clone, Debug)]
pub struct GatewayBackend {
    engine: Arc<Engine>,
}

impl GatewayBackend {
    /// This engine.
    #[must_use]
    pub const fn new(engine: Arc<Engine>) -> Self {
        Self { engine }
    }
}

#[async_trait]
impl Reply for ChatReply {
    async fn text(&mut self, text: &str) -> Result<(), Gone> {
        Self::text(self, text).await
    }

    async fn event(&mut self, event: OwnedEvent) -> Result<(), Gone> {
        Self::event(self, &event).await
    }
}

#[async_trait]
impl Backend for GatewayBackend {
    async fn status(&self, _: &Arc<Peer>) -> Status {
        self.engine.status().await
    }

    async fn plugins(&self, _: &Arc<Peer>) -> Vec<Plugin> {
        self.engine.plugins()
    }

    async fn chat(
        &self,
        _: &Arc<Peer>,
        chat: ChatSend<SharedStr>,
        mut reply: ChatReply,
    ) -> Result<(), ChatError> {
        self.engine.chat(&chat, &mut reply).await
    }

    async fn extension(&self, _: &Arc<Peer>, call: OwnedCall) -> Result<Box<RawValue>, RpcError> {
        self.engine.extension(&call).await
    }
}
