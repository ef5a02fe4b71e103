//! [`ClientEvent`]: what the application learns from a [`ClientConn`](super::ClientConn).

use std::time::Instant;

use rpc_core::{CloseReason, DecodeError, Json, Str};

use crate::error::RegistrationError;
use crate::frame::Message;
use crate::id::{ClientId, MessageId};

/// What happened on a connection.
///
/// `Registered` comes once and before every message; if the registration is refused, `Refused` comes
/// instead. `Closed` is the last event.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// The client is registered: messages come, and commands are taken.
    Registered {
        /// What the server calls the client; not every server says.
        client_id: Option<ClientId>,
        /// The server's words, for people.
        message: Option<Str>,
    },
    /// The registration was refused; the connection closes.
    Refused(RegistrationError),
    /// A message for the client. It wants a response before the deadline.
    Message {
        /// The message.
        message: Message,
        /// When the server counts it as rejected if it has not got a response. The message was on
        /// its way for a while, so respond a little earlier.
        deadline: Instant,
        /// The whole frame, unknown members included.
        frame: Json,
    },
    /// The deadline of a message has passed without a response: the server has given it up, and a
    /// response can no longer change that. A notification is still shown.
    Overdue {
        /// Which message.
        id: MessageId,
    },
    /// A frame that this crate does not know. Ignore it, or read it yourself.
    Unknown {
        /// Its type.
        tag: Str,
        /// The whole frame.
        raw: Json,
    },
    /// Something odd that the connection survived.
    Warning(Warning),
    /// The connection has ended.
    Closed(CloseReason),
}

/// Something odd that a connection survived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A frame could not be read and was skipped.
    #[error("a frame was skipped: {0}")]
    BadFrame(DecodeError),
    /// The server answered a registration that was answered before.
    #[error("the server answered the registration again")]
    RepeatedAnswer,
    /// More frames came before the registration was answered than are kept; the oldest were dropped.
    #[error("{count} frames that came before the answer to the registration were dropped")]
    EarlyFramesDropped {
        /// How many.
        count: u64,
    },
}

impl ClientEvent {
    /// About how many bytes the event keeps.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Message { frame, .. } | Self::Unknown { raw: frame, .. } => frame.get().len(),
                _ => 0,
            }
    }
}
