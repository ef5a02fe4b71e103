//! [`RequestId`], [`ServerEvent`], [`ServerState`], and the table entry of an open request.

use rpc_core::{CallId, CloseReason, DecodeError, Json};

use crate::frame::Call;

/// The id of an open request. Valid on its connection only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(pub(super) CallId);

/// The state of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerState {
    /// The token has not arrived yet.
    AwaitToken,
    /// The hello was sent.
    Ready,
    /// The connection has ended. Queued frames may still be sent.
    Closed,
}

/// An event of a connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// The hello was sent: the token was right, or none is required.
    Authenticated,
    /// A request of the client. End every request with [`reply`](super::ServerConn::reply) or
    /// [`fail`](super::ServerConn::fail), and a chat with [`done`](super::ServerConn::done).
    Request {
        /// The request.
        id: RequestId,
        /// The call: never `ping`, which is answered already, and an extension only if extensions
        /// are switched on.
        call: Call,
    },
    /// A message could not be decoded and was ignored.
    Warning(DecodeError),
    /// A command was refused with [`Refused::QueueFull`](rpc_core::Refused::QueueFull), and frames
    /// have left since: retry it.
    Writable,
    /// The connection has ended. The last event.
    Closed(CloseReason),
}

/// A request that has not ended.
#[derive(Debug)]
pub(super) struct Open {
    /// The id as answers carry it.
    pub(super) id: Json,
    pub(super) kind: Kind,
    /// The size of its frame, which the application keeps until it answers.
    pub(super) bytes: usize,
}

/// The kind of a request's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// One frame.
    Plain,
    /// A stream of events, or an error before it begins.
    Chat {
        /// Whether an event was sent.
        begun: bool,
    },
}
