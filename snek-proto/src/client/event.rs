//! [`ClientEvent`]: what the application learns from a [`ClientConn`](super::ClientConn).

use std::borrow::Cow;

use rpc_core::decode::{DecodeError, FrameCopy, SharedJson, SharedStr};
use rpc_core::{CallError, CallId, CloseReason};

use crate::error::RpcError;
use crate::frame::{Answer, Channel, Event, Message, User};
use crate::id::ChannelUid;

/// What happened on a connection.
///
/// `Ready` comes once and before every other event; if the opening fails, `Closed` comes instead
/// of it. `Closed` is the last event, and every call has ended before it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ClientEvent {
    /// Logged in, and the channels are known. Commands are taken from now on.
    Ready(Box<Ready>),
    /// A call has ended.
    Reply {
        /// Which.
        id: CallId,
        /// How.
        result: Result<Answer, CallError<RpcError>>,
    },
    /// A message in a channel, partial ones too.
    Message(Message),
    /// Somebody types.
    SetTyping(Typing),
    /// The user was joined to a channel.
    Joined {
        /// Which.
        channel_uid: ChannelUid,
    },
    /// The user left a channel.
    Left {
        /// Which.
        channel_uid: ChannelUid,
    },
    /// An event that this crate does not know. Ignore it, or read it yourself.
    Unknown(OtherEvent),
    /// Something odd that the connection survived.
    Warning(Warning),
    /// The connection has ended.
    Closed(CloseReason),
}

/// The result of the opening.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ready {
    /// Who is logged in.
    pub user: User,
    /// The channels that the user sees.
    pub channels: Vec<Channel>,
    /// What the login answered.
    pub login: Answer,
}

/// Somebody types. The specification leaves the members open, so each may be absent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Typing {
    /// Where.
    pub channel_uid: Option<SharedStr>,
    /// Who, by login name.
    pub username: Option<SharedStr>,
    /// Who, by display name.
    pub user_nick: Option<SharedStr>,
    /// The indicator's colour.
    pub color: Option<SharedStr>,
    /// Everything, as JSON.
    pub data: SharedJson,
}

/// An event that this crate does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OtherEvent {
    /// Its name.
    pub tag: SharedStr,
    /// Its arguments, as JSON; `null` if there are none.
    pub data: SharedJson,
    /// The whole frame.
    pub frame: SharedJson,
}

/// Something odd that a connection survived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Warning {
    /// A frame could not be read and was skipped. Calls in flight go on waiting.
    #[error("a frame was skipped: {0}")]
    BadFrame(DecodeError),
    /// More events came before the opening was done than are kept; the oldest were dropped.
    #[error("{count} events that came before the login was done were dropped")]
    EarlyEventsDropped {
        /// How many.
        count: u64,
    },
}

impl ClientEvent {
    /// Copies an event that was decoded from `text`.
    pub(super) fn copied(event: &Event<'_>, text: &str) -> Self {
        match event {
            Event::Message(message) => Self::Message(Message::copied(message, text)),
            Event::SetTyping(typing) => {
                let copy = FrameCopy::of(text);
                let piece =
                    |text: &Option<Cow<'_, str>>| text.as_deref().map(|text| copy.str(text));
                Self::SetTyping(Typing {
                    channel_uid: piece(&typing.channel_uid),
                    username: piece(&typing.username),
                    user_nick: piece(&typing.user_nick),
                    color: piece(&typing.color),
                    data: typing.data.map_or(SharedJson::NULL, |data| copy.json(data)),
                })
            }
            Event::Join(join) => Self::Joined {
                channel_uid: ChannelUid::new(&*join.channel_uid),
            },
            Event::Leave(leave) => Self::Left {
                channel_uid: ChannelUid::new(&*leave.channel_uid),
            },
            Event::Unknown(other) => {
                let copy = FrameCopy::of(text);
                Self::Unknown(OtherEvent {
                    tag: copy.str(other.tag),
                    data: other.data.map_or(SharedJson::NULL, |data| copy.json(data)),
                    frame: copy.whole_json(),
                })
            }
        }
    }

    /// About how many bytes of the frame the event keeps.
    #[must_use]
    pub fn weight(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Message(message) => message.message.len() + message.username.len(),
                Self::Reply {
                    result: Ok(answer), ..
                } => answer.data().get().len(),
                Self::SetTyping(typing) => typing.data.get().len(),
                Self::Unknown(other) => other.frame.get().len(),
                _ => 0,
            }
    }
}
