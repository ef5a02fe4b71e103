//! [`ServerFrame`]: an answer and the id of its request.

use rpc_core::{Limits, Str, json, tagged};
use serde::{Deserialize, Deserializer, Serialize};

use super::reply::Reply;
use super::status::Status;
use super::task::Task;
use crate::error::{AppError, FrameError};
use crate::event::Event;
use crate::id::{RpcId, TaskId};
use crate::loose;

tagged! {
    /// One frame of a server: `{"id", "type", ...}`. Acolyte specification, *RPC baseline*.
    ///
    /// ```
    /// use acolyte_proto::event::Event;
    /// use acolyte_proto::frame::{Answer, ServerFrame};
    /// use acolyte_proto::limits::defaults;
    ///
    /// let text = r#"{"id":"rpc_1","type":"chat.event","event":{"type":"text-delta","text":"Hello"}}"#;
    /// let frame = ServerFrame::decode(text, &defaults())?;
    /// assert_eq!(frame.answer, Answer::Event(Event::text("Hello")));
    /// # Ok::<(), acolyte_proto::error::FrameError>(())
    /// ```
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct ServerFrame {
        /// The request's id; [`is_unreadable`](RpcId::is_unreadable) if the server could not read it.
        "id" => pub id: RpcId,
        /// The answer.
        .. => pub answer: Answer,
    }
}

tagged! {
    /// An answer of a server. Acolyte specification, *RPC baseline* and *Queue semantics*.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Answer by "type" {
        /// Answers `status.get`.
        "status.result" => Status(Box<Status>) in "status",
        /// A chat was accepted, as this task; the first answer to a chat.
        "chat.accepted" => Accepted(TaskId) in "taskId",
        /// A chat waits at this position, from 1; the running chat does not count. Repeated
        /// whenever the queue changes, possibly with the same position.
        "chat.queued" => Queued(u32) in #[serde(deserialize_with = "position")] "position",
        /// A chat is running.
        "chat.started" => Started,
        /// A step of a chat.
        "chat.event" => Event(Event) in "event",
        /// A chat has ended. It may have failed: see [`Reply::error`].
        "chat.done" => Done(Box<Reply>) in "reply",
        /// A chat has failed.
        "chat.error" => Failed(Box<AppError>),
        /// Answers `chat.abort`.
        "chat.abort.result" => AbortResult(AbortResult),
        /// Answers `task.status`; `None` if the server does not know the task.
        "task.status.result" => TaskStatus(Option<Task>) in "task",
        /// The request was refused.
        "error" => Error(Refusal),
    }
}

/// The result of an abort.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AbortResult {
    /// The id of the chat's request.
    pub request_id: RpcId,
    /// Whether there was a chat to abort.
    pub aborted: bool,
}

/// The refusal of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "AppError")]
#[non_exhaustive]
pub struct Refusal {
    /// The reason; [`RpcError`](crate::error::RpcError) recognizes the known ones.
    pub error: Str,
}

/// For peers that put the reason where an error of a chat has its message.
impl From<AppError> for Refusal {
    fn from(error: AppError) -> Self {
        let error = error.message;
        Self { error }
    }
}

/// Reads a position; a number out of range becomes the nearest one in it.
fn position<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    Ok(u32::try_from(loose::some_count(from)?).unwrap_or(u32::MAX))
}

impl ServerFrame {
    /// Creates the answer to the request with this id.
    #[must_use]
    pub const fn new(id: RpcId, answer: Answer) -> Self {
        Self { id, answer }
    }

    /// Decodes an answer, leniently: null counts as absent, optional members may have any value,
    /// and an answer of an unknown type is [`Answer::Unknown`]. Answers wrapped in a `payload` are
    /// not read.
    ///
    /// # Errors
    /// [`FrameError`], which has the parts of the text that could be read.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, FrameError> {
        json::decode_js(text, limits).map_err(|error| FrameError::of::<Answer>(text, limits, error))
    }
}

impl Answer {
    /// Creates a refusal with this reason.
    pub fn error(error: impl Into<Str>) -> Self {
        let error = error.into();
        Self::Error(Refusal { error })
    }
}

impl AbortResult {
    /// Creates the result of aborting the chat with this request.
    #[must_use]
    pub const fn new(request_id: RpcId, aborted: bool) -> Self {
        Self {
            request_id,
            aborted,
        }
    }
}
