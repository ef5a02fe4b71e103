//! [`ClientEvent`]: what a [`ClientConn`](super::ClientConn) reports to the application.

use std::fmt;

use rpc_core::{CallError, CloseReason, DecodeError, Delivery, Json, Refused, Str};

use super::CallId;
use crate::error::{AppError, RpcError};
use crate::event::Event;
use crate::frame::{Reply, Status};
use crate::id::{TaskId, ToolCallId};
use crate::task::Task;
use crate::tool_calls::{STRAY, ToolCalls};

/// An event on a connection.
///
/// `Ready` is the first event and `Closed` the last; every request and every chat ends before it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The connection is open. The protocol has no opening frame, so this says nothing about the
    /// server: for that, call [`ClientConn::status`](super::ClientConn::status).
    Ready,
    /// An update of a chat; the last one of every chat is [`ChatUpdate::Ended`].
    Chat {
        /// The chat.
        id: CallId,
        /// The update.
        update: ChatUpdate,
    },
    /// A request other than a chat has ended. The updates of an aborted chat say how that ended.
    Reply {
        /// The request.
        id: CallId,
        /// The result.
        result: Result<CallValue, CallError<RpcError>>,
    },
    /// The server reports an error that it could match to no request, and no unanswered request
    /// that it could belong to. The connection stays open.
    ServerError(RpcError),
    /// A message of an unknown type that belongs to no chat.
    Unknown {
        /// Its type.
        tag: Str,
        /// The whole message.
        raw: Json,
    },
    /// A message that was skipped and belongs to no chat. The connection stays open.
    Warning(Warning),
    /// The connection has ended.
    Closed(CloseReason),
}

/// The value of a request other than a chat.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum CallValue {
    /// The server's status.
    Status(Box<Status>),
    /// The task; `None` if the server does not know it, or has forgotten it.
    Task(Option<Task>),
    /// Whether the server had such a chat and aborted it.
    Aborted(bool),
}

/// An update of a chat. The same over both transports.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChatUpdate {
    /// The server has accepted the chat, as a task with this id: use it after a lost connection.
    /// Not over HTTP, where chats are not tasks.
    Accepted {
        /// The task.
        task_id: TaskId,
    },
    /// The chat waits behind others of this connection. Repeated whenever the queue changes, also
    /// with the same position.
    Queued {
        /// Its position, from 1.
        position: u32,
    },
    /// The chat is running.
    Started,
    /// A step of the chat.
    Event(Event),
    /// A message of an unknown type.
    Unknown {
        /// Its type.
        tag: Str,
        /// The whole message.
        raw: Json,
    },
    /// Something about the chat breaks the protocol. The chat goes on.
    Warning(Warning),
    /// The chat has ended. Comes exactly once, as the last update.
    Ended(Outcome),
}

/// The outcome of a chat.
///
/// A chat changes files, so before repeating one, check whether it [may have
/// run](Self::may_have_run).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// The chat is done, and its reply carries no error.
    Done(Box<Reply>),
    /// The chat has failed.
    Failed(Failure),
    /// The server refused the chat: it is too busy, or the request is invalid. Nothing ran, unless
    /// a proxy lost the answer over HTTP: see [`may_have_run`](Self::may_have_run).
    Refused {
        /// The server's reason.
        error: RpcError,
    },
    /// This client has aborted the chat.
    Aborted {
        /// What the server reported about it, if more than that it was aborted.
        error: Option<Box<AppError>>,
    },
    /// The server was silent about the chat for too long, or did not answer an abort. The chat may
    /// still be running: query its task.
    TimedOut {
        /// Whether it may have reached the server.
        delivery: Delivery,
    },
    /// The connection ended first. A chat cannot be resumed: query its task to learn what became of
    /// it.
    Closed {
        /// Why the connection ended.
        reason: CloseReason,
        /// Whether the chat may have reached the server.
        delivery: Delivery,
    },
    /// The chat was never sent: this client refused it.
    NotSent(Refused),
}

/// A failure of a chat.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// The server failed (`chat.error`): it could not run the chat, or not to the end.
    #[error("{0}")]
    Server(Box<AppError>),
    /// The model failed: the chat is "done", but its reply carries an error
    /// ([`Reply::error`](crate::frame::Reply::error)). Known servers report failures this way.
    #[error("{}", .0.error.as_deref().unwrap_or_default())]
    Model(Box<Reply>),
    /// The last message of the chat cannot be read, so how the chat ended is unknown.
    #[error("its end cannot be read: {0}")]
    Unreadable(DecodeError),
}

/// A violation of the protocol that a connection survived.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A message, or an event of a chat, could not be read. It was skipped.
    #[error("a message cannot be read: {0}")]
    BadFrame(DecodeError),
    /// A tool's output or result belongs to no call before it. The event still follows.
    #[error("{STRAY}")]
    ToolWithoutCall {
        /// The id of the missing call.
        tool_call_id: ToolCallId,
    },
    /// A position in the queue was 0; they count from 1. It was skipped.
    #[error("a place in the queue is 0")]
    NoPosition,
    /// An answer does not fit its request. It was skipped.
    #[error("{answer} does not answer what was asked")]
    WrongAnswer {
        /// Its type.
        answer: Str,
    },
}

impl Warning {
    /// Takes note of an event, or says that it belongs to no call of a tool.
    pub(super) fn of_stray(calls: &mut ToolCalls, event: &Event) -> Option<Self> {
        calls.note(event);
        let tool_call_id = calls.stray(event)?.clone();
        Some(Self::ToolWithoutCall { tool_call_id })
    }
}

impl Outcome {
    /// Returns how a chat with this reply has ended.
    pub(super) fn of_reply(reply: Box<Reply>) -> Self {
        match reply.error {
            Some(_) => Self::Failed(Failure::Model(reply)),
            None => Self::Done(reply),
        }
    }

    /// Returns the reply of a chat that is done without an error.
    #[must_use]
    pub fn reply(&self) -> Option<&Reply> {
        match self {
            Self::Done(reply) => Some(reply),
            _ => None,
        }
    }

    /// Returns whether the chat is done without an error.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    /// Returns whether the chat may have started, and so may have changed files. If not, repeating
    /// it is safe.
    #[must_use]
    pub const fn may_have_run(&self) -> bool {
        match (self, self.delivery()) {
            (Self::Refused { error }, _) => !error.kind().is_refusal(),
            (_, delivery) => !matches!(delivery, Delivery::NotSent),
        }
    }

    /// Returns whether the chat may have reached the server.
    #[must_use]
    pub const fn delivery(&self) -> Delivery {
        match self {
            Self::Done(_) | Self::Failed(_) | Self::Refused { .. } | Self::Aborted { .. } => {
                Delivery::Delivered
            }
            Self::TimedOut { delivery } | Self::Closed { delivery, .. } => *delivery,
            Self::NotSent(_) => Delivery::NotSent,
        }
    }
}

/// Prints one sentence for people.
impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(_) => f.write_str("done"),
            Self::Failed(failure) => write!(f, "failed: {failure}"),
            Self::Refused { error } => write!(f, "refused by the server: {error}"),
            Self::Aborted { .. } => f.write_str("aborted"),
            Self::TimedOut { .. } => f.write_str("the server said nothing for too long"),
            Self::Closed { reason, .. } => write!(f, "ended with the connection: {reason}"),
            Self::NotSent(refused) => write!(f, "not sent: {refused}"),
        }
    }
}
