//! [`GatewayBackend`]: the [`Engine`] behind a server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use exoclaw_proto::Json;
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::{
    BudgetStatus, ChatHistory, ChatSend, Cleared, Fact, MemorySearch, Method, Plugin, Session,
    SessionRef, Status, StreamEvent, Turn,
};
use exoclaw_proto::net::{AppError, Backend, ChatReply, Gone, Peer};
use serde_json::Value;

use super::engine::{Engine, Forgotten, MEMORY_FORGET, Reply};

/// A server's backend that answers through an engine.
#[derive(Clone, Debug)]
pub struct GatewayBackend {
    engine: Arc<Engine>,
    has_extensions: bool,
    cut: Arc<AtomicUsize>,
}

/// A reply in progress.
struct Running {
    peer: Arc<Peer>,
    cut: Arc<AtomicUsize>,
    is_done: bool,
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.is_done && self.peer.cancellation().is_cancelled() {
            self.cut.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl GatewayBackend {
    /// Creates a backend for this engine, with or without the future methods.
    pub fn new(engine: Arc<Engine>, has_extensions: bool) -> Self {
        Self {
            engine,
            has_extensions,
            cut: Arc::default(),
        }
    }

    /// Returns the number of replies that the end of the server cut off, which is updated.
    pub fn cut(&self) -> Arc<AtomicUsize> {
        Arc::clone(&self.cut)
    }
}

#[async_trait]
impl Reply for ChatReply {
    async fn event(&mut self, event: StreamEvent) -> Result<(), Gone> {
        match event {
            // A long one is sent in several messages.
            StreamEvent::Text(text) => Self::text(self, &text).await,
            event => Self::event(self, &event).await,
        }
    }

    async fn done(&mut self) -> Result<(), Gone> {
        Self::event(self, &StreamEvent::Done).await
    }
}

impl Backend for GatewayBackend {
    async fn status(&self, _: &Arc<Peer>) -> Status {
        self.engine.status().await
    }

    async fn plugins(&self, _: &Arc<Peer>) -> Vec<Plugin> {
        self.engine.plugins()
    }

    async fn chat(
        &self,
        peer: &Arc<Peer>,
        chat: ChatSend,
        mut reply: ChatReply,
    ) -> Result<(), AppError> {
        let mut running = Running {
            peer: Arc::clone(peer),
            cut: Arc::clone(&self.cut),
            is_done: false,
        };
        let outcome = self.engine.chat(&chat, &mut reply).await;
        running.is_done = !matches!(outcome, Err(AppError::Gone(_)));
        outcome
    }

    fn extensions(&self) -> &[Method] {
        if self.has_extensions {
            &Method::EXTENSIONS
        } else {
            &[]
        }
    }

    async fn chat_history(&self, _: &Arc<Peer>, it: ChatHistory) -> Result<Vec<Turn>, RpcError> {
        self.engine.history(&it.session, it.limit).await
    }

    async fn session_list(&self, _: &Arc<Peer>) -> Result<Vec<Session>, RpcError> {
        self.engine.sessions().await
    }

    async fn session_clear(&self, _: &Arc<Peer>, it: SessionRef) -> Result<Cleared, RpcError> {
        self.engine.clear(&it).await
    }

    async fn budget_status(
        &self,
        _: &Arc<Peer>,
        session: Option<SessionRef>,
    ) -> Result<BudgetStatus, RpcError> {
        self.engine.budgets(session.as_ref()).await
    }

    async fn memory_search(&self, _: &Arc<Peer>, it: MemorySearch) -> Result<Vec<Fact>, RpcError> {
        self.engine.search(&it).await
    }

    async fn call(&self, _: &Arc<Peer>, method: &str, params: Json) -> Result<Json, RpcError> {
        if method != MEMORY_FORGET || !self.has_extensions {
            return Err(RpcError::unknown_method(method));
        }
        let asked: Forgotten = params.parse()?;
        let is_forgotten = self.engine.forget(&asked).await?;
        Ok(Value::from(is_forgotten).into())
    }
}
