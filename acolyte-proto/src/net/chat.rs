//! [`Chat`]: a chat in progress, over any transport.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use futures_util::{Stream, StreamExt};
use rpc_core::net::{CallStream, WeakLink};
use rpc_core::{CallError, CloseReason, Delivery, Refused};

use super::protocol::{ClientProtocol, Value, unexpected};
#[cfg(feature = "sse")]
use super::sse::SseStream;
use crate::client::{CallId, CallValue, ChatUpdate, ClientConn, Outcome};
use crate::error::RpcError;
use crate::id::TaskId;

/// A chat in progress: a stream of [`ChatUpdate`]s, the same over every transport.
/// [`ChatUpdate::Ended`] is always the last one.
///
/// Unread updates wait, within the bounds of the link's configuration
/// ([`ClientConfig::link`](crate::client::ClientConfig::link)). A chat that stays full for too long blocks its whole
/// connection and then ends with [`CloseReason::SlowConsumer`], and so does one whose updates the
/// policy drops, because a chat with gaps is useless. Over HTTP only this chat waits.
///
/// Dropping it aborts the chat at the server. Servers of this crate then stop the work; known ones
/// let it run on silently.
///
/// ```
/// # use acolyte_proto::frame::ChatRequest;
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/net/echo.inc"));
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let url = server(acolyte_proto::auth::Auth::open()).await?;
/// # let config = acolyte_proto::client::ClientConfig::default();
/// # let (client, _, connection) = acolyte_proto::net::connect(&url, config).await?;
/// # tokio::spawn(connection.run());
/// let mut chat = client.chat(ChatRequest::new("hi", "echo")).await;
/// while let Some(update) = chat.next().await {
///     println!("{update:?}");
/// }
/// let outcome = chat.finish().await;
/// assert_eq!(outcome.reply().map(|reply| &*reply.output), Some("hi"));
/// # Ok(())
/// # }
/// ```
pub struct Chat {
    source: Source,
    task_id: Option<TaskId>,
    outcome: Option<Outcome>,
}

enum Source {
    Link(Linked),
    #[cfg(feature = "sse")]
    Sse(Box<SseStream>),
    Over,
}

struct Linked {
    stream: CallStream<ClientProtocol>,
    id: Arc<OnceLock<CallId>>,
    link: WeakLink<ClientProtocol>,
}

/// The bytes of updates that are kept while an abort waits for its answer, beyond those that wait
/// anyway; a chat that is about to end needs no more.
const MAX_ASIDE: usize = 16 * 1024 * 1024;

impl Chat {
    pub(super) const fn over_link(
        stream: CallStream<ClientProtocol>,
        id: Arc<OnceLock<CallId>>,
        link: WeakLink<ClientProtocol>,
    ) -> Self {
        Self::new(Source::Link(Linked { stream, id, link }))
    }

    #[cfg(feature = "sse")]
    pub(super) fn over_sse(stream: SseStream) -> Self {
        Self::new(Source::Sse(Box::new(stream)))
    }

    const fn new(source: Source) -> Self {
        Self {
            source,
            task_id: None,
            outcome: None,
        }
    }

    /// Returns the next update; `None` after [`ChatUpdate::Ended`].
    ///
    /// # Cancel safety
    /// Cancel-safe: an update is either returned or stays queued.
    pub async fn next(&mut self) -> Option<ChatUpdate> {
        StreamExt::next(self).await
    }

    /// Reads to the end and returns how the chat ended. The updates before are dropped.
    ///
    /// # Cancel safety
    /// Cancel-safe, but updates already read are lost.
    pub async fn finish(&mut self) -> Outcome {
        while self.next().await.is_some() {}
        self.outcome
            .clone()
            .unwrap_or_else(|| gone(Delivery::Unknown))
    }

