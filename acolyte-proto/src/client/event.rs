//! [`ClientEvent`]: what the application learns from a [`ClientConn`](super::ClientConn).

use std::fmt;

use rpc_core::{CallError, CloseReason, DecodeError, Delivery, Json, Refused, Str};

use super::CallId;
use crate::error::ChatError;
use crate::event::Event;
use crate::frame::{Reply, Status};
use crate::id::TaskId;
use crate::task::Task;
use crate::tool_calls::{STRAY, ToolCalls};

/// What happened on a connection.
///
/// `Ready` is the first event and `Closed` the last; every request and every chat has ended before
/// it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The connection is open. The protocol has no opening of its own, so it says nothing about the
    /// server: for that there is [`ClientConn::status`](super::ClientConn::status).
    Ready,
    /// A chat goes on, or has ended: the last update of every chat is [`ChatUpdate::Ended`].
    Chat {
        /// Which.
        id: CallId,
        /// How.
        update: ChatUpdate,
    },
    /// A question for the server's status has ended.
    Status {
        /// Which.
        id: CallId,
        /// How.
        result: Result<Box<Status>, CallError<RpcError>>,
    },
    /// A question for a task has ended.
    TaskStatus {
        /// Which.
        id: CallId,
        /// How; `None` is a task that the server does not know (any more).
        result: Result<Option<Task>, CallError<RpcError>>,
    },
    /// An abort has been answered. What became of the chat is told by the chat itself.
    AbortResult {
        /// The abort.
        id: CallId,
        /// The chat.
        chat: CallId,
        /// Whether the server had such a chat and aborted it.
        result: Result<bool, CallError<RpcError>>,
    },
    /// The server complains about something that it could match to no request, and nothing is
    /// unanswered that it could be about. The connection goes on.
    ServerError(RpcError),
    /// A message of a kind that this crate does not know, and that is about no chat.
    Unknown {
        /// Its type.
        tag: Str,
        /// The whole of it.
        raw: Json,
    },
    /// A message that could not be taken, and that is about no chat. The connection goes on.
    Warning(Warning),
    /// The connection has ended.
    Closed(CloseReason),
}

/// What a chat tells. The same over both transports.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ChatUpdate {
    /// The server has taken the chat, and its task has this id: ask for it after a lost connection.
    /// Not over HTTP, where chats are no tasks.
    Accepted {
        /// The task.
        task_id: TaskId,
    },
    /// The chat waits behind others of this connection. Comes again whenever the queue changes, also
    /// with the same position.
    Queued {
        /// Its place, from 1.
        position: u32,
    },
    /// The chat runs.
    Started,
    /// Something happened in it.
    Event(Event),
    /// A message of a kind that this crate does not know.
    Unknown {
        /// Its type.
        tag: Str,
        /// The whole of it.
        raw: Json,
    },
    /// Something about the chat is not as the protocol has it. The chat goes on.
    Warning(Warning),
    /// The chat has ended. Comes exactly once, and nothing follows.
    Ended(Outcome),
}

/// How a chat has ended.
///
/// A chat changes files, so before it is repeated ask whether it
/// [may have run](Self::may_have_run).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Outcome {
    /// It is done, and the reply tells of no error.
    Done(Box<Reply>),
    /// It has failed.
    Failed(Failure),
    /// The server did not take it: it is busy with too many, or the request is wrong. Nothing ran,
    /// unless a proxy on the way over HTTP has lost the answer ([`may_have_run`](Self::may_have_run)
    /// tells).
    Refused {
        /// The server's words.
        error: RpcError,
    },
    /// This side has aborted it.
    Aborted {
        /// What the server said about it, if it said more than that it was aborted.
        error: Option<Box<ChatError>>,
    },
    /// The server said nothing about it for too long, or did not answer an abort. It may still run:
    /// its task tells.
    TimedOut {
        /// Whether it may have reached the server.
        delivery: Delivery,
    },
    /// The connection ended first. There is no way to take the chat up again: its task tells what
    /// became of it.
    Closed {
        /// Why the connection ended.
        reason: CloseReason,
        /// Whether the chat may have reached the server.
        delivery: Delivery,
    },
    /// It was never sent: this side has refused it.
    NotSent(Refused),
}

