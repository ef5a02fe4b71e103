//! [`Event`]: what a client's application learns.

use rpc_core::decode::SharedStr;

use super::message::Message;
use crate::client::{OtherFrame, Warning};
use crate::error::RegistrationError;
use crate::id::ClientId;

/// What happened to a client. That the connection has ended is told by the link's state.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// Registered, for the first time or again.
    Registered {
        /// What the server calls the client; not every server says.
        client_id: Option<ClientId>,
        /// The server's words, for people.
        message: Option<SharedStr>,
    },
    /// The registration was refused. The client tries again if that may help: a name gets free.
    Refused(RegistrationError),
    /// A message. Dropped without a response, it is rejected.
    Message(Message),
    /// A message has got no response in time: the server has given it up.
    Overdue {
        /// Which message.
        id: SharedStr,
    },
    /// A frame that this crate does not know. Ignore it, or read it yourself.
    Unknown(OtherFrame),
    /// Something odd that the connection survived.
    Warning(Warning),
}
