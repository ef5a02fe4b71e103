//! [`Agent`]: what a server's chats do.

use async_trait::async_trait;

use super::run::Run;
use crate::error::ChatError;
use crate::frame::{ChatRequest, Reply, Status};

/// What a server is about: the work on its chats.
///
/// Of each WebSocket connection one chat runs at a time, on the connection's task; each chat over
/// HTTP runs on a task of its own. Work that blocks belongs on a task of its own.
///
/// ```
/// use acolyte_proto::error::ChatError;
/// use acolyte_proto::frame::{ChatRequest, Reply, Status};
/// use acolyte_proto::net::{Agent, Run};
/// use async_trait::async_trait;
///
/// struct Echo;
///
/// #[async_trait]
/// impl Agent for Echo {
///     async fn run(&self, run: Run, request: ChatRequest) -> Result<Reply, ChatError> {
///         for word in request.message.split_inclusive(' ') {
///             if run.text(word).await.is_err() {
///                 break; // aborted, or the client has left
///             }
///         }
///         Ok(Reply::new(request.message, "echo").with_output_streamed(true))
///     }
///
///     async fn status(&self) -> Status {
///         Status::new("echo", "")
///     }
/// }
/// ```
#[async_trait]
pub trait Agent: Send + Sync + 'static {
    /// Works on a chat. Steps go out through `run`, what is returned is the end. A panic ends the
    /// chat with an error and nothing else.
    ///
    /// A failure of the model may be told either way: the known server sends a reply with
    /// [`error`](Reply::error), and keeps [`ChatError`] for its own failures.
    ///
    /// # Errors
    /// How the chat has failed. What is missing of id, code and detail is added.
    ///
    /// # Cancel safety
    /// When the chat is aborted, `run` [says so](Run::cancelled), and the future is dropped if it
    /// has not ended within the [grace](crate::server::ServerConfig::with_abort_grace). When the client
    /// has left it is dropped at once. So processes and tasks that it has started belong behind
    /// something that ends them when it is dropped.
    async fn run(&self, run: Run, request: ChatRequest) -> Result<Reply, ChatError>;

    /// What the server is. The numbers of tasks, and the address if it is empty, are filled in.
    ///
    /// # Cancel safety
    /// The future is dropped if the client leaves first.
    async fn status(&self) -> Status;
}
