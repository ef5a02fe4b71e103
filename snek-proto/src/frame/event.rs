//! [`Event`]: what the server pushes.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, LooseStr, Members, RawJson, Slot};
use serde::Serialize;

use super::server::ServerFrame;

/// An event of the server.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A message was posted in a channel, by anybody: the own messages come back too.
    Message(MessageEvent<'a>),
    /// Somebody types.
    SetTyping(TypingEvent<'a>),
    /// The user was joined to a channel.
    Join(JoinEvent<'a>),
    /// The user left a channel.
    Leave(JoinEvent<'a>),
    /// An event that this crate does not know.
    Unknown(UnknownEvent<'a>),
}

/// A message in a channel, in the specification's flat form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageEvent<'a> {
    /// The text so far; a later event of the same sender replaces it unless this one is final.
    pub message: Cow<'a, str>,
    /// The sender's login name.
    pub username: Cow<'a, str>,
    /// The sender's display name.
    pub user_nick: Cow<'a, str>,
    /// Where.
    pub channel_uid: Cow<'a, str>,
    /// Whether the text is complete.
    pub is_final: bool,
}

/// Somebody types. The specification leaves the members open, so each may be absent.
#[derive(Clone, Debug)]
pub struct TypingEvent<'a> {
    /// Where.
    pub channel_uid: Option<Cow<'a, str>>,
    /// Who, by login name.
    pub username: Option<Cow<'a, str>>,
    /// Who, by display name.
    pub user_nick: Option<Cow<'a, str>>,
    /// The indicator's colour.
    pub color: Option<Cow<'a, str>>,
    /// Everything, raw.
    pub data: Option<&'a RawJson<'a>>,
}

/// A channel was joined or left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinEvent<'a> {
    /// Which.
    pub channel_uid: Cow<'a, str>,
}

/// An event that this crate does not know.
#[derive(Clone, Debug)]
pub struct UnknownEvent<'a> {
    /// Its name.
    pub tag: &'a str,
    /// Its arguments.
    pub data: Option<&'a RawJson<'a>>,
    /// The whole frame.
    pub raw: &'a str,
}

/// An event with named arguments, for encoding: `{"event", "data"}`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct NamedEvent<'a, D> {
    /// Its name.
    pub event: &'a str,
    /// Its arguments.
    pub data: D,
}

impl<'a> Event<'a> {
    /// Whether the event's members are known.
    pub(super) fn is_known(name: &str) -> bool {
        matches!(
            name,
            "message" | "new_message" | "set_typing" | "join" | "leave"
        )
    }

    /// The name on the wire.
    #[must_use]
    pub const fn name(&self) -> &str {
        match self {
            Self::Message(_) => "message",
            Self::SetTyping(_) => "set_typing",
            Self::Join(_) => "join",
            Self::Leave(_) => "leave",
            Self::Unknown(event) => event.tag,
        }
    }

    pub(super) fn read(
        frame: &'a ServerFrame<'_>,
        new_message: bool,
    ) -> Option<Result<Self, DecodeError>> {
        let event = match frame.event_name()? {
            "message" => flat_message(frame).map(Self::Message),
            "new_message" if new_message => nested_message(frame).map(Self::Message),
            "set_typing" => data(frame).map(|data| {
                let data: LooseData<'_> = data;
                Self::SetTyping(TypingEvent {
                    channel_uid: text(data.channel_uid),
                    username: text(data.username),
                    user_nick: text(data.user_nick).or(text(data.nick)),
                    color: text(data.color),
                    data: frame.fields.data.get(),
                })
            }),
            "join" => joined(frame, "join").map(Self::Join),
            "leave" => joined(frame, "leave").map(Self::Leave),
            tag => Ok(Self::Unknown(UnknownEvent {
                tag,
                data: frame.fields.data.get(),
                raw: frame.raw.as_deref().unwrap_or_default(),
            })),
        };
        Some(event)
    }
}

fn flat_message<'a>(frame: &'a ServerFrame<'_>) -> Result<MessageEvent<'a>, DecodeError> {
    let fields = &frame.fields;
    if let Some(member) = fields.wrong {
        let expected = if member == "is_final" {
            "true or false"
        } else {
            "a string"
        };
        return Err(DecodeError::wrong_type(member, expected).in_frame("message"));
    }
    let username = need(&fields.username, "username")?;
    Ok(MessageEvent {
        message: Cow::Borrowed(need(&fields.message, "message")?),
        username: Cow::Borrowed(username),
        user_nick: Cow::Borrowed(fields.user_nick.get().map_or(username, |nick| &**nick)),
        channel_uid: Cow::Borrowed(need(&fields.channel_uid, "channel_uid")?),
        is_final: fields.is_final.get().copied().unwrap_or(true),
    })
}

fn need<'s>(slot: &'s Slot<Cow<'_, str>>, name: &'static str) -> Result<&'s str, DecodeError> {
    match slot.get() {
        Some(text) => Ok(text),
        None => Err(DecodeError::missing(name).in_frame("message")),
    }
}

