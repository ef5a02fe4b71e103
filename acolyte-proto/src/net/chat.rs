//! [`Chat`]: a chat that runs, over any transport.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use futures_util::Stream;
use rpc_core::net::Queued;
use rpc_core::net::link::{CallStream, WeakLink};
use rpc_core::{CallError, CloseReason, Delivery, Refused};

use super::client::unexpected;
use super::protocol::{CallValue, ClientSide};
#[cfg(feature = "sse")]
use super::sse::SseStream;
use crate::client::{CallId, ChatUpdate, ClientConn, Outcome, RpcError};
use crate::id::TaskId;

/// A chat that runs: a stream of [`ChatUpdate`]s, the same over every transport. The last one is
/// [`ChatUpdate::Ended`], always.
///
/// Updates that are not taken wait, in the bounds of the link's configuration
/// ([`link_config`](super::link_config)). A chat that stays full for too long holds up its whole
/// connection and then ends with [`CloseReason::SlowConsumer`], and so does one from which the policy
/// drops updates: a chat with holes is none. Over HTTP nothing but this chat waits.
///
/// Dropping it aborts the chat at the server. Servers of this crate stop the work then; known ones
/// let it go on in silence.
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
    stream: CallStream<ClientSide>,
    id: Arc<OnceLock<CallId>>,
    link: WeakLink<ClientSide>,
}

impl Chat {
    pub(super) const fn over_link(
        stream: CallStream<ClientSide>,
        id: Arc<OnceLock<CallId>>,
        link: WeakLink<ClientSide>,
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

    /// The next update; `None` after [`ChatUpdate::Ended`].
    ///
    /// # Cancel safety
    /// Cancel-safe: an update is either returned or stays queued.
    pub async fn next(&mut self) -> Option<ChatUpdate> {
        poll_fn(|cx| self.poll_update(cx)).await
    }

    /// Reads to the end and returns how the chat ended; updates on the way are dropped.
    ///
    /// # Cancel safety
    /// Cancel-safe, but updates that were read are gone.
    pub async fn finish(&mut self) -> Outcome {
        while self.next().await.is_some() {}
        self.outcome
            .clone()
            .unwrap_or_else(|| gone(Delivery::Unknown))
    }

    /// Aborts the chat, be it running or waiting, and says whether there was something to abort. Go
    /// on with [`next`](Self::next): the chat ends as
    /// [aborted](crate::client::Outcome::Aborted), unless its end was on the way already.
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
        match link.call(abort).await? {
            CallValue::Aborted(aborted) => Ok(aborted),
            other => Err(unexpected(&other)),
        }
    }

    /// How the chat ended; `None` until its end was read.
    #[must_use]
    pub const fn outcome(&self) -> Option<&Outcome> {
        self.outcome.as_ref()
    }

    /// The task, once [`ChatUpdate::Accepted`] was read. Over HTTP there is none.
    #[must_use]
    pub const fn task_id(&self) -> Option<&TaskId> {
        self.task_id.as_ref()
    }

    /// The request's id; `None` while it waits to be sent, if it was refused, and over HTTP.
    #[must_use]
    pub fn id(&self) -> Option<CallId> {
        match &self.source {
            Source::Link(linked) => linked.id.get().copied(),
            _ => None,
        }
    }

    /// Poll form of [`next`](Self::next).
    pub fn poll_update(&mut self, cx: &mut Context<'_>) -> Poll<Option<ChatUpdate>> {
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
        let outcome = match ready!(self.stream.poll_queued(cx)) {
            Some(Queued::Item(update)) => return Poll::Ready(update),
            None => match ready!(self.stream.poll_outcome(cx)) {
                Some(Ok(CallValue::Chat(outcome))) => outcome,
                Some(Err(error)) => ended(error),
                // A chat ends as a chat, and its end is asked for once.
                Some(Ok(_)) | None => gone(Delivery::Unknown),
            },
            Some(_) => Outcome::Closed {
                reason: CloseReason::SlowConsumer,
                delivery: Delivery::Delivered,
            },
        };
        Poll::Ready(ChatUpdate::Ended(outcome))
    }
}

/// How a chat ended that did not come to its machine, or not to its end.
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

impl Stream for Chat {
    type Item = ChatUpdate;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<ChatUpdate>> {
        self.poll_update(cx)
    }
}

/// Prints where it stands, nothing of what was said.
impl fmt::Debug for Chat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chat")
            .field("id", &self.id())
            .field("task_id", &self.task_id)
            .field("has_ended", &self.outcome.is_some())
            .finish()
    }
}
