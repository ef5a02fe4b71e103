//! [`Event`]: what a client's application learns.

use rpc_core::{Json, Str};

use super::inbound::InboundMessage;
use crate::client::Warning;
use crate::error::RegistrationError;
use crate::id::{ClientId, MessageId};

/// What happened to a client. That the connection has ended is told by the link's state.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// Registered, for the first time or again.
    Registered {
        /// What the server calls the client; not every server says.
        client_id: Option<ClientId>,
        /// The server's words, for people.
        message: Option<Str>,
    },
    /// The registration was refused. The client tries again if that may help: a name gets free.
    Refused(RegistrationError),
    /// A message. Dropped without a response, it is rejected.
    Message(InboundMessage),
    /// A message has got no response in time: the server has given it up.
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
}
