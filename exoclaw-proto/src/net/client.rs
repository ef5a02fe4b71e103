//! [`Client`]: typed requests and chats over a connection that reconnects.

use std::future::Future;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::TryFutureExt as _;
use rpc_core::Instant;
use rpc_core::net::Link;
use rpc_core::net::telemetry::OTHER;
use rpc_core::{CallError, CallId, DecodeError, Json, Refused, Str, json};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::chat::Chat;
use super::protocol::{CallValue, ClientProtocol};
use crate::client::{ClientConfig, ClientConn};
use crate::error::RpcError;
use crate::frame::{
    BudgetOf, BudgetStatus, Call, ChatHistory, ChatSend, Cleared, Fact, MemorySearch, Method,
    Plugin, Session, SessionRef, Status, Turn,
};

/// The result of a request.
type Outcome<T> = Result<T, CallError<RpcError>>;

/// A handle for requests and chats. Cheap to clone; dropping the last clone closes the connection.
///
/// While there is no connection, requests fail at once with [`Refused::NotConnected`] (or
/// [`Refused::NotReady`] before the hello); [`ready`](Link::ready) waits. A client never repeats a
/// request: [`CallError::delivery`] says whether a failed one may have reached the gateway.
///
/// Any number of requests and chats may be in flight. Known gateways answer those of a connection
/// one after the other, so timeouts run from the gateway's last [progress](ClientConn#timeouts),
/// not from the start.
///
/// ```
/// # use exoclaw_proto::net::{self, MemoryBackend, Server, ServerOptions};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let backend = MemoryBackend::new().with_plugin("echo");
/// # let server = Server::bind("127.0.0.1:0", backend, ServerOptions::default()).await?;
/// # let url = server.url();
/// # tokio::spawn(server.run());
/// # let config = exoclaw_proto::client::ClientConfig::default();
/// # let (client, _events, connection) = net::connect(&url, config).await?;
/// # tokio::spawn(connection.run());
/// assert_eq!(client.plugin_list().await?[0].name, "echo");
/// assert_eq!(client.chat("hello there").await.finish().await?, "hello there");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Client {
    link: Link<ClientProtocol>,
    config: Arc<ClientConfig>,
}

impl Client {
    pub(super) const fn new(link: Link<ClientProtocol>, config: Arc<ClientConfig>) -> Self {
        Self { link, config }
    }

    /// Sends a chat message, with the configuration's channel, account and peer.
    ///
    /// ```
    /// use exoclaw_proto::frame::StreamEvent;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use exoclaw_proto::net::{MemoryBackend, Server, ServerOptions};
    /// # let server = Server::bind("127.0.0.1:0", MemoryBackend::new(), ServerOptions::default()).await?;
    /// # let url = server.url();
    /// # tokio::spawn(server.run());
    /// # let config = exoclaw_proto::client::ClientConfig::default();
    /// # let (client, _, connection) = exoclaw_proto::net::connect(&url, config).await?;
    /// # tokio::spawn(connection.run());
    /// let mut chat = client.chat("hi").await;
    /// while let Some(event) = chat.next().await {
    ///     if let StreamEvent::Text(text) = event? {
    ///         print!("{text}");
    ///     }
    /// }
    /// println!(" ({} tokens)", chat.summary().map_or(0, |summary| summary.usage.total()));
    ///
    /// let answer = client.chat("and in one piece?").await.finish().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The first item of a chat that cannot be sent is the error.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing is sent. Dropping the [`Chat`] forgets
    /// it.
    pub async fn chat(&self, content: impl Into<Str>) -> Chat {
        let chat = self.config.chat(content);
        self.chat_send(chat).await
    }

    /// Sends a chat message with any channel, account and peer.
    ///
    /// # Cancel safety
    /// As for [`chat`](Self::chat).
    pub async fn chat_send(&self, chat: ChatSend) -> Chat {
        self.chat_within(self.config.chat_total_timeout, chat).await
    }

    /// Sends a chat message like [`chat_send`](Self::chat_send), with a total timeout for the chat;
    /// `None` means no limit. Known gateways answer one request of a connection at a time, and the
    /// timeout includes that wait.
    ///
    /// # Cancel safety
    /// As for [`chat`](Self::chat).
    pub async fn chat_within(&self, timeout: Option<Duration>, chat: ChatSend) -> Chat {
        let sent = Arc::new(OnceLock::new());
        let id = Arc::clone(&sent);
        let start = move |conn: &mut ClientConn, now| {
            let id = conn.chat_send(&chat, now)?;
            conn.set_total_timeout(id, timeout, now);
            // It is set here only.
            let _ = sent.set(id);
            Ok(id)
        };
        let name = Method::ChatSend.name();
        let stream = self.link.stream(name, start).await;
        Chat::new(stream, id, self.config.limits.max_event_bytes)
    }

    /// Returns the session of [`chat`](Self::chat), for the methods that take one.
    #[must_use]
    pub fn session(&self) -> SessionRef {
        self.config.session()
    }

