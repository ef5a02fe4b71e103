//! What frames carry, owned: [`User`], [`Channel`], [`Message`], [`Answer`].

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{
    self, DecodeError, Field, FrameCopy, Members, Object, RawJson, SharedJson, SharedStr, Slot,
    find_member,
};
use serde::{Deserialize, Deserializer, Serialize};

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
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "username" => field.str("username", &mut self.username),
            "nick" => field.str("nick", &mut self.nick),
            _ => field.skip(),
        }
    }
}

impl User {
    fn from_fields(fields: UserFields<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            username: fields.username.require("username")?.into_owned(),
            nick: fields.nick.take().unwrap_or_default().into_owned(),
        })
    }

    /// Reads a record, with the checks of [`decode::parse`].
    ///
    /// # Errors
    /// [`DecodeError`] if it is none.
    pub fn parse(json: &str, limits: &Limits) -> Result<Self, DecodeError> {
        decode::parse_object(json, limits).and_then(Self::from_fields)
    }
}

/// Null is absent, as in every frame.
impl<'de> Deserialize<'de> for User {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            username: String,
            nick: Option<String>,
        }
        let Object(Wire { username, nick }) = Object::deserialize(from)?;
        Ok(Self {
            username,
            nick: nick.unwrap_or_default(),
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
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "uid" => field.str("uid", &mut self.uid),
            "name" => field.str("name", &mut self.name),
            "tag" => field.str("tag", &mut self.tag),
            _ => field.skip(),
        }
    }
}

impl Channel {
    fn from_fields(fields: ChannelFields<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            uid: ChannelUid::new(&*fields.uid.require("uid")?),
            name: fields.name.take().unwrap_or_default().into_owned(),
            tag: fields.tag.take().map(Cow::into_owned),
        })
    }

    /// Reads a list of at most [`Limits::max_items`] records, with the checks of
    /// [`decode::parse_list`].
    ///
    /// # Errors
    /// [`DecodeError`] if it is none.
    pub fn parse_list(json: &str, limits: &Limits) -> Result<Vec<Self>, DecodeError> {
        decode::parse_objects(json, limits, Self::from_fields)
    }
}

/// Null is absent, as in every frame.
impl<'de> Deserialize<'de> for Channel {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Wire {
            uid: String,
            name: Option<String>,
            tag: Option<String>,
        }
        let Object(Wire { uid, name, tag }) = Object::deserialize(from)?;
        Ok(Self {
            uid: ChannelUid::new(&*uid),
            name: name.unwrap_or_default(),
            tag,
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
    pub(crate) fn copied(data: Option<&RawJson<'_>>, text: &str) -> Self {
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
    pub fn extra(&self, name: &str) -> Option<RawJson<'_>> {
        find_member(self.frame.get(), name)
    }
}

/// Whether a JSON value is an object with this member, and it is not null.
pub(crate) fn has_member(json: &str, name: &str) -> bool {
    find_member(json, name).is_some()
}
