//! [`Backend`]: the application behind a gateway; [`ChatError`]: the error of a chat.

use std::future::{Future, ready};
use std::sync::Arc;

use rpc_core::Json;
use serde::Serialize;

use super::peer::Peer;
use super::reply::{ChatReply, Gone};
use crate::error::RpcError;
use crate::frame::{Call, ChatSend, Plugin, Status};

/// The application behind a gateway: it answers chats.
///
/// Requests of one connection start in the order of their arrival, and run concurrently on the
/// connection's task, at most [`max_requests`](crate::server::ServerConfig::with_max_requests) at
/// once (one at a time if they are [in order](crate::server::ServerConfig::with_in_order)). Spawn a
/// task for work that blocks. A panic ends only its request, with `internal error`. When the client
/// leaves, the futures of its requests are dropped at once.
///
/// Every method is an `async fn` in an implementation, whose future must be `Send`.
///
/// ```
/// use std::sync::Arc;
/// use exoclaw_proto::frame::{ChatSend, Plugin, Status};
/// use exoclaw_proto::net::{Backend, ChatError, ChatReply, Peer};
///
/// struct Shout;
///
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
pub trait Backend: Send + Sync + 'static {
    /// Returns the answer to `status`.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    fn status(&self, peer: &Arc<Peer>) -> impl Future<Output = Status> + Send;

    /// Returns the answer to `plugin.list`.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    fn plugins(&self, peer: &Arc<Peer>) -> impl Future<Output = Vec<Plugin>> + Send;

    /// Answers a chat through `reply`. The event `done` is sent for you, also after
    /// [`ChatError::Failed`].
    ///
    /// # Errors
    /// The error of the chat.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first: spawn a task, or use a drop guard, for
    /// work that must not be lost then.
    fn chat(
        &self,
        peer: &Arc<Peer>,
        chat: ChatSend,
        reply: ChatReply,
    ) -> impl Future<Output = Result<(), ChatError>> + Send;

    /// Carries out an [extension](crate::frame::Method::is_extension). Called only if extensions
    /// are switched on. Create the value with [`answer`].
    ///
    /// # Errors
    /// The answer to the client; by default that the method is unknown.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    fn extension(
        &self,
        _peer: &Arc<Peer>,
        call: Call,
    ) -> impl Future<Output = Result<Json, RpcError>> + Send {
        ready(Err(RpcError::unknown_method(call.tag())))
    }

    /// Handles the end of a connection. Called once for each, whether its token was right or not.
    ///
    /// # Cancel safety
    /// The future runs to completion, unless the server's drain reaches its deadline.
    fn disconnected(&self, _peer: &Arc<Peer>) -> impl Future<Output = ()> + Send {
        ready(())
    }
}

/// The error of a chat.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The chat did not start: the client gets an error response. Like [`Failed`](Self::Failed) if
    /// something was already streamed.
    #[error("the chat was refused: {0}")]
    Refused(RpcError),
    /// The chat failed while streaming: the client gets the event `error`, and `done`.
    #[error("the chat failed: {0}")]
    Failed(RpcError),
    /// The client has left.
    #[error(transparent)]
    Gone(#[from] Gone),
}

/// Encodes a value as an answer.
///
/// # Errors
/// The value cannot be written as JSON.
pub fn answer(value: &impl Serialize) -> Result<Json, RpcError> {
    Json::of(value).map_err(|error| RpcError::new(error.to_string()))
}
