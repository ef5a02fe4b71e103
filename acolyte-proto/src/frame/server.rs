//! [`ServerFrame`]: an answer and the id of its request.

use std::borrow::Cow;

use super::open::{Unknown, owned};
use super::reply::Reply;
use super::status::Status;
use super::task::Task;
use crate::error::ChatError;
use crate::event::Event;
use crate::id::{RpcId, TaskId};

/// One frame of the server: `{"id", "type", ...}`. Acolyte specification, *RPC baseline*.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerFrame<'a> {
    /// The request's id; [`is_unreadable`](RpcId::is_unreadable) if the server could not read it.
    pub id: RpcId,
    /// The answer.
    pub answer: Answer<'a>,
}

/// What a server answers. Acolyte specification, *RPC baseline* and *Queue semantics*.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Answer<'a> {
    /// To `status.get`.
    Status(Box<Status<'a>>),
    /// A chat was accepted; first of its answers.
    Accepted {
        /// Its task.
        task_id: TaskId,
    },
    /// A chat waits. Sent again whenever the queue changes, perhaps with the same position.
    Queued {
        /// Its place, from 1; the running chat is not counted.
        position: u32,
    },
    /// A chat runs.
    Started,
    /// A step of a chat.
    Event(Event<'a>),
    /// A chat has ended. It may have failed: see [`Reply::error`].
    Done(Box<Reply<'a>>),
    /// A chat has failed.
    Failed(Box<ChatError<'a>>),
    /// To `chat.abort`.
    AbortResult {
        /// The chat's request.
        request_id: RpcId,
        /// Whether there was such a chat to abort.
        aborted: bool,
    },
    /// To `task.status`; `None` if the server does not know the task.
    TaskStatus(Option<Task>),
    /// The request was refused.
    Error {
        /// The server's words; [`RefusalKind::of`](crate::error::RefusalKind::of) tells them apart.
        error: Cow<'a, str>,
    },
    /// An answer that this crate does not know.
    Unknown(Unknown<'a>),
}

impl<'a> ServerFrame<'a> {
    /// This answer to the request with this id.
    #[must_use]
    pub const fn new(id: RpcId, answer: Answer<'a>) -> Self {
        Self { id, answer }
    }

    /// The refusal of the request with this id.
    pub fn error(id: RpcId, error: impl Into<Cow<'a, str>>) -> Self {
        let error = error.into();
        Self::new(id, Answer::Error { error })
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ServerFrame<'static> {
        ServerFrame {
            id: self.id,
            answer: self.answer.into_owned(),
        }
    }
}

impl Answer<'_> {
    /// The `type` on the wire.
    #[must_use]
    pub fn tag(&self) -> &str {
        match self {
            Self::Status(_) => "status.result",
            Self::Accepted { .. } => "chat.accepted",
            Self::Queued { .. } => "chat.queued",
            Self::Started => "chat.started",
            Self::Event(_) => "chat.event",
            Self::Done(_) => "chat.done",
            Self::Failed(_) => "chat.error",
            Self::AbortResult { .. } => "chat.abort.result",
            Self::TaskStatus(_) => "task.status.result",
            Self::Error { .. } => "error",
            Self::Unknown(unknown) => &unknown.tag,
        }
    }

    /// Whether nothing follows for a chat: `chat.done`, `chat.error` and `error`.
    #[must_use]
    pub const fn ends_chat(&self) -> bool {
        matches!(self, Self::Done(_) | Self::Failed(_) | Self::Error { .. })
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Answer<'static> {
        match self {
            Self::Status(status) => Answer::Status(Box::new(status.into_owned())),
            Self::Accepted { task_id } => Answer::Accepted { task_id },
            Self::Queued { position } => Answer::Queued { position },
            Self::Started => Answer::Started,
            Self::Event(event) => Answer::Event(event.into_owned()),
            Self::Done(reply) => Answer::Done(Box::new(reply.into_owned())),
            Self::Failed(error) => Answer::Failed(Box::new(error.into_owned())),
            Self::AbortResult {
                request_id,
                aborted,
            } => Answer::AbortResult {
                request_id,
                aborted,
            },
            Self::TaskStatus(task) => Answer::TaskStatus(task),
            Self::Error { error } => Answer::Error {
                error: owned(error),
            },
            Self::Unknown(unknown) => Answer::Unknown(unknown.into_owned()),
        }
    }
}
