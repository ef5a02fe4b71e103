//! [`HubEvent`]: events of clients and messages.

use rpc_core::Str;

use super::ConnId;
use crate::frame::{Message, Priority};
use crate::id::{ClientId, MessageId};
use crate::router::{Rejection, RouteRequest, RouterError};

/// A question to the router, numbered by the hub. Answer it once, with
/// [`Hub::decide`](super::Hub::decide) or [`Hub::fail`](super::Hub::fail).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteId(pub(super) u64);

/// An event of a hub. Events come in the order in which they happened.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum HubEvent {
    /// A client is registered.
    Registered {
        /// Its connection.
        conn: ConnId,
        /// The client's id.
        client_id: ClientId,
        /// Its name.
        name: Str,
    },
    /// A client is gone, and its name is free.
    Left {
        /// Its connection.
        conn: ConnId,
        /// Its name.
        name: Str,
    },
    /// The router has to choose clients for a message: answer with
    /// [`decide`](super::Hub::decide) or [`fail`](super::Hub::fail). The hub waits for it without a
    /// deadline.
    Route {
        /// Identifies the question.
        route: RouteId,
        /// The message.
        message: MessageId,
        /// The question.
        request: RouteRequest,
    },
    /// A message is on its way to a client.
    Delivered {
        /// The client.
        client: Str,
        /// The message, as this client gets it.
        message: Message,
    },
    /// A client accepted a message.
    Acked {
        /// The message.
        message: MessageId,
        /// The client.
        client: Str,
        /// Whether it came after the timeout. The message may have gone to another client
        /// meanwhile.
        late: bool,
    },
    /// A client rejected a message.
    Rejected {
        /// The message.
        message: MessageId,
        /// The client.
        client: Str,
        /// Why; cut to 4,096 bytes.
        reason: Str,
        /// Whether the client did not answer in time, instead of rejecting the message itself.
        timed_out: bool,
        /// Whether it came after the timeout, so that the message is not routed again.
        late: bool,
    },
    /// A client has a notification for the user.
    Notification {
        /// The message that it is about.
        message: MessageId,
        /// The client.
        client: Str,
        /// The title; the client's name if it sent none.
        title: Str,
        /// The text; may be empty.
        body: Str,
        /// How important it is.
        priority: Priority,
        /// Whether it came after the timeout. It is shown nevertheless.
        late: bool,
    },
    /// No client accepted a message, and none is left to ask. Tell the user. Comes before
    /// [`Settled`](Self::Settled), or after it if a client rejected a message that it had accepted.
    Unroutable {
        /// The message.
        message: MessageId,
        /// The user's text.
        text: Str,
        /// Why no further client is asked.
        why: Unroutable,
        /// The rejections, in order.
        tried: Vec<Rejection>,
    },
    /// Nothing about a message is open any more: the router is not asked, and no client has time
    /// left. Comes exactly once for every submitted message. Further notifications and late
    /// responses may follow. If a client rejects a message that it had accepted, the message is
    /// routed again, without another `Settled` at its end.
    Settled {
        /// The message.
        message: MessageId,
        /// The outcome at every client that got it, in the order of delivery.
        outcomes: Vec<Settlement>,
    },
    /// A response was ignored.
    Ignored {
        /// The connection that sent it.
        conn: ConnId,
        /// The message that it named.
        message_id: MessageId,
        /// Why it was ignored.
        why: Ignored,
    },
}

/// The outcome of a message at one client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settlement {
    /// The client.
    pub client: Str,
    /// Its outcome.
    pub outcome: Outcome,
}

/// How a delivery ended, by the client's last response that counts.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The client accepted the message.
    Acked,
    /// The client sent notifications only, which counts as accepting the message.
    Notified,
    /// The client rejected the message.
    Rejected {
        /// Why.
        reason: Str,
    },
    /// The client did not answer in time.
    TimedOut,
}

impl Outcome {
    /// Returns whether the client accepted the message.
    #[must_use]
    pub const fn is_taken(&self) -> bool {
        match self {
            Self::Acked | Self::Notified => true,
            Self::Rejected { .. } | Self::TimedOut => false,
        }
    }
}

/// Why no further client is asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unroutable {
    /// Every client left while the router decided.
    #[error("no client is connected")]
    NoClients,
    /// The router did not decide.
    #[error(transparent)]
    Router(RouterError),
    /// The router chose no client, or none that can be chosen.
    #[error("no client was chosen")]
    NobodyChosen,
    /// The allowed number of clients rejected it one after the other, or all clients did.
    #[error("no client could handle the message")]
    Exhausted,
    /// The user named the client, and it rejected the message.
    #[error("the client did not take the message")]
    Rejected,
}

/// Why a response was ignored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Ignored {
    /// The connection has registered no client.
    #[error("the connection has registered no client")]
    NotRegistered,
    /// The client never got such a message, or the hub has forgotten it.
    #[error("no such message of this client")]
    UnknownMessage,
    /// The client has accepted this message already.
    #[error("the message is taken already")]
    AlreadyAcked,
    /// The client has rejected this message already, which is final.
    #[error("the message is rejected already")]
    AlreadyRejected,
    /// The answer has an unknown type.
    #[error("unknown answer {0:?}")]
    UnknownAnswer(Str),
}
