//! What frames carry, owned: [`User`], [`Channel`], [`Message`], [`Answer`].

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{
    self, DecodeError, Field, FrameCopy, MapAccess, Members, SharedJson, SharedStr, Slot,
    find_member,
};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use super::event::MessageEvent;
use crate::id::ChannelUid;
use crate::limits::DM_TAG;

/// Whether a message is complete. Exhaustive: the wire has one bit for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Final {
    /// Complete.
    Yes,
    /// Partial: the next one replaces it.
    No,
}

impl Final {
    /// The wire's `is_final`.
    #[must_use]
    pub const fn as_bool(self) -> bool {
        matches!(self, Self::Yes)
    }
}

impl From<bool> for Final {
    fn from(is_final: bool) -> Self {
        if is_final { Self::Yes } else { Self::No }
    }
}

impl Serialize for Final {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(self.as_bool())
    }
}

/// A user's record. Other members of the record are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct User {
    /// The login name, unique.
    pub username: String,
    /// The display name; may be empty.
    pub nick: String,
}

impl User {
    /// A record.
    pub fn new(username: impl Into<String>, nick: impl Into<String>) -> Self {
        Self {
            username: username.into(),
            nick: nick.into(),
        }
    }
}

#[derive(Default)]
struct UserFields<'a> {
    username: Slot<Cow<'a, str>>,
    nick: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for UserFields<'a> {
    fn member<A: MapAccess<'a>>(
        &mut self,
        name: &str,
        field: Field<'_, A>,
    ) -> Result<(), A::Error> {
        match name {
            "username" => field.str("username", &mut self.username),
            "nick" => field.str("nick", &mut self.nick),
            _ => field.skip(),
        }
    }
}

impl<'de> Deserialize<'de> for User {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let fields: UserFields<'de> = decode::from_map(from)?;
        let username = fields
            .username
            .take()
            .ok_or_else(|| serde::de::Error::missing_field("username"))?;
        let nick = fields.nick.take().unwrap_or_default();
        Ok(Self {
            username: username.into_owned(),
            nick: nick.into_owned(),
        })
    }
}

/// A channel. Other members of the record are ignored.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[non_exhaustive]
pub struct Channel {
    /// Its uid.
    pub uid: ChannelUid,
    /// Its name for people; may be empty.
    pub name: String,
    /// Its kind: `"dm"`, any other text, or nothing.
    pub tag: Option<String>,
}

impl Channel {
    /// A channel.
    pub fn new(uid: impl Into<ChannelUid>, name: impl Into<String>, tag: Option<&str>) -> Self {
        Self {
            uid: uid.into(),
            name: name.into(),
            tag: tag.map(str::to_owned),
        }
    }

    /// Whether it is a direct message channel: its tag is exactly `"dm"`.
    #[must_use]
    pub fn is_dm(&self) -> bool {
        self.tag.as_deref() == Some(DM_TAG)
    }
}

#[derive(Default)]
struct ChannelFields<'a> {
    uid: Slot<Cow<'a, str>>,
    name: Slot<Cow<'a, str>>,
    tag: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for ChannelFields<'a> {
    fn member<A: MapAccess<'a>>(
        &mut self,
        name: &str,
        field: Field<'_, A>,
    ) -> Result<(), A::Error> {
        match name {
            "uid" => field.str("uid", &mut self.uid),
            "name" => field.str("name", &mut self.name),
            "tag" => field.str("tag", &mut self.tag),
            _ => field.skip(),
        }
    }
}

impl<'de> Deserialize<'de> for Channel {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let fields: ChannelFields<'de> = decode::from_map(from)?;
        let uid = fields
            .uid
            .take()
            .ok_or_else(|| serde::de::Error::missing_field("uid"))?;
        Ok(Self {
            uid: ChannelUid::new(&*uid),
            name: fields.name.take().unwrap_or_default().into_owned(),
            tag: fields.tag.take().map(Cow::into_owned),
        })
    }
}

/// A message in a channel, owned. Its texts share one copy of the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Message {
    /// The text so far.
    pub message: SharedStr,
    /// The sender's login name.
    pub username: SharedStr,
    /// The sender's display name.
    pub user_nick: SharedStr,
    /// Where.
    pub channel_uid: SharedStr,
    /// Whether the text is complete.
    pub is_final: bool,
}

impl Message {
    /// A complete message, for example in a test.
    pub fn new(
        channel_uid: impl Into<SharedStr>,
        username: impl Into<SharedStr>,
        user_nick: impl Into<SharedStr>,
        message: impl Into<SharedStr>,
    ) -> Self {
        Self {
            message: message.into(),
            username: username.into(),
            user_nick: user_nick.into(),
            channel_uid: channel_uid.into(),
            is_final: true,
        }
    }

    /// Sets [`is_final`](Self::is_final).
    #[must_use]
    pub const fn with_final(mut self, is_final: bool) -> Self {
        self.is_final = is_final;
        self
    }

    /// Copies an event that was decoded from `text`.
    #[must_use]
    pub fn copied(event: &MessageEvent<'_>, text: &str) -> Self {
        let copy = FrameCopy::of(text);
        Self {
            message: copy.str(&event.message),
            username: copy.str(&event.username),
            user_nick: copy.str(&event.user_nick),
            channel_uid: copy.str(&event.channel_uid),
            is_final: event.is_final,
        }
    }

    /// The message as an event, for encoding.
    #[must_use]
    pub fn as_event(&self) -> MessageEvent<'_> {
        MessageEvent {
            message: Cow::Borrowed(&self.message),
            username: Cow::Borrowed(&self.username),
            user_nick: Cow::Borrowed(&self.user_nick),
            channel_uid: Cow::Borrowed(&self.channel_uid),
            is_final: self.is_final,
        }
    }
}

/// The value of a successful call, owned, with the frame that it came in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    data: SharedJson,
    frame: SharedJson,
}

impl Answer {
    /// Copies an answer that was decoded from `text`.
    pub(crate) fn copied(data: Option<&RawValue>, text: &str) -> Self {
        let copy = FrameCopy::of(text);
        Self {
            data: data.map_or(SharedJson::NULL, |data| copy.json(data)),
            frame: copy.whole_json(),
        }
    }

    /// The value, raw; `null` if there was none.
    #[must_use]
    pub const fn data(&self) -> &SharedJson {
        &self.data
    }

    /// Reads the value as a `T`.
    ///
    /// # Errors
    /// [`DecodeError`] if it is no `T`.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, DecodeError> {
        self.data.parse()
    }

    /// Reads the value as a list of at most [`Limits::max_items`] items.
    ///
    /// # Errors
    /// [`DecodeError`] if it is no such list.
    pub fn parse_list<'a, T: Deserialize<'a>>(
        &'a self,
        limits: &Limits,
    ) -> Result<Vec<T>, DecodeError> {
        decode::parse_list(self.data.get(), limits)
    }

    /// Any other top-level member of the frame, as JSON. Looks through the text, so ask once.
    #[must_use]
    pub fn extra(&self, name: &str) -> Option<&str> {
        find_member(self.frame.get(), name).map(RawValue::get)
    }
}

/// Whether a JSON value is an object with this member, and it is not null.
pub(crate) fn has_member(json: &str, name: &str) -> bool {
    find_member(json, name).is_some()
}