    /// Checks that the gateway responds. Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`]: no connection, no answer in time, or the gateway's own error. Repeating is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn ping(&self) -> Outcome<()> {
        self.start("ping", ClientConn::ping).await.map(drop)
    }

    /// Fetches version, plugins and sessions. Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`]; an answer that is not a status is a [`CallError::Remote`].
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn status(&self) -> Outcome<Status> {
        self.value(Call::Status).await
    }

    /// Fetches the loaded plugins. Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`]; an answer that is not a list of plugins is a [`CallError::Remote`].
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn plugin_list(&self) -> Outcome<Vec<Plugin>> {
        self.value(Call::PluginList).await
    }

    /// Fetches the last turns of a session, at most `limit`; a future method, so expect
    /// [`UnknownMethod`](crate::error::ErrorKind::UnknownMethod). Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`]; an answer that is not a list of turns is a [`CallError::Remote`].
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn chat_history(
        &self,
        session: SessionRef,
        limit: Option<u64>,
    ) -> Outcome<Vec<Turn>> {
        let history = ChatHistory { session, limit };
        self.value(Call::ChatHistory(history)).await
    }

    /// Fetches the sessions; a future method, so expect
    /// [`UnknownMethod`](crate::error::ErrorKind::UnknownMethod). Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`]; an answer that is not a list of sessions is a [`CallError::Remote`].
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn session_list(&self) -> Outcome<Vec<Session>> {
        self.value(Call::SessionList).await
    }

    /// Forgets the turns of a session; a future method, so expect
    /// [`UnknownMethod`](crate::error::ErrorKind::UnknownMethod). Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`]; an unexpected answer is a [`CallError::Remote`].
    ///
    /// # Cancel safety
    /// Dropping the future stops waiting; the session may have been cleared.
    pub async fn session_clear(&self, session: SessionRef) -> Outcome<Cleared> {
        self.value(Call::SessionClear(session)).await
    }

    /// Fetches the use of the token budgets of the whole gateway, and optionally of one session; a
    /// future method, so expect [`UnknownMethod`](crate::error::ErrorKind::UnknownMethod). Safe to
    /// repeat.
    ///
    /// # Errors
    /// Every [`CallError`]; an unexpected answer is a [`CallError::Remote`].
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn budget_status(&self, session: Option<SessionRef>) -> Outcome<BudgetStatus> {
        self.value(Call::BudgetStatus(BudgetOf { session })).await
    }

    /// Searches the facts remembered about a session's user; a future method, so expect
    /// [`UnknownMethod`](crate::error::ErrorKind::UnknownMethod). Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`]; an answer that is not a list of facts is a [`CallError::Remote`].
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn memory_search(
        &self,
        session: SessionRef,
        query: &str,
        limit: Option<u64>,
    ) -> Outcome<Vec<Fact>> {
        let search = MemorySearch {
            session,
            query: query.into(),
            limit,
        };
        self.value(Call::MemorySearch(search)).await
    }

    /// Calls any method without a streamed answer. `params` is any JSON value, usually an object.
    ///
    /// # Errors
    /// Every [`CallError`]: no connection, no answer in time, or the gateway's own error. Before you repeat,
    /// ask its [`delivery`](CallError::delivery) whether the gateway may have run it.
    ///
    /// # Cancel safety
    /// Dropping the future stops waiting; the call may have run.
    pub async fn call(&self, method: &str, params: &impl Serialize) -> Outcome<Json> {
        let label = label(method);
        let (method, params) = (method.to_owned(), Json::of(params)?);
        self.start(label, move |conn, now| conn.call(&method, &params, now))
            .await
    }

    /// Calls any method with a total timeout, whatever the gateway's progress; `None` waits for
    /// ever.
    ///
    /// # Errors
    /// Every [`CallError`]: no connection, no answer in time, or the gateway's own error. Before you repeat,
    /// ask its [`delivery`](CallError::delivery) whether the gateway may have run it.
    ///
    /// # Cancel safety
    /// Dropping the future stops waiting; the call may have run.
    pub async fn call_within(
        &self,
        timeout: Option<Duration>,
        method: &str,
        params: &impl Serialize,
    ) -> Outcome<Json> {
        let label = label(method);
        let (method, params) = (method.to_owned(), Json::of(params)?);
        self.start(label, move |conn, now| {
            let id = conn.call(&method, &params, now)?;
            conn.set_timeout(id, None, now);
            conn.set_total_timeout(id, timeout, now);
            Ok(id)
        })
        .await
    }

    fn value<T>(&self, call: Call) -> impl Future<Output = Outcome<T>> + Send + use<'_, T>
    where
        T: DeserializeOwned,
    {
        let answer = self.start(label(call.tag()), move |conn, now| conn.request(&call, now));
        async {
            let read = json::parse(answer.await?.get(), &self.config.limits);
            read.map_err(|error| unexpected(&error))
        }
    }

    // Not an `async fn`: its future would carry the call along.
    fn start<F>(
        &self,
        method: &'static str,
        start: F,
    ) -> impl Future<Output = Outcome<Json>> + Send + use<'_, F>
    where
        F: FnOnce(&mut ClientConn, Instant) -> Result<CallId, Refused> + Send + 'static,
    {
        let ended = self.link.call_with(method, start);
        ended.map_ok(|value| match value {
            CallValue::Answer(answer) => answer,
            // Only chats end so, and they are started elsewhere.
            CallValue::Chat(_) => Json::NULL,
        })
    }
}

/// Returns a method's name for spans and metrics.
fn label(method: &str) -> &'static str {
    Method::parse(method).map_or(OTHER, Method::name)
}

/// Creates the error for an answer that does not fit the method.
fn unexpected(error: &DecodeError) -> CallError<RpcError> {
    CallError::Remote(RpcError::new(format!("an unexpected answer: {error}")))
}

/// Methods of every client: [`ready`](Link::ready), [`state`](Link::state), [`close`](Link::close),
/// [`drain`](Link::drain) and what else a [`Link`] offers.
impl Deref for Client {
    type Target = Link<ClientProtocol>;

    fn deref(&self) -> &Link<ClientProtocol> {
        &self.link
    }
}
