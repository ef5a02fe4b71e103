//! [`Backend`]: the application behind a gateway; [`AppError`]: the error of a chat.

use std::future::{Future, Ready, ready};
use std::sync::Arc;

use rpc_core::{Json, Str};

use super::peer::Peer;
use super::reply::{ChatReply, Gone};
use crate::error::RpcError;
use crate::frame::{
    BudgetStatus, ChatHistory, ChatSend, Cleared, Fact, MemorySearch, Method, Plugin, Session,
    SessionRef, Status, Turn,
};

/// The application behind a gateway: it answers chats.
///
/// Requests of one connection start in the order of their arrival, and run concurrently on the
/// connection's task, at most [`max_requests`](crate::server::ServerConfig::max_requests) at
/// once (one at a time if they are [in order](crate::server::ServerConfig::in_order)). Spawn a
/// task for work that blocks. A panic ends only its request, with `internal error`. When the client
/// leaves, the futures of its requests are dropped at once.
///
/// Every method is an `async fn` in an implementation, whose future must be `Send`.
///
/// ```
/// use std::sync::Arc;
/// use exoclaw_proto::frame::{ChatSend, Plugin, Status};
/// use exoclaw_proto::net::{Backend, AppError, ChatReply, Peer};
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
///     async fn chat(&self, _: &Arc<Peer>, chat: ChatSend, reply: ChatReply) -> Result<(), AppError> {
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
    /// [`AppError::Failed`].
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
    ) -> impl Future<Output = Result<(), AppError>> + Send;

    /// Returns the [extensions](Method::EXTENSIONS) that this backend has. The hello frame lists
    /// them, and the client gets `unknown method` for all others. Default none.
    fn extensions(&self) -> &[Method] {
        &[]
    }

    /// Returns the last turns of a session, oldest first: the extension `chat.history`.
    ///
    /// # Errors
    /// The answer to the client; by default that the method is unknown.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    fn chat_history(
        &self,
        _peer: &Arc<Peer>,
        _request: ChatHistory,
    ) -> impl Future<Output = Result<Vec<Turn>, RpcError>> + Send {
        unknown(Method::ChatHistory)
    }

    /// Returns the sessions: the extension `session.list`.
    ///
    /// # Errors
    /// The answer to the client; by default that the method is unknown.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    fn session_list(
        &self,
        _peer: &Arc<Peer>,
    ) -> impl Future<Output = Result<Vec<Session>, RpcError>> + Send {
        unknown(Method::SessionList)
    }

    /// Forgets the turns and the facts of a session: the extension `session.clear`.
    ///
    /// # Errors
    /// The answer to the client; by default that the method is unknown.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    fn session_clear(
        &self,
        _peer: &Arc<Peer>,
        _session: SessionRef,
    ) -> impl Future<Output = Result<Cleared, RpcError>> + Send {
        unknown(Method::SessionClear)
    }

    /// Returns the use of the token budgets, and of a session's if one is named: the extension
    /// `budget.status`.
    ///
    /// # Errors
    /// The answer to the client; by default that the method is unknown.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    fn budget_status(
        &self,
        _peer: &Arc<Peer>,
        _session: Option<SessionRef>,
    ) -> impl Future<Output = Result<BudgetStatus, RpcError>> + Send {
        unknown(Method::BudgetStatus)
    }

    /// Searches what is remembered of a session, facts and messages: the extension `memory.search`.
    ///
    /// # Errors
    /// The answer to the client; by default that the method is unknown.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    fn memory_search(
        &self,
        _peer: &Arc<Peer>,
        _request: MemorySearch,
    ) -> impl Future<Output = Result<Vec<Fact>, RpcError>> + Send {
        unknown(Method::MemorySearch)
    }

    /// Carries out a method of your own: one that is not a [`Method`]. `params` is null if the
    /// request has none.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use exoclaw_proto::frame::{ChatSend, Plugin, Status};
    /// # use exoclaw_proto::net::{Backend, AppError, ChatReply, Peer};
    /// use exoclaw_proto::Json;
    /// use exoclaw_proto::error::RpcError;
    ///
    /// # struct Words;
    /// impl Backend for Words {
    ///     async fn call(&self, _: &Arc<Peer>, method: &str, params: Json) -> Result<Json, RpcError> {
    ///         match method {
    ///             "words.count" => {
    ///                 let text: String = params.parse()?;
    ///                 Ok(serde_json::Value::from(text.split_whitespace().count()).into())
    ///             }
    ///             other => Err(RpcError::unknown_method(other)),
    ///         }
    ///     }
    ///     // and the methods of every backend
    /// #     async fn status(&self, _: &Arc<Peer>) -> Status {
    /// #         Status::new("1.0.0", 0, 0)
    /// #     }
    /// #     async fn plugins(&self, _: &Arc<Peer>) -> Vec<Plugin> {
    /// #         Vec::new()
    /// #     }
    /// #     async fn chat(&self, _: &Arc<Peer>, _: ChatSend, _: ChatReply) -> Result<(), AppError> {
    /// #         Ok(())
    /// #     }
    /// }
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use exoclaw_proto::net::{self, Server, ServerOptions};
    /// # let server = Server::bind("127.0.0.1:0", Words, ServerOptions::default()).await?;
    /// # let url = server.url();
    /// # tokio::spawn(server.run());
    /// # let (client, _, connection) = net::connect(&url, Default::default()).await?;
    /// # tokio::spawn(connection.run());
    /// # assert_eq!(client.call("words.count", &"one two").await?.get(), "2");
    /// # assert!(client.call("words.count", &2).await.is_err());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The answer to the client; by default that the method is unknown.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    fn call(
        &self,
        _peer: &Arc<Peer>,
        method: &str,
        _params: Json,
    ) -> impl Future<Output = Result<Json, RpcError>> + Send {
        ready(Err(RpcError::unknown_method(method)))
    }

    /// Handles the end of a connection. Called once for each, whether its token was right or not.
    ///
    /// # Cancel safety
    /// The future runs to completion, unless the server's drain reaches its deadline.
    fn disconnected(&self, _peer: &Arc<Peer>) -> impl Future<Output = ()> + Send {
        ready(())
    }
}