    /// Aborts the chat, running or waiting, and returns whether there was something to abort.
    /// Continue with [`next`](Self::next): the chat ends as
    /// [aborted](crate::client::Outcome::Aborted), unless its end was already on the way. Up to 16
    /// MiB of updates that come meanwhile are kept for it; steps beyond that are dropped, so that
    /// they cannot delay the abort.
    ///
    /// # Errors
    /// Every [`CallError`]; [`Refused::UnknownId`] if the chat has ended. Safe to repeat.
    ///
    /// # Cancel safety
    /// Dropping the future stops waiting; the abort may be on its way.
    pub async fn abort(&mut self) -> Result<bool, CallError<RpcError>> {
        let linked = match &mut self.source {
            Source::Link(linked) => linked,
            #[cfg(feature = "sse")]
            Source::Sse(stream) => {
                stream.abort();
                return Ok(true);
            }
            Source::Over => return Err(Refused::UnknownId.into()),
        };
        let Some(link) = linked.link.upgrade() else {
            return Err(Refused::Closed.into());
        };
        let id = Arc::clone(&linked.id);
        let abort = move |conn: &mut ClientConn, now| {
            let id = id.get().copied().ok_or(Refused::UnknownId)?;
            conn.abort(id, now)
        };
        linked.stream.relax(Some(MAX_ASIDE));
        let answer = link.call_with("chat.abort", abort).await;
        linked.stream.relax(None);
        match answer? {
            Value::Call(CallValue::Aborted(aborted)) => Ok(aborted),
            _ => Err(unexpected()),
        }
    }

    /// Returns how the chat ended; `None` until its end was read.
    #[must_use]
    pub const fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// Returns the task's id, once [`ChatUpdate::Accepted`] was read. Over HTTP there is no task.
    #[must_use]
    pub const fn task_id(&self) -> Option<&TaskId> {
        self.task_id.as_ref()
    }

    /// Returns the request's id; `None` while the request waits to be sent, if it was refused, and
    /// over HTTP.
    #[must_use]
    pub fn id(&self) -> Option<CallId> {
        match &self.source {
            Source::Link(linked) => linked.id.get().copied(),
            _ => None,
        }
    }
}

impl Stream for Chat {
    type Item = ChatUpdate;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ChatUpdate>> {
        let update = match &mut self.source {
            Source::Link(linked) => ready!(linked.poll_update(cx)),
            #[cfg(feature = "sse")]
            Source::Sse(stream) => ready!(stream.poll_update(cx)),
            Source::Over => return Poll::Ready(None),
        };
        match &update {
            ChatUpdate::Accepted { task_id } => self.task_id = Some(task_id.clone()),
            ChatUpdate::Ended(outcome) => {
                self.outcome = Some(outcome.clone());
                self.source = Source::Over;
            }
            _ => {}
        }
        Poll::Ready(Some(update))
    }
}

impl Linked {
    fn poll_update(&mut self, cx: &mut Context<'_>) -> Poll<ChatUpdate> {
        if let Some(update) = ready!(self.stream.poll_item(cx)) {
            return Poll::Ready(update);
        }
        let outcome = match ready!(self.stream.poll_outcome(cx)) {
            Some(Ok(Value::Chat(outcome))) => outcome,
            Some(Err(error)) => ended(error),
            // A chat ends as a chat, and its end is asked for once.
            Some(Ok(_)) | None => gone(Delivery::Unknown),
        };
        Poll::Ready(ChatUpdate::Ended(outcome))
    }
}

/// Returns the outcome of a chat that did not reach its machine, or did not end there.
fn ended(error: CallError<RpcError>) -> Outcome {
    match error {
        CallError::Refused(refused) => Outcome::NotSent(refused),
        CallError::Closed { reason, delivery } => Outcome::Closed { reason, delivery },
        CallError::TimedOut { delivery } => Outcome::TimedOut { delivery },
        CallError::Remote(error) => Outcome::Refused { error },
        other => gone(other.delivery()),
    }
}

const fn gone(delivery: Delivery) -> Outcome {
    let reason = CloseReason::TaskGone;
    Outcome::Closed { reason, delivery }
}

rpc_core::debug_fields!([] Chat, this => {
    id: this.id(),
    task_id: this.task_id,
    has_ended: this.outcome.is_some(),
});
