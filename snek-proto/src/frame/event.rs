//! [`Event`]: a push from the server.

use rpc_core::json::LooseStr;
use rpc_core::{DecodeError, Json, Str};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use super::server::ServerFrame;
use super::types::Final;
use crate::id::ChannelUid;

/// An event of the server, decoded with [`ServerFrame::into_event`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// A message was posted in a channel, by anyone: a client gets its own messages too.
    Message(Message),
    /// Someone is typing.
    SetTyping {
        /// The user and the channel.
        data: Typing,
    },
    /// The user was joined to a channel.
    Join {
        /// The channel.
        data: Joined,
    },
    /// The user left a channel.
    Leave {
        /// The channel.
        data: Joined,
    },
    /// An event that this crate does not know.
    #[serde(untagged)]
    Unknown(OtherEvent),
}

/// A message in a channel. Its members are at the top level of the frame, beside the name that
/// [`Event::Message`] writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Message {
    /// The text so far; a later message of the same sender replaces it unless this one is final.
    pub message: Str,
    /// The sender's login name.
    pub username: Str,
    /// The sender's display name; the login name if the server sends none.
    pub user_nick: Str,
    /// The channel.
    pub channel_uid: ChannelUid,
    /// Whether the text is complete.
    pub is_final: Final,
}

/// A typing indicator. The specification does not define the members, so each may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Typing {
    /// The channel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channel_uid: Option<ChannelUid>,
    /// The login name of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<Str>,
    /// The display name of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_nick: Option<Str>,
    /// The indicator's colour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub color: Option<Str>,
    /// All members as they were sent; ignored in encoding.
    #[serde(skip)]
    pub data: Json,
}

/// A channel that was joined or left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Joined {
    /// The channel.
    pub channel_uid: ChannelUid,
}

/// An event that this crate does not know. It is encoded as it was decoded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
#[non_exhaustive]
pub struct OtherEvent {
    /// Its name.
    #[serde(skip)]
    pub tag: Str,
    /// Its arguments; `null` if there are none.
    #[serde(skip)]
    pub data: Json,
    /// The whole frame.
    pub frame: Json,
}

impl Message {
    /// Creates a complete message, for example in a test.
    pub fn new(
        channel_uid: impl Into<ChannelUid>,
        username: impl Into<Str>,
        user_nick: impl Into<Str>,
        message: impl Into<Str>,
    ) -> Self {
        Self {
            message: message.into(),
            username: username.into(),
            user_nick: user_nick.into(),
            channel_uid: channel_uid.into(),
            is_final: Final::Yes,
        }
    }
}

impl OtherEvent {
    /// Creates an event with this name and these arguments.
    #[must_use]
    pub fn new(tag: impl Into<Str>, data: impl Into<Json>) -> Self {
        #[derive(Serialize)]
        struct Frame<'a> {
            event: &'a str,
            data: &'a Json,
        }
        let (tag, data) = (tag.into(), data.into());
        let frame = Frame {
            event: &tag,
            data: &data,
        };
        // A text and a JSON value are always JSON.
        let frame = Json::of(&frame).unwrap_or_default();
        Self { tag, data, frame }
    }
}

/// The members of events. A member of the wrong type is an error only where it is needed.
#[derive(Default, Deserialize)]
struct Data {
    message: Option<LooseStr>,
    username: Option<LooseStr>,
    user_nick: Option<LooseStr>,
    nick: Option<LooseStr>,
    channel_uid: Option<LooseStr>,
    color: Option<LooseStr>,
    is_final: Option<LooseStr>,
}

impl Data {
    /// Reads the members of `data`; none if it is null.
    fn read(data: &Json) -> Result<Self, DecodeError> {
        data.parse::<Option<Self>>().map(Option::unwrap_or_default)
    }

