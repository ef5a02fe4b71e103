//! [`Client`]: chats and questions over a connection that reconnects.

use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rpc_core::net::Link;
use rpc_core::{CallError, Instant};

use super::chat::Chat;
use super::protocol::{ClientProtocol, Value, unexpected};
use crate::client::{CallId, CallValue, ClientConn};
use crate::error::RpcError;
use crate::frame::{ChatRequest, Status};
use crate::id::TaskId;
use crate::task::Task;

/// A handle for chats and questions. Cheap to clone; dropping the last clone closes the connection,
/// which ends its chats.
///
/// While there is no connection, everything fails at once with [`Refused::NotConnected`](rpc_core::Refused::NotConnected);
/// [`ready`](Link::ready) waits. Nothing is repeated automatically, and no chat outlives its
/// connection: it ends with [`Outcome::Closed`](crate::client::Outcome::Closed), and
/// [`task_status`](Self::task_status) reports its outcome over the next connection.
#[derive(Clone, Debug)]
pub struct Client {
    link: Link<ClientProtocol>,
}

impl Client {
    pub(super) const fn new(link: Link<ClientProtocol>) -> Self {
        Self { link }
    }

    /// Starts a chat. The server runs one chat of a connection at a time and queues up to 25 more.
    ///
    /// ```
    /// use acolyte_proto::frame::ChatRequest;
    /// use acolyte_proto::client::ChatUpdate;
    /// use acolyte_proto::event::Event;
    ///
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/net/echo.inc"));
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let url = server(acolyte_proto::auth::Auth::open()).await?;
    /// # let config = acolyte_proto::client::ClientConfig::default();
    /// # let (client, _, connection) = acolyte_proto::net::connect(&url, config).await?;
    /// # tokio::spawn(connection.run());
    /// let mut chat = client.chat(ChatRequest::new("hi", "gpt-5-mini")).await;
    /// while let Some(update) = chat.next().await {
    ///     match update {
    ///         ChatUpdate::Event(Event::TextDelta(text)) => print!("{text}"),
    ///         ChatUpdate::Ended(outcome) => println!(" ({outcome})"),
    ///         _ => {}
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A chat that cannot be sent reports so in its only update,
    /// [`Outcome::NotSent`](crate::client::Outcome::NotSent).
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing is sent. Dropping the [`Chat`] aborts
    /// it.
    pub async fn chat(&self, request: ChatRequest) -> Chat {
        self.start(request, |_, _, _| {}).await
    }

    /// Like [`chat`](Self::chat), with its own limit on how long the chat waits for each
    /// next message; `None` is for ever, for a person who can abort.
    ///
    /// # Cancel safety
    /// As for [`chat`](Self::chat).
    pub async fn chat_within(&self, idle: Option<Duration>, request: ChatRequest) -> Chat {
        let set = move |conn: &mut ClientConn, id, now| {
            conn.set_idle_timeout(id, idle, now);
        };
        self.start(request, set).await
    }

    async fn start(
        &self,
        request: ChatRequest,
        started: impl FnOnce(&mut ClientConn, CallId, Instant) + Send + 'static,
    ) -> Chat {
        let sent = Arc::new(OnceLock::new());
        let id = Arc::clone(&sent);
        let start = move |conn: &mut ClientConn, now| {
            let id = conn.chat(&request, now)?;
            started(conn, id, now);
            // It is set here only.
            let _ = sent.set(id);
            Ok(id)
        };
        let stream = self.link.stream("chat.start", start).await;
        Chat::over_link(stream, id, self.link.downgrade())
    }

    /// Requests the server's status. Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`]: no connection, no answer in time, or the server's own error. Repeating is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn status(&self) -> Result<Box<Status>, CallError<RpcError>> {
        match self
            .link
            .call_with("status.get", ClientConn::status)
            .await?
        {
            Value::Call(CallValue::Status(status)) => Ok(status),
            _ => Err(unexpected()),
        }
    }

    /// Requests the state of a task, of any connection; `None` if the server does not know it, or
    /// has forgotten it. Safe to repeat.
    ///
    /// # Errors
    /// Every [`CallError`]: no connection, no answer in time, or the server's own error. Repeating is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn task_status(&self, task_id: &TaskId) -> Result<Option<Task>, CallError<RpcError>> {
        let task_id = task_id.clone();
        let ask = move |conn: &mut ClientConn, now| conn.task_status(&task_id, now);
        match self.link.call_with("task.status", ask).await? {
            Value::Call(CallValue::Task(task)) => Ok(task),
            _ => Err(unexpected()),
        }
    }
}

/// Methods of every client: [`ready`](Link::ready), [`state`](Link::state), [`close`](Link::close),
/// [`drain`](Link::drain) and what else a [`Link`] offers.
impl Deref for Client {
    type Target = Link<ClientProtocol>;

    fn deref(&self) -> &Link<ClientProtocol> {
        &self.link
    }
}
