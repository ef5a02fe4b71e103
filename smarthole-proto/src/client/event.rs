//! [`ClientEvent`]: the events of a [`ClientConn`](super::ClientConn).

use rpc_core::{CloseReason, DecodeError, Instant, Json, Str};

use crate::error::RegistrationError;
use crate::frame::Message;
use crate::id::{ClientId, MessageId};

/// An event of a connection.
///
/// `Registered` comes once, before every message; if the registration is refused, `Refused` comes
/// instead. `Closed` is the last event. At level 3, where a message is one that is always answered, the
/// link's state tells the end instead, and `Registered` comes after every reconnect.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent<M = Received> {
    /// The client is registered: messages arrive and commands are accepted.
    Registered {
        /// The client's id at the server; not every server sends it.
        client_id: Option<ClientId>,
        /// The server's message, for people.
        message: Option<Str>,
    },
    /// The registration was refused; the connection closes.
    Refused(RegistrationError),
    /// A message for the client. It requires a response before its deadline.
    Message(M),
    /// The deadline of a message passed without a response: the server has given it up, and a
    /// response can no longer change that. A notification is still shown.
    Overdue {
        /// The message.
        id: MessageId,
    },
    /// A frame of an unknown type. Ignore it, or parse it yourself.
    Unknown {
        /// Its type.
        tag: Str,
        /// The whole frame.
        raw: Json,
    },
    /// A problem that did not end the connection.
    Warning(Warning),
    /// The connection has ended.
    Closed(CloseReason),
}

/// A message, as it arrived.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Received {
    /// The message.
    pub message: Message,
    /// When the server counts the message as rejected without a response. The message spent time in
    /// transit, so respond a little earlier.
    pub deadline: Instant,
    /// The whole frame, including unknown members.
    pub frame: Json,
}

/// A problem that does not end a connection.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A frame could not be decoded and was skipped.
    #[error("a frame was skipped: {0}")]
    BadFrame(DecodeError),
    /// The server answered the registration a second time.
    #[error("the server answered the registration again")]
    RepeatedAnswer,
    /// More frames arrived before the answer to the registration than are kept; the oldest were
    /// dropped.
    #[error("{count} frames that came before the answer to the registration were dropped")]
    EarlyFramesDropped {
        /// How many.
        count: u64,
    },
}
