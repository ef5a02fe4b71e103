//! [`ServerFrame`]: an answer and the id of its request.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, Members, Reader, Slot};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::Unknown;
use super::client::parsed;
use super::open::owned;
use super::reply::Reply;
use super::status::Status;
use super::task::Task;
use crate::error::{ChatError, ErrorMembers, FrameError};
use crate::event::Event;
use crate::id::{RpcId, TaskId};
use crate::wire::{Body, again, count, tagged};

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

    /// Decodes an answer, forgivingly: null counts as absent, what an answer can do without may be
    /// anything, and a type that is not known is [`Answer::Unknown`]. Members that wrap others in a
    /// `payload` are not read.
    ///
    /// # Errors
    /// [`FrameError`], which knows what of the text could be read all the same.
    pub fn decode(text: &'a str, limits: &Limits) -> Result<Self, FrameError> {
        Self::read(text, limits).map_err(|error| FrameError::of(text, limits, &Answer::TAGS, error))
    }

    fn read(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        decode::check_size(text.len(), limits)?;
        let mut reader = Reader::new(text);
        let mut start = reader.clone();
        let object = tagged::<AnswerBody<'a>>(&mut reader)?;
        reader.end()?;
        let id = parsed("id", &object.id.require("id")?)?;
        let answer = match object.body.answer()? {
            Some(answer) => answer,
            None => Answer::Unknown(Unknown::new(object.tag, start.raw_or_null()?)),
        };
        Ok(Self { id, answer })
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
    /// Every `type` that is known.
    pub(crate) const TAGS: [&'static str; 10] = [
        "status.result",
        "chat.accepted",
        "chat.queued",
        "chat.started",
        "chat.event",
        "chat.done",
        "chat.error",
        "chat.abort.result",
        "task.status.result",
        "error",
    ];

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

enum AnswerBody<'a> {
    Status(Slot<Box<Status<'a>>>),
    Accepted(Slot<Cow<'a, str>>),
    Queued(Slot<u64>),
    Started,
    Event(Slot<Event<'a>>),
    Done(Slot<Box<Reply<'a>>>),
    Failed(ErrorMembers<'a>),
    Abort(AbortMembers<'a>),
    Task(Slot<Task>),
    Error(ErrorMembers<'a>),
    Unknown,
}

#[derive(Default)]
struct AbortMembers<'a> {
    request_id: Slot<Cow<'a, str>>,
    aborted: Slot<bool>,
}

impl<'a> Body<'a> for AnswerBody<'a> {
    const TAG: &'static str = "type";
    const HAS_ID: bool = true;

    fn of(tag: &str) -> Self {
        match tag {
            "chat.event" => Self::Event(Slot::default()),
            "status.result" => Self::Status(Slot::default()),
            "chat.accepted" => Self::Accepted(Slot::default()),
            "chat.queued" => Self::Queued(Slot::default()),
            "chat.started" => Self::Started,
            "chat.done" => Self::Done(Slot::default()),
            "chat.error" => Self::Failed(ErrorMembers::default()),
            "chat.abort.result" => Self::Abort(AbortMembers::default()),
            "task.status.result" => Self::Task(Slot::default()),
            "error" => Self::Error(ErrorMembers::default()),
            _ => Self::Unknown,
        }
    }

    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match (self, name) {
            (Self::Event(slot), "event") => {
                field.read("event", again(slot), |event| match event.first_byte() {
                    Some(b'n') => event.skip().map(|()| None),
                    _ => Event::read(event).map(Some),
                })
            }
            (Self::Status(slot), "status") => field.read("status", again(slot), |status| {
                Ok(Status::read(status)?.map(Box::new))
            }),
            (Self::Accepted(slot), "taskId") => field.str("taskId", again(slot)),
            (Self::Queued(slot), "position") => field.read("position", again(slot), count),
            (Self::Done(slot), "reply") => field.read("reply", again(slot), |reply| {
                Ok(Reply::read(reply)?.map(Box::new))
            }),
            (Self::Failed(members) | Self::Error(members), _) => members.member(name, field),
            (Self::Abort(members), "requestId") => {
                field.str("requestId", again(&mut members.request_id))
            }
            (Self::Abort(members), "aborted") => field.bool("aborted", again(&mut members.aborted)),
            (Self::Task(slot), "task") => field.read("task", again(slot), Task::read),
            _ => field.skip(),
        }
    }
}

impl<'a> AnswerBody<'a> {
    /// The answer; `None` if it is not known.
    fn answer(self) -> Result<Option<Answer<'a>>, DecodeError> {
        Ok(Some(match self {
            Self::Event(event) => Answer::Event(event.require("event")?),
            Self::Status(status) => Answer::Status(status.require("status")?),
            Self::Accepted(task_id) => Answer::Accepted {
                task_id: parsed("taskId", &task_id.require("taskId")?)?,
            },
            Self::Queued(position) => Answer::Queued {
                position: u32::try_from(position.require("position")?).unwrap_or(u32::MAX),
            },
            Self::Started => Answer::Started,
            Self::Done(reply) => Answer::Done(reply.require("reply")?),
            Self::Failed(members) => Answer::Failed(Box::new(members.error())),
            Self::Abort(members) => Answer::AbortResult {
                request_id: parsed("requestId", &members.request_id.require("requestId")?)?,
                aborted: members.aborted.require("aborted")?,
            },
            Self::Task(task) => Answer::TaskStatus(task.take()),
            Self::Error(members) => Answer::Error {
                error: members.words(),
            },
            Self::Unknown => return Ok(None),
        }))
    }
}

impl Serialize for ServerFrame<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Answer::Unknown(unknown) = &self.answer {
            return unknown.serialize(serializer);
        }
        let mut to = serializer.serialize_struct("ServerFrame", 6)?;
        to.serialize_field("id", &self.id)?;
        to.serialize_field("type", self.answer.tag())?;
        match &self.answer {
            Answer::Status(status) => to.serialize_field("status", status)?,
            Answer::Accepted { task_id } => to.serialize_field("taskId", task_id)?,
            Answer::Queued { position } => to.serialize_field("position", position)?,
            Answer::Event(event) => to.serialize_field("event", event)?,
            Answer::Done(reply) => to.serialize_field("reply", reply)?,
            Answer::Failed(error) => error.write(&mut to)?,
            Answer::AbortResult {
                request_id,
                aborted,
            } => {
                to.serialize_field("requestId", request_id)?;
                to.serialize_field("aborted", aborted)?;
            }
            Answer::TaskStatus(task) => to.serialize_field("task", task)?,
            Answer::Error { error } => to.serialize_field("error", error)?,
            Answer::Started | Answer::Unknown(_) => {}
        }
        to.end()
    }
}
