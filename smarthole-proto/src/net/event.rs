//! [`Event`]: the events of a client.

use rpc_core::{Json, Str};

use super::inbound::InboundMessage;
use crate::client::Warning;
use crate::error::RegistrationError;
use crate::id::{ClientId, MessageId};

/// An event of a client. The end of the connection is reported by the link's state.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// Registered, for the first time or again.
    Registered {
        /// The client's id at the server; not every server sends it.
        client_id: Option<ClientId>,
        /// The server's message, for people.
        message: Option<Str>,
    },
    /// The registration was refused. The client tries again if the cause may pass, such as a name
    /// in use.
    Refused(RegistrationError),
    /// A message. Dropping it without a response rejects it.
    Message(InboundMessage),
    /// A message got no response in time: the server has given it up.
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
}