rpc_core::dynamic! {
    /// Any [`Backend`]: for a program that chooses one when it starts.
    pub struct DynBackend(any_backend): Backend {
        async fn status(&self, peer: &Arc<Peer>) -> Status;
        async fn plugins(&self, peer: &Arc<Peer>) -> Vec<Plugin>;
        async fn chat(&self, peer: &Arc<Peer>, chat: ChatSend, reply: ChatReply) -> Result<(), AppError>;
        async fn chat_history(&self, peer: &Arc<Peer>, request: ChatHistory) -> Result<Vec<Turn>, RpcError>;
        async fn session_list(&self, peer: &Arc<Peer>) -> Result<Vec<Session>, RpcError>;
        async fn session_clear(&self, peer: &Arc<Peer>, session: SessionRef) -> Result<Cleared, RpcError>;
        async fn budget_status(&self, peer: &Arc<Peer>, session: Option<SessionRef>) -> Result<BudgetStatus, RpcError>;
        async fn memory_search(&self, peer: &Arc<Peer>, request: MemorySearch) -> Result<Vec<Fact>, RpcError>;
        async fn call(&self, peer: &Arc<Peer>, method: &str, params: Json) -> Result<Json, RpcError>;
        async fn disconnected(&self, peer: &Arc<Peer>);
        fn extensions(&self) -> &[Method];
    }
}

/// A [`Backend`] that is a closure.
struct BackendFn<F>(F);

/// Creates a backend without plugins from a closure that answers chats and returns a future.
///
/// ```
/// use exoclaw_proto::net::{DynBackend, backend_fn};
///
/// let shout = backend_fn(|chat, reply| async move {
///     reply.text(&chat.content.to_uppercase()).await?;
///     Ok(())
/// });
/// # drop(DynBackend::new(shout));
/// ```
pub fn backend_fn<F, W>(work: F) -> impl Backend
where
    F: Fn(ChatSend, ChatReply) -> W + Send + Sync + 'static,
    W: Future<Output = Result<(), AppError>> + Send + 'static,
{
    BackendFn(work)
}

impl<F, W> Backend for BackendFn<F>
where
    F: Fn(ChatSend, ChatReply) -> W + Send + Sync + 'static,
    W: Future<Output = Result<(), AppError>> + Send + 'static,
{
    async fn status(&self, _: &Arc<Peer>) -> Status {
        Status::new(env!("CARGO_PKG_VERSION"), 0, 0)
    }

    async fn plugins(&self, _: &Arc<Peer>) -> Vec<Plugin> {
        Vec::new()
    }

    async fn chat(&self, _: &Arc<Peer>, chat: ChatSend, reply: ChatReply) -> Result<(), AppError> {
        (self.0)(chat, reply).await
    }
}

/// The error of a chat.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AppError {
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

impl AppError {
    /// Creates a failure with this message for the client.
    pub fn failed(message: impl Into<Str>) -> Self {
        Self::Failed(RpcError::new(message))
    }
}

impl<E> From<E> for AppError
where
    RpcError: From<E>,
{
    /// Refuses the chat.
    fn from(error: E) -> Self {
        Self::Refused(error.into())
    }
}

fn unknown<T>(method: Method) -> Ready<Result<T, RpcError>> {
    ready(Err(RpcError::unknown_method(method.name())))
}
