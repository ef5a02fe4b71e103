//! [`RequestId`], [`ServerEvent`], [`ServerState`], and the table entry of an open request.

use rpc_core::{CallId, CloseReason, DecodeError};
use serde::{Serialize, Serializer};

use crate::frame::Call;
use crate::id::WireId;

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
    pub(super) id: WireId,
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

/// A request's id in the form that answers carry.
pub(super) struct Echo<'i> {
    pub(super) id: &'i WireId,
    /// Whether a number is returned as a number.
    pub(super) numbers: bool,
}

impl Serialize for Echo<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let json = self.id.json();
        if self.numbers && json.first_byte() != b'"' {
            return json.serialize(to);
        }
        self.id.serialize(to)
    }
}