/// How a chat has failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Failure {
    /// The server failed (`chat.error`): it could not run the chat, or not to its end.
    Server(Box<ChatError>),
    /// The model failed: the chat is "done", but its reply carries an error
    /// ([`Reply::error`](crate::frame::Reply::error)), as known servers tell it.
    Model(Box<Reply>),
    /// The last message of the chat cannot be read, so nobody knows how it ended.
    Unreadable(DecodeError),
}

/// A request's refusal: the `error` answer.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RpcError {
    /// The server's words.
    #[error("{0}")]
    Refused(String),
    /// The server answered over HTTP with a status that is no success.
    #[error("status {status}: {words}")]
    Status {
        /// The status; 401 is a missing or wrong key.
        status: u16,
        /// The server's words.
        words: String,
    },
    /// The answer cannot be read.
    #[error("the answer cannot be read: {0}")]
    Unreadable(DecodeError),
}

impl RpcError {
    /// Whether it says that nothing was done. Other statuses than these may come from a proxy that
    /// has passed the request on.
    const fn is_refusal(&self) -> bool {
        match self {
            Self::Status { status, .. } => matches!(*status, 300..=499 | 503),
            Self::Refused(_) | Self::Unreadable(_) => true,
        }
    }

    /// The server's words; empty if the answer could not be read.
    #[must_use]
    pub fn message(&self) -> &str {
        match self {
            Self::Refused(words) | Self::Status { words, .. } => words,
            Self::Unreadable(_) => "",
        }
    }
}

/// Something that is not as the protocol has it, and that was survived.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Warning {
    /// A message, or an event of a chat, that cannot be read. It was skipped.
    BadFrame(DecodeError),
    /// A tool's output or result belongs to no call before it. The event follows all the same.
    ToolWithoutCall {
        /// The id of the call that never was.
        tool_call_id: Str,
    },
    /// A place in the queue that is none: they count from 1. It was skipped.
    NoPosition,
    /// An answer that does not fit what was asked. It was skipped.
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

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadFrame(error) => write!(f, "a message cannot be read: {error}"),
            Self::ToolWithoutCall { .. } => f.write_str(STRAY),
            Self::NoPosition => f.write_str("a place in the queue is 0"),
            Self::WrongAnswer { answer } => write!(f, "{answer} does not answer what was asked"),
        }
    }
}

impl Outcome {
    /// How a chat with this reply has ended.
    pub(super) fn of_reply(reply: Box<Reply>) -> Self {
        match reply.error {
            Some(_) => Self::Failed(Failure::Model(reply)),
            None => Self::Done(reply),
        }
    }

    /// The reply of a chat that is done without an error.
    #[must_use]
    pub fn reply(&self) -> Option<&Reply> {
        match self {
            Self::Done(reply) => Some(reply),
            _ => None,
        }
    }

    /// Whether the chat is done without an error.
    #[must_use]
    pub const fn is_done(&self) -> bool {
        matches!(self, Self::Done(_))
    }

    /// Whether the chat may have begun to run, and so may have changed files: if not, repeating it
    /// is safe.
    #[must_use]
    pub const fn may_have_run(&self) -> bool {
        match (self, self.delivery()) {
            (Self::Refused { error }, _) => !error.is_refusal(),
            (_, delivery) => !matches!(delivery, Delivery::NotSent),
        }
    }

    /// Whether the chat may have reached the server.
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

/// One sentence for people.
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

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(error) => write!(f, "{error}"),
            Self::Model(reply) => f.write_str(reply.error.as_deref().unwrap_or_default()),
            Self::Unreadable(error) => write!(f, "its end cannot be read: {error}"),
        }
    }
}
