//! [`ClientFrame`]: a request and its id.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, Members, Reader, Slot};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::chat::ChatRequest;
use crate::error::FrameError;
use crate::id::{Id, Kind, RpcId, TaskId};
use crate::wire::{Body, again, tagged, text};

/// One frame of the client: `{"id", "type", "payload"}`. Acolyte specification, *RPC baseline*.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ClientFrame<'a> {
    /// The request's id: every answer carries it.
    pub id: RpcId,
    /// The request.
    pub request: Request<'a>,
}

/// What a client asks for. Acolyte specification, *RPC baseline*.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Request<'a> {
    /// The server's status.
    StatusGet,
    /// Start a chat, or let it wait for its turn.
    ChatStart(Box<ChatRequest<'a>>),
    /// End a chat of this connection before its time.
    ChatAbort {
        /// The chat's request.
        request_id: RpcId,
    },
    /// What has become of a chat, also of another connection's.
    TaskStatus {
        /// The chat's task.
        task_id: TaskId,
    },
}

impl<'a> ClientFrame<'a> {
    /// This request with this id.
    #[must_use]
    pub const fn new(id: RpcId, request: Request<'a>) -> Self {
        Self { id, request }
    }

    /// Decodes a request, strictly: what [`ChatRequest::decode`] refuses is refused, and a type that
    /// is not known. Other members of the frame and of its payload are ignored.
    ///
    /// # Errors
    /// [`FrameError`], which knows the id to [reply to](FrameError::reply_to).
    pub fn decode(text: &'a str, limits: &Limits) -> Result<Self, FrameError> {
        Self::read(text, limits)
            .map_err(|error| FrameError::of(text, limits, &Request::TAGS, error))
    }

    fn read(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        decode::check_size(text.len(), limits)?;
        let mut reader = Reader::new(text);
        let object = tagged::<RequestBody<'a>>(&mut reader)?;
        reader.end()?;
        Ok(Self {
            id: parsed("id", &object.id.require("id")?)?,
            request: object.body.request()?,
        })
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ClientFrame<'static> {
        ClientFrame {
            id: self.id,
            request: self.request.into_owned(),
        }
    }
}

impl Request<'_> {
    /// Every `type`.
    pub(crate) const TAGS: [&'static str; 4] =
        ["status.get", "chat.start", "chat.abort", "task.status"];

    /// The `type` on the wire.
    #[must_use]
    pub const fn tag(&self) -> &'static str {
        match self {
            Self::StatusGet => "status.get",
            Self::ChatStart(_) => "chat.start",
            Self::ChatAbort { .. } => "chat.abort",
            Self::TaskStatus { .. } => "task.status",
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Request<'static> {
        match self {
            Self::StatusGet => Request::StatusGet,
            Self::ChatStart(request) => Request::ChatStart(Box::new(request.into_owned())),
            Self::ChatAbort { request_id } => Request::ChatAbort { request_id },
            Self::TaskStatus { task_id } => Request::TaskStatus { task_id },
        }
    }
}

/// An id that a member must be.
pub(super) fn parsed<K: Kind>(member: &'static str, text: &str) -> Result<Id<K>, DecodeError> {
    Id::parse(text).map_err(|_| DecodeError::bad_value(member, "an id of its form"))
}

enum RequestBody<'a> {
    Status,
    Start(Slot<StartPayload<'a>>),
    Abort(Slot<IdPayload<'a>>),
    Task(Slot<IdPayload<'a>>),
    Unknown,
}

#[derive(Default)]
struct StartPayload<'a> {
    request: Slot<Box<ChatRequest<'a>>>,
}

/// A payload with one id in it.
#[derive(Default)]
struct IdPayload<'a> {
    request_id: Slot<Cow<'a, str>>,
    task_id: Slot<Cow<'a, str>>,
}

impl<'a> Body<'a> for RequestBody<'a> {
    const TAG: &'static str = "type";
    const HAS_ID: bool = true;

    fn of(tag: &str) -> Self {
        match tag {
            "status.get" => Self::Status,
            "chat.start" => Self::Start(Slot::default()),
            "chat.abort" => Self::Abort(Slot::default()),
            "task.status" => Self::Task(Slot::default()),
            _ => Self::Unknown,
        }
    }

    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match (self, name) {
            (Self::Start(slot), "payload") => field.object("payload", again(slot)),
            (Self::Abort(slot) | Self::Task(slot), "payload") => {
                field.object("payload", again(slot))
            }
            _ => field.skip(),
        }
    }
}

impl<'a> Members<'a> for StartPayload<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "request" => field.read("request", again(&mut self.request), |request| {
                Ok(ChatRequest::read(request)?.map(Box::new))
            }),
            _ => field.skip(),
        }
    }
}

impl<'a> Members<'a> for IdPayload<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "requestId" => field.read("requestId", again(&mut self.request_id), text),
            "taskId" => field.read("taskId", again(&mut self.task_id), text),
            _ => field.skip(),
        }
    }
}

impl<'a> RequestBody<'a> {
    fn request(self) -> Result<Request<'a>, DecodeError> {
        Ok(match self {
            Self::Status => Request::StatusGet,
            Self::Start(payload) => {
                let payload = payload.require("payload")?;
                Request::ChatStart(payload.request.require("request")?)
            }
            Self::Abort(payload) => {
                let id = payload.require("payload")?.request_id;
                Request::ChatAbort {
                    request_id: parsed("requestId", &id.require("requestId")?)?,
                }
            }
            Self::Task(payload) => {
                let id = payload.require("payload")?.task_id;
                Request::TaskStatus {
                    task_id: parsed("taskId", &id.require("taskId")?)?,
                }
            }
            Self::Unknown => return Err(DecodeError::bad_value("type", "a known type")),
        })
    }
}

impl Serialize for ClientFrame<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_struct("ClientFrame", 3)?;
        to.serialize_field("id", &self.id)?;
        to.serialize_field("type", self.request.tag())?;
        match &self.request {
            Request::StatusGet => {}
            Request::ChatStart(request) => to.serialize_field("payload", &Start { request })?,
            Request::ChatAbort { request_id } => {
                to.serialize_field("payload", &Abort { request_id })?;
            }
            Request::TaskStatus { task_id } => to.serialize_field("payload", &Ask { task_id })?,
        }
        to.end()
    }
}

#[derive(Serialize)]
struct Start<'f, 'a> {
    request: &'f ChatRequest<'a>,
}

#[derive(Serialize)]
struct Abort<'f> {
    #[serde(rename = "requestId")]
    request_id: &'f RpcId,
}

#[derive(Serialize)]
struct Ask<'f> {
    #[serde(rename = "taskId")]
    task_id: &'f TaskId,
}
