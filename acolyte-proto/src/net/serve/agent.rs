//! [`Agent`]: the work of a server's chats.

use std::future::Future;

use super::run::ChatReply;
use crate::error::AppError;
use crate::frame::{ChatRequest, Reply, Status};

/// The application of a server: it works on chats. Implement it as `async fn`.
///
/// One chat of each WebSocket connection runs at a time, on the connection's task; each chat over
/// HTTP runs on a task of its own. Move blocking work to a task of its own.
///
/// ```
/// use acolyte_proto::error::AppError;
/// use acolyte_proto::frame::{ChatRequest, Reply, Status};
/// use acolyte_proto::net::{Agent, ChatReply};
///
/// struct Echo;
///
/// impl Agent for Echo {
///     async fn run(&self, run: ChatReply, request: ChatRequest) -> Result<Reply, AppError> {
///         for word in request.message.split_inclusive(' ') {
///             if run.text(word).await.is_err() {
///                 break; // aborted, or the client has left
///             }
///         }
///         Ok(Reply { output_streamed: Some(true), ..Reply::new(request.message, "echo") })
///     }
///
///     async fn status(&self) -> Status {
///         Status::new("echo", "")
///     }
/// }
/// ```
pub trait Agent: Send + Sync + 'static {
    /// Works on a chat. Steps are sent through `run`; the return value ends the chat. A panic ends
    /// this chat with an error and nothing else.
    ///
    /// A failure of the model may be returned either way: the known server sends a reply with
    /// [`error`](Reply::error), and uses [`AppError`] for its own failures.
    ///
    /// # Errors
    /// The failure of the chat. Missing id, code and detail are added.
    ///
    /// # Cancel safety
    /// When the chat is aborted, `run` [reports it](ChatReply::cancelled), and the future is dropped if
    /// it has not ended within the [grace period](crate::server::ServerConfig::abort_grace).
    /// When the client has left, it is dropped at once. Make sure that processes and tasks it has
    /// started end when it is dropped.
    fn run(
        &self,
        run: ChatReply,
        request: ChatRequest,
    ) -> impl Future<Output = Result<Reply, AppError>> + Send;

    /// Returns the server's status. The numbers of tasks are filled in, and the address if it is
    /// empty.
    ///
    /// # Cancel safety
    /// The future is dropped if the client leaves first.
    fn status(&self) -> impl Future<Output = Status> + Send;
}

rpc_core::dynamic! {
    /// Any [`Agent`]: for a program that chooses one when it starts.
    pub struct DynAgent(any_agent): Agent {
        async fn run(&self, run: ChatReply, request: ChatRequest) -> Result<Reply, AppError>;
        async fn status(&self) -> Status;
    }
}

/// An [`Agent`] that is a status and a closure.
struct AgentFn<F>(Status, F);

/// Creates an agent with this status from a closure that returns a future.
///
/// ```
/// use acolyte_proto::frame::{Reply, Status};
/// use acolyte_proto::net::{DynAgent, agent_fn};
///
/// let echo = agent_fn(Status::new("echo", ""), |_, request| async move {
///     Ok(Reply::new(request.message, "echo"))
/// });
/// # drop(DynAgent::new(echo));
/// ```
pub fn agent_fn<F, W>(status: Status, work: F) -> impl Agent
where
    F: Fn(ChatReply, ChatRequest) -> W + Send + Sync + 'static,
    W: Future<Output = Result<Reply, AppError>> + Send + 'static,
{
    AgentFn(status, work)
}

impl<F, W> Agent for AgentFn<F>
where
    F: Fn(ChatReply, ChatRequest) -> W + Send + Sync + 'static,
    W: Future<Output = Result<Reply, AppError>> + Send + 'static,
{
    async fn run(&self, run: ChatReply, request: ChatRequest) -> Result<Reply, AppError> {
        (self.1)(run, request).await
    }

    async fn status(&self) -> Status {
        self.0.clone()
    }
}