fn nested_message<'a>(frame: &'a ServerFrame<'_>) -> Result<MessageEvent<'a>, DecodeError> {
    let data: NestedMessage<'a> =
        data(frame).map_err(|error| error.under("data").in_frame("new_message"))?;
    let inside = |error: DecodeError| error.in_frame("new_message");
    let username = data.username.require("username").map_err(inside)?;
    let channel_uid = match frame.fields.channel_uid.get() {
        Some(uid) => Cow::Borrowed(&**uid),
        None => data.channel_uid.require("channel_uid").map_err(inside)?,
    };
    Ok(MessageEvent {
        message: data.message.require("message").map_err(inside)?,
        user_nick: data
            .user_nick
            .take()
            .or(data.nick.take())
            .unwrap_or_else(|| username.clone()),
        username,
        channel_uid,
        is_final: data.is_final.take().unwrap_or(true),
    })
}

fn joined<'a>(frame: &'a ServerFrame<'_>, tag: &'static str) -> Result<JoinEvent<'a>, DecodeError> {
    let data: JoinData<'a> = data(frame).map_err(|error| error.under("data").in_frame(tag))?;
    let channel_uid = data
        .channel_uid
        .require("channel_uid")
        .map_err(|error| error.in_frame(tag))?;
    Ok(JoinEvent { channel_uid })
}

/// The members of `data`; none if it is absent.
fn data<'a, M: Members<'a> + Default>(frame: &'a ServerFrame<'_>) -> Result<M, DecodeError> {
    // The frame's size was checked when it was decoded.
    let limits = Limits::default().with_max_message_bytes(usize::MAX);
    match frame.fields.data.get() {
        Some(data) => decode::object(data.get(), &limits),
        None => Ok(M::default()),
    }
}

fn text(slot: Slot<LooseStr<'_>>) -> Option<Cow<'_, str>> {
    match slot.take()? {
        LooseStr::Str(text) => Some(text),
        LooseStr::Bool(_) | LooseStr::Other => None,
    }
}

#[derive(Default)]
struct NestedMessage<'a> {
    message: Slot<Cow<'a, str>>,
    username: Slot<Cow<'a, str>>,
    user_nick: Slot<Cow<'a, str>>,
    nick: Slot<Cow<'a, str>>,
    channel_uid: Slot<Cow<'a, str>>,
    is_final: Slot<bool>,
}

impl<'a> Members<'a> for NestedMessage<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "message" => field.str("message", &mut self.message),
            "username" => field.str("username", &mut self.username),
            "user_nick" => field.str("user_nick", &mut self.user_nick),
            "nick" => field.str("nick", &mut self.nick),
            "channel_uid" => field.str("channel_uid", &mut self.channel_uid),
            "is_final" => field.bool("is_final", &mut self.is_final),
            _ => field.skip(),
        }
    }
}

#[derive(Default)]
struct JoinData<'a> {
    channel_uid: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for JoinData<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "channel_uid" => field.str("channel_uid", &mut self.channel_uid),
            _ => field.skip(),
        }
    }
}

#[derive(Default)]
struct LooseData<'a> {
    channel_uid: Slot<LooseStr<'a>>,
    username: Slot<LooseStr<'a>>,
    user_nick: Slot<LooseStr<'a>>,
    nick: Slot<LooseStr<'a>>,
    color: Slot<LooseStr<'a>>,
}

impl<'a> Members<'a> for LooseData<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "channel_uid" => field.loose_str("channel_uid", &mut self.channel_uid),
            "username" => field.loose_str("username", &mut self.username),
            "user_nick" => field.loose_str("user_nick", &mut self.user_nick),
            "nick" => field.loose_str("nick", &mut self.nick),
            "color" => field.loose_str("color", &mut self.color),
            _ => field.skip(),
        }
    }
}

/// Written in the specification's flat form.
impl Serialize for MessageEvent<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Wire<'a> {
            event: &'static str,
            message: &'a str,
            username: &'a str,
            user_nick: &'a str,
            channel_uid: &'a str,
            is_final: bool,
        }
        let wire = Wire {
            event: "message",
            message: &self.message,
            username: &self.username,
            user_nick: &self.user_nick,
            channel_uid: &self.channel_uid,
            is_final: self.is_final,
        };
        wire.serialize(serializer)
    }
}

impl JoinEvent<'_> {
    /// The event for encoding as `join`.
    #[must_use]
    pub fn as_join(&self) -> impl Serialize {
        NamedEvent {
            event: "join",
            data: self.wire(),
        }
    }

    /// The event for encoding as `leave`.
    #[must_use]
    pub fn as_leave(&self) -> impl Serialize {
        NamedEvent {
            event: "leave",
            data: self.wire(),
        }
    }

    fn wire(&self) -> impl Serialize {
        #[derive(Serialize)]
        struct Wire<'a> {
            channel_uid: &'a str,
        }
        Wire {
            channel_uid: &self.channel_uid,
        }
    }
}

/// Written as `{"event":"set_typing","data":{..}}` with the members that are there.
impl Serialize for TypingEvent<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Wire<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            channel_uid: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            username: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            user_nick: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            color: Option<&'a str>,
        }
        let data = Wire {
            channel_uid: self.channel_uid.as_deref(),
            username: self.username.as_deref(),
            user_nick: self.user_nick.as_deref(),
            color: self.color.as_deref(),
        };
        NamedEvent {
            event: "set_typing",
            data,
        }
        .serialize(serializer)
    }
}
