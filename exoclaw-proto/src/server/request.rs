//! What a connection's events carry: [`RequestId`], [`ServerEvent`], [`ServerState`]; and the table
//! entry of an open request.

use rpc_core::{CallId, CloseReason, DecodeError};
use serde::{Serialize, Serializer};

use crate::frame::Call;
use crate::id::WireId;

/// An open request on one connection. Name it on that connection only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RequestId(pub(super) CallId);

/// Where a connection stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServerState {
    /// The token has to come first.
    AwaitToken,
    /// Hello was said.
    Ready,
    /// Over. What is queued may still be sent.
    Closed,
}

/// What happened on a connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ServerEvent {
    /// Hello was said: the token was right, or none is asked for.
    Authenticated,
    /// The client asks for something. End every request: with [`reply`](super::ServerConn::reply)
    /// or [`fail`](super::ServerConn::fail), a chat with [`done`](super::ServerConn::done).
    Request {
        /// The request.
        id: RequestId,
        /// What it asks for: never `ping`, which is answered already, and no extension unless they
        /// are switched on.
        call: Call,
    },
    /// A message could not be read and was ignored.
    Warning(DecodeError),
    /// A command was refused with [`Refused::QueueFull`](rpc_core::Refused::QueueFull), and frames
    /// have left since: try again.
    Writable,
    /// The connection has ended. The last event.
    Closed(CloseReason),
}

/// A request that has not ended.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) id: WireId,
    pub(super) kind: Kind,
    /// The size of its frame, which the application keeps meanwhile.
    pub(super) bytes: usize,
}

/// How a request is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// With one frame.
    Plain,
    /// With a stream of events, or with an error before it begins.
    Chat {
        /// An event was sent.
        begun: bool,
    },
}

/// A request's id as the answers carry it.
pub(super) struct Echo<'i> {
    pub(super) id: &'i WireId,
    /// A number comes back as a number.
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
