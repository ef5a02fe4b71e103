//! [`Run`]: one chat, as an [`Agent`](super::Agent) sees it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rpc_core::net::Cancellation;

use super::outlet::{NotAdded, Outlet};
use crate::codec::encode_into;
use crate::event::{ChecklistTag, Event};
use crate::id::{RpcId, TaskId};

/// Nothing more is sent for the chat: it was aborted, the client has left, or it has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the chat has ended")]
pub struct Stopped;

/// An event that was not sent.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmitError {
    /// Nothing more is sent for the chat. Stop.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The event cannot be sent: it is `error`, which only the end of a chat is, or no JSON. The
    /// same event would be refused again.
    #[error("the event cannot be sent: {why}")]
    Invalid {
        /// What is wrong with it.
        why: String,
    },
}

/// One chat while it runs. Cheap to clone.
#[derive(Clone)]
pub struct Run {
    pub(super) origin: Arc<Origin>,
    pub(super) outlet: Arc<Outlet>,
    pub(super) cancellation: Cancellation,
}

/// Where a chat comes from.
pub(super) struct Origin {
    pub(super) address: Option<SocketAddr>,
    /// Of a chat over a WebSocket.
    pub(super) ids: Option<(RpcId, TaskId)>,
    /// Chats that wait behind it.
    pub(super) waiting: Arc<AtomicUsize>,
    /// By which name checklists are sent.
    pub(super) checklist: ChecklistTag,
}

impl Run {
    /// The request's id, for a log; `None` over HTTP.
    #[must_use]
    pub fn id(&self) -> Option<&RpcId> {
        self.origin.ids.as_ref().map(|(id, _)| id)
    }

    /// The task, whose state the server keeps by itself; `None` over HTTP, where chats are no tasks.
    #[must_use]
    pub fn task_id(&self) -> Option<&TaskId> {
        self.origin.ids.as_ref().map(|(_, task_id)| task_id)
    }

    /// Where the client is; `None` if the transport has no address.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.origin.address
    }

    /// Sends a step. It is on its way at once; steps that are sent without a wait between them leave
    /// together. While the client reads more slowly than the chat says something, this waits, until
    /// the write timeout gives the client up.
    ///
    /// # Errors
    /// [`EmitError`]. A step that is too large for a message ends the chat with an error.
    ///
    /// # Cancel safety
    /// Dropping the future before it is ready: nothing was sent.
    pub async fn emit(&self, event: &Event) -> Result<(), EmitError> {
        if matches!(event, Event::Error(_)) {
            let why = "`error` is the end of a chat; return it".to_owned();
            return Err(EmitError::Invalid { why });
        }
        let renamed = self.origin.checklist.rename(event);
        let event = renamed.as_ref().unwrap_or(event);
        loop {
            match self.outlet.add(|buffer| encode_into(event, buffer)) {
                Ok(()) => return Ok(()),
                Err(NotAdded::Full) => self.outlet.room().await,
                Err(NotAdded::Stopped) => return Err(Stopped.into()),
                Err(NotAdded::Refused(refused)) => {
                    let why = refused.to_string();
                    return Err(EmitError::Invalid { why });
                }
            }
        }
    }

    /// Sends more of the model's text; as [`emit`](Self::emit).
    ///
    /// # Errors
    /// [`Stopped`]
    ///
    /// # Cancel safety
    /// As for [`emit`](Self::emit).
    pub async fn text(&self, text: &str) -> Result<(), Stopped> {
        match self.emit(&Event::text(text)).await {
            // A text can always be written.
            Ok(()) | Err(EmitError::Invalid { .. }) => Ok(()),
            Err(EmitError::Stopped(stopped)) => Err(stopped),
        }
    }

    /// Whether the chat was aborted: begin nothing more, no call of a tool above all.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancellation.is_cancelled()
    }

    /// Waits until the chat is aborted.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn cancelled(&self) {
        self.cancellation.clone().cancelled().await;
    }

    /// As [`cancelled`](Self::cancelled), to hand on to what the chat starts.
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    /// Whether another chat of the connection waits. The known server then leaves out what is not
    /// needed for the answer.
    #[must_use]
    pub fn has_waiting(&self) -> bool {
        self.origin.waiting.load(Ordering::Relaxed) > 0
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("id", &self.id())
            .field("task_id", &self.task_id())
            .field("is_cancelled", &self.is_cancelled())
            .finish_non_exhaustive()
    }
}