    fn message(self) -> Result<Message, DecodeError> {
        let username = need(self.username, "username")?;
        let nick = self.user_nick.or(self.nick);
        Ok(Message {
            message: need(self.message, "message")?,
            user_nick: optional(nick, "user_nick")?.unwrap_or_else(|| username.clone()),
            username,
            channel_uid: need(self.channel_uid, "channel_uid")?.into(),
            is_final: match self.is_final {
                None => Final::Yes,
                Some(LooseStr::Bool(is_final)) => is_final.into(),
                Some(_) => return Err(DecodeError::wrong_type("is_final", "true or false")),
            },
        })
    }

    fn typing(self, data: Json) -> Typing {
        let text = |member: Option<LooseStr>| member.and_then(LooseStr::text);
        Typing {
            channel_uid: text(self.channel_uid).map(Into::into),
            username: text(self.username),
            user_nick: text(self.user_nick).or(text(self.nick)),
            color: text(self.color),
            data,
        }
    }

    fn joined(self) -> Result<Joined, DecodeError> {
        let channel_uid = need(self.channel_uid, "channel_uid")?.into();
        Ok(Joined { channel_uid })
    }
}

fn optional(member: Option<LooseStr>, name: &'static str) -> Result<Option<Str>, DecodeError> {
    match member {
        None => Ok(None),
        Some(LooseStr::Str(text)) => Ok(Some(text)),
        Some(_) => Err(DecodeError::wrong_type(name, "a string")),
    }
}

fn need(member: Option<LooseStr>, name: &'static str) -> Result<Str, DecodeError> {
    optional(member, name)?.ok_or_else(|| DecodeError::missing(name))
}

impl Event {
    /// Reads the frame as an event, if it has an `event`.
    pub(super) fn read(frame: ServerFrame) -> Option<Result<Self, DecodeError>> {
        let members = frame.members;
        let tag = members.event?.text()?;
        let data = members.data.unwrap_or_default();
        let inner = || Data::read(&data);
        let (name, event) = match &*tag {
            "message" => {
                let top = Data {
                    message: members.message,
                    username: members.username,
                    user_nick: members.user_nick,
                    channel_uid: members.channel_uid,
                    is_final: members.is_final,
                    ..Data::default()
                };
                let message = top.message().map(Self::Message);
                return Some(message.map_err(|error| error.in_frame("message")));
            }
            // The platform's own form, which has all members but the channel in `data`.
            "new_message" if !frame.strict => {
                let uid = members.channel_uid;
                let outer = uid.filter(|uid| matches!(uid, LooseStr::Str(_)));
                let message = inner().and_then(|inner| {
                    let channel_uid = outer.or(inner.channel_uid);
                    Data {
                        channel_uid,
                        ..inner
                    }
                    .message()
                });
                ("new_message", message.map(Self::Message))
            }
            "set_typing" => {
                let typing = inner().map(|inner| inner.typing(data.clone()));
                ("set_typing", typing.map(|data| Self::SetTyping { data }))
            }
            "join" => {
                let joined = inner().and_then(Data::joined);
                ("join", joined.map(|data| Self::Join { data }))
            }
            "leave" => {
                let left = inner().and_then(Data::joined);
                ("leave", left.map(|data| Self::Leave { data }))
            }
            _ => {
                let frame = frame.raw.unwrap_or_default();
                return Some(Ok(Self::Unknown(OtherEvent { tag, data, frame })));
            }
        };
        Some(event.map_err(|error| error.under("data").in_frame(name)))
    }

    /// Returns the name on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Message(_) => "message",
            Self::SetTyping { .. } => "set_typing",
            Self::Join { .. } => "join",
            Self::Leave { .. } => "leave",
            Self::Unknown(event) => &event.tag,
        }
    }
}

impl<'de> Deserialize<'de> for Event {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let event = ServerFrame::deserialize(from)?.into_event();
        let event = event.ok_or_else(|| D::Error::missing_field("event"))?;
        event.map_err(D::Error::custom)
    }
}
