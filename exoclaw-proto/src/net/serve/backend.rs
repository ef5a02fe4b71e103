//! [`Backend`]: what a gateway does; [`ChatError`]: how a chat fails.

use std::sync::Arc;

use async_trait::async_trait;
use rpc_core::Json;
use serde::Serialize;

use super::peer::Peer;
use super::reply::{ChatReply, Gone};
use crate::error::RpcError;
use crate::frame::{Call, ChatSend, Plugin, Status};

/// What a gateway is about: what its chats say.
///
/// Requests of one connection are started in the order in which they came, and run side by side on
/// the connection's task, at most [`max_requests`](crate::server::ServerConfig::with_max_requests) at
/// once (one at a time if they are [in order](crate::server::ServerConfig::with_in_order)). Work that
/// blocks belongs on a task of its own. A panic ends its request with `internal error` and nothing
/// else. When the client leaves, the futures of its requests are dropped at once.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use exoclaw_proto::frame::{ChatSend, Plugin, Status};
/// use exoclaw_proto::net::{Backend, ChatError, ChatReply, Peer};
///
/// struct Shout;
///
/// #[async_trait]
/// impl Backend for Shout {
///     async fn status(&self, _: &Arc<Peer>) -> Status {
///         Status::new("1.0.0", 0, 0)
///     }
///
///     async fn plugins(&self, _: &Arc<Peer>) -> Vec<Plugin> {
///         Vec::new()
///     }
///
///     async fn chat(&self, _: &Arc<Peer>, chat: ChatSend, reply: ChatReply) -> Result<(), ChatError> {
///         reply.text(&chat.content.to_uppercase()).await?;
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// What `status` answers.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    async fn status(&self, peer: &Arc<Peer>) -> Status;

    /// What `plugin.list` answers.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    async fn plugins(&self, peer: &Arc<Peer>) -> Vec<Plugin>;

    /// Answers a chat through `reply`. On `Ok` the event `done` is sent for you.
    ///
    /// # Errors
    /// How the chat has failed; `done` is sent for you then as well.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first: whatever must not be lost then belongs
    /// on a task of its own, or behind a drop guard.
    async fn chat(
        &self,
        peer: &Arc<Peer>,
        chat: ChatSend,
        reply: ChatReply,
    ) -> Result<(), ChatError>;

    /// Carries out an [extension](crate::frame::Method::is_extension). Called only if they are
    /// switched on. [`answer`] makes the value.
    ///
    /// # Errors
    /// What the client is told; by default that there is no such method.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    async fn extension(&self, _peer: &Arc<Peer>, call: Call) -> Result<Json, RpcError> {
        Err(RpcError::unknown_method(call.tag()))
    }

    /// The connection has ended. Called once for each, whether its token was right or not.
    ///
    /// # Cancel safety
    /// The future is run to its end, unless the server's drain runs out of time.
    async fn disconnected(&self, _peer: &Arc<Peer>) {}
}

/// How a chat fails.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// It was not begun: the client gets an error response. As [`Failed`](Self::Failed) if
    /// something was streamed already.
    #[error("the chat was refused: {0}")]
    Refused(RpcError),
    /// It has failed on the way: the client gets the event `error`, and `done`.
    #[error("the chat failed: {0}")]
    Failed(RpcError),
    /// The client has left.
    #[error(transparent)]
    Gone(#[from] Gone),
}

/// A value as an answer.
///
/// # Errors
/// If it cannot be written as JSON.
pub fn answer(value: &impl Serialize) -> Result<Json, RpcError> {
    Json::of(value).map_err(|error| RpcError::new(error.to_string()))
}
