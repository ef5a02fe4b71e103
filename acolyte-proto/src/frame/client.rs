//! [`ClientFrame`]: a request and its id.

use super::chat::ChatRequest;
use crate::id::{RpcId, TaskId};

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
