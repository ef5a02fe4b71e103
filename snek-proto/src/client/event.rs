//! [`ClientEvent`]: the events of a [`ClientConn`](super::ClientConn).

use rpc_core::{CallError, CallId, CloseReason, DecodeError};

use crate::error::RpcError;
use crate::frame::{CallValue, Channel, Event, Joined, Message, OtherEvent, Typing, User};

/// An event of a connection.
///
/// `Ready` comes once, before every other event; if the opening fails, `Closed` comes instead.
/// `Closed` is the last event, and every call has ended before it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The login is done and the channels are known. Commands are accepted from now on.
    Ready(Box<Ready>),
    /// A call has ended.
    Reply {
        /// The call.
        id: CallId,
        /// Its result.
        result: Result<CallValue, CallError<RpcError>>,
    },
    /// A message in a channel, possibly partial.
    Message(Message),
    /// Someone is typing.
    SetTyping(Typing),
    /// The user was joined to a channel.
    Joined(Joined),
    /// The user left a channel.
    Left(Joined),
    /// An event that this crate does not know. Ignore it, or read it yourself.
    Unknown(OtherEvent),
    /// Something unusual that the connection survived.
    Warning(Warning),
    /// The connection has ended.
    Closed(CloseReason),
}

/// The result of the opening.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ready {
    /// The logged-in user.
    pub user: User,
    /// The channels that the user can see.
    pub channels: Vec<Channel>,
    /// The answer to the login.
    pub login: CallValue,
}

/// Something unusual that a connection survived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A frame could not be decoded and was skipped. Calls in flight keep waiting.
    #[error("a frame was skipped: {0}")]
    BadFrame(DecodeError),
    /// Too many events arrived during the opening; the oldest were dropped.
    #[error("{count} events were dropped before the login was done")]
    EarlyEventsDropped {
        /// How many.
        count: u64,
    },
}

impl From<Event> for ClientEvent {
    fn from(event: Event) -> Self {
        match event {
            Event::Message(message) => Self::Message(message),
            Event::SetTyping { data } => Self::SetTyping(data),
            Event::Join { data } => Self::Joined(data),
            Event::Leave { data } => Self::Left(data),
            Event::Unknown(other) => Self::Unknown(other),
        }
    }
}
