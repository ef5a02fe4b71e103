//! [`HubEvent`]: what happens to clients and messages.

use rpc_core::Str;

use super::ConnId;
use crate::frame::{Message, Priority};
use crate::id::{ClientId, MessageId};
use crate::router::{Rejection, RouteRequest, RouterError};

/// A question to the router, numbered by the hub. Answered once, with
/// [`Hub::decide`](super::Hub::decide) or [`Hub::fail`](super::Hub::fail).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RouteId(pub(super) u64);

/// What happened. Events come in the order of what they tell.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum HubEvent {
    /// A client is registered.
    Registered {
        /// Its connection.
        conn: ConnId,
        /// What the hub calls it.
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
        /// Names the question.
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
    /// A client took a message.
    Acked {
        /// The message.
        message: MessageId,
        /// The client.
        client: Str,
        /// Whether its time was over. The message may have gone to another client meanwhile.
        late: bool,
    },
    /// A client did not take a message.
    Rejected {
        /// The message.
        message: MessageId,
        /// The client.
        client: Str,
        /// Why; cut to [`MAX_REASON`](crate::limits::MAX_REASON) bytes.
        reason: Str,
        /// Whether the client did not say so, but anything in time.
        timed_out: bool,
        /// Whether its time was over, so that the message is not routed again.
        late: bool,
    },
    /// A client has something to show to the user.
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
        /// Whether the client's time was over. It is shown nevertheless.
        late: bool,
    },
    /// Nobody took a message, and there is nobody left to ask. Tell the user. Comes before
    /// [`Settled`](Self::Settled), or after it if a client rejected what it had taken.
    Unroutable {
        /// The message.
        message: MessageId,
        /// What the user said.
        text: Str,
        /// Why nobody is asked any more.
        why: Unroutable,
        /// Who rejected it and why, in that order.
        tried: Vec<Rejection>,
    },
    /// Nothing about a message is open any more: no router is asked, no client has time left. Comes
    /// exactly once for every message that was submitted. Further notifications and late responses
    /// may follow; and if a client rejects what it had taken, the message is routed again, which
    /// ends without another of these.
    Settled {
        /// The message.
        message: MessageId,
        /// Everybody who got it, in the order of delivery.
        outcomes: Vec<Settlement>,
    },
    /// A response was ignored.
    Ignored {
        /// Whose it was.
        conn: ConnId,
        /// The message that it named.
        message_id: MessageId,
        /// Why it was ignored.
        why: Ignored,
    },
}

/// What became of a message at one client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settlement {
    /// The client.
    pub client: Str,
    /// What became of it.
    pub outcome: Outcome,
}

/// How a delivery ended: what the client's last response that counts was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The client took the message.
    Acked,
    /// The client sent notifications only, so it took the message.
    Notified,
    /// The client rejected the message.
    Rejected {
        /// Why.
        reason: Str,
    },
    /// The client said nothing in time.
    TimedOut,
}

impl Outcome {
    /// Whether the client took the message.
    #[must_use]
    pub const fn is_taken(&self) -> bool {
        match self {
            Self::Acked | Self::Notified => true,
            Self::Rejected { .. } | Self::TimedOut => false,
        }
    }
}

/// Why nobody is asked for a message any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unroutable {
    /// Everybody left while the router decided.
    #[error("no client is connected")]
    NoClients,
    /// The router did not decide.
    #[error(transparent)]
    Router(RouterError),
    /// The router chose nobody, or nobody who can be.
    #[error("no client was chosen")]
    NobodyChosen,
    /// As many clients as allowed rejected it one after the other, or all there are.
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
    /// The client never got such a message, or it is forgotten.
    #[error("no such message of this client")]
    UnknownMessage,
    /// The client has taken this message already.
    #[error("the message is taken already")]
    AlreadyAcked,
    /// The client has rejected this message already, and that cannot be taken back.
    #[error("the message is rejected already")]
    AlreadyRejected,
    /// The answer is of a type that this crate does not know.
    #[error("unknown answer {0:?}")]
    UnknownAnswer(Str),
}
