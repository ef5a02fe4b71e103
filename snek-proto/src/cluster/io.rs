//! What goes into a [`Node`](super::Node) and comes out of it.

use std::collections::VecDeque;

use rpc_core::store::Fill;
use rpc_core::{Instant, Str, Text};

use super::{History, SendError, SendId};
use crate::frame::{Channel, User};
use crate::hub::{ConnId, HubAnswer};
use crate::id::ChannelUid;

#[cfg(doc)]
use super::Node;

/// What a user's record says of memberships. Public channels are not among them: every user is in
/// those.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Membership {
    pub(crate) user: User,
    /// The channels as the user sees them, in the order of joining.
    pub(crate) channels: Vec<Channel>,
    /// The number of the record's last change.
    pub(crate) revision: u64,
}

/// What a node asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Subscribe to the live feed of a channel, if that is not done, then read its last
    /// message: [`Node::handle_open`]. If it fails do nothing; it is asked for again.
    Open {
        /// The channel.
        channel: ChannelUid,
        /// What the answer has to repeat.
        ticket: u64,
    },
    /// Unsubscribe from the feed of a channel.
    Close {
        /// The channel.
        channel: ChannelUid,
    },
    /// Subscribe to changes of all users' records, then read this one: [`Node::handle_member`]. Changes of
    /// users without connections are ignored.
    Watch {
        /// The user.
        username: Str,
    },
    /// Read messages of a channel: [`Node::handle_fill`], unless another stream has taken the place of the
    /// first: [`Node::handle_replaced`]. If it fails do nothing; they are asked for again.
    Fill {
        /// The channel.
        channel: ChannelUid,
        /// Which ones.
        fill: Fill,
        /// What was read of the stream before, if there may be another one.
        history: Option<History>,
    },
    /// Store a message once: [`Node::handle_stored`].
    Publish(Publish),
    /// Read the last messages of all channels: [`Node::handle_probe`].
    Probe {
        /// When the stream was made and its last number, if nothing differed at the last look: while it has the
        /// same, they need not be read.
        compared: Option<(u128, u64)>,
    },
    /// Publish to the live feed of a channel, and store nothing. If it fails do nothing.
    Cast {
        /// The channel.
        channel: ChannelUid,
        /// The encoded event.
        event: Text,
    },
}

/// A message to store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Publish {
    /// The number of the message, which the answer has to repeat.
    pub(crate) id: SendId,
    pub(crate) channel: ChannelUid,
    /// The key of the message, unique among all nodes. The stream stores a key once.
    pub(crate) key: Str,
    /// The encoded event.
    pub(crate) event: Text,
    /// When it is tried no more, and its outcome is unknown.
    pub(crate) until: Instant,
}

/// What a node reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NodeEvent {
    /// A connection gets all messages of its user's channels from now on.
    Ready {
        /// The connection.
        conn: ConnId,
    },
    /// The stream has been silent for too long: [end](Node::end) the node and close its connections.
    /// Comes once.
    Lost,
    /// The outcome of a message.
    Sent {
        /// Its number.
        id: SendId,
        /// Whether it is stored.
        result: Result<(), SendError>,
    },
}

/// What a node does with a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Handled {
    /// The answer.
    Answer(HubAnswer),
    /// The answer is the outcome of this message: [`NodeEvent::Sent`].
    Sending(SendId),
    /// The answer is the record of this user, which the node does not know.
    Lookup(Str),
}

/// The requests and events that wait to be taken.
#[derive(Default)]
pub(super) struct Output {
    pub(super) requests: VecDeque<Request>,
    pub(super) events: VecDeque<NodeEvent>,
}
