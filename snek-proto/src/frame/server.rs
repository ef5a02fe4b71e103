//! [`ServerFrame`]: an answer or an event, decoded once and viewed as either.

use std::borrow::Cow;
use std::fmt;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, Members, RawJson, Slot};
use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::value::RawValue;

use super::event::Event;
use crate::error::RpcError;
use crate::id::WireId;

/// One frame of the server. Whether it is an answer or an event depends on who asks: a frame whose
/// `callId` belongs to a pending call is its answer, even if it has an `event` too; any other
/// frame with an `event` is an event, even with a foreign `callId`.
#[derive(Clone)]
pub struct ServerFrame<'a> {
    pub(super) raw: Option<Cow<'a, str>>,
    /// Members hold what the fields cannot: encoding repeats `raw`.
    verbatim: bool,
    pub(super) fields: Fields<'a>,
}

/// The known members of all frames. One that does not fit its type is null here.
#[derive(Clone, Default)]
pub(super) struct Fields<'a> {
    pub(super) call_id: Slot<WireId<'a>>,
    pub(super) success: Slot<bool>,
    pub(super) data: Slot<RawJson<'a>>,
    pub(super) error: Slot<RawJson<'a>>,
    pub(super) event: Slot<Cow<'a, str>>,
    pub(super) message: Slot<Cow<'a, str>>,
    pub(super) username: Slot<Cow<'a, str>>,
    pub(super) user_nick: Slot<Cow<'a, str>>,
    pub(super) channel_uid: Slot<Cow<'a, str>>,
    pub(super) is_final: Slot<bool>,
    /// The first member of a message event that does not fit. An answer may have such members.
    pub(super) wrong: FirstMisfit,
    /// The first of the other members that does not fit.
    odd: FirstMisfit,
}

impl<'a> Members<'a> for Fields<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "callId" => field.read("callId", &mut self.call_id, |value| {
                let id = value.raw()?.map(WireId::new).transpose();
                // An odd id belongs to no call.
                Ok(id.unwrap_or_else(|_| misfit(&mut self.odd, "callId")))
            }),
            "data" => field.raw("data", &mut self.data),
            "error" => field.raw("error", &mut self.error),
            "success" => flag(field, "success", &mut self.success, &mut self.odd),
            "event" => text(field, "event", &mut self.event, &mut self.odd),
            "message" => text(field, "message", &mut self.message, &mut self.wrong),
            "username" => text(field, "username", &mut self.username, &mut self.wrong),
            "user_nick" => text(field, "user_nick", &mut self.user_nick, &mut self.wrong),
            "channel_uid" => text(field, "channel_uid", &mut self.channel_uid, &mut self.wrong),
            "is_final" => flag(field, "is_final", &mut self.is_final, &mut self.wrong),
            _ => field.skip(),
        }
    }
}

type FirstMisfit = Option<&'static str>;

/// Notes a member that does not fit its type.
#[cold]
fn misfit<T>(first: &mut FirstMisfit, name: &'static str) -> Option<T> {
    first.get_or_insert(name);
    None
}

/// A text. A value of another type is noted as a misfit, and makes no frame unreadable.
#[inline]
fn text<'a>(
    field: Field<'_, 'a>,
    name: &'static str,
    slot: &mut Slot<Cow<'a, str>>,
    first: &mut FirstMisfit,
) -> Result<(), DecodeError> {
    field.read(name, slot, |value| match value.first_byte() {
        Some(b'"' | b'n') => value.str(),
        _ => value.skip().map(|()| misfit(first, name)),
    })
}

/// The same for `true` and `false`.
fn flag(
    field: Field<'_, '_>,
    name: &'static str,
    slot: &mut Slot<bool>,
    first: &mut FirstMisfit,
) -> Result<(), DecodeError> {
    field.read(name, slot, |value| match value.first_byte() {
        Some(b't' | b'f' | b'n') => value.bool(),
        _ => value.skip().map(|()| misfit(first, name)),
    })
}

impl<'a> ServerFrame<'a> {
    /// Decodes a frame. A client skips a text that is none and goes on.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object or repeats a known member. Whether an event's own
    /// members fit is checked by [`as_event`](Self::as_event). A `callId` that is neither string,
    /// number nor boolean belongs to no call, and hides no event.
    pub fn decode(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        let mut frame = Self {
            raw: Some(Cow::Borrowed(text)),
            verbatim: false,
            fields: Fields::default(),
        };
        decode::object_into(text, limits, &mut frame.fields)?;
        let unknown = frame
            .event_name()
            .is_some_and(|name| !Event::is_known(name));
        frame.verbatim = unknown || frame.fields.odd.is_some() || frame.fields.wrong.is_some();
        Ok(frame)
    }

    /// An answer with a value.
    #[must_use]
    pub fn success(call_id: WireId<'a>, data: impl Into<RawJson<'a>>) -> Self {
        Self {
            raw: None,
            verbatim: false,
            fields: Fields {
                call_id: call_id.into(),
                success: true.into(),
                data: data.into().into(),
                ..Fields::default()
            },
        }
    }

    /// The id of the call that this may answer.
    #[must_use]
    pub const fn call_id(&self) -> Option<&WireId<'a>> {
        self.fields.call_id.get()
    }

    /// The event's name, if there is one.
    #[must_use]
    pub fn event_name(&self) -> Option<&str> {
        self.fields.event.get().map(|event| &**event)
    }

    /// The text that the frame was decoded from, with members that the type does not hold.
    #[must_use]
    pub fn raw(&self) -> Option<&str> {
        self.raw.as_deref()
    }

    /// The frame as an answer. `None` without a `callId`.
    #[must_use]
    pub const fn as_reply(&self) -> Option<Reply<'_>> {
        match self.fields.call_id.get() {
            Some(call_id) => Some(Reply {
                call_id,
                frame: self,
            }),
            None => None,
        }
    }

    /// The frame as an event. `None` without an `event`. The platform's nested `new_message` form
    /// is read as a message.
    ///
    /// # Errors
    /// [`DecodeError`] if the event is known and its members do not fit.
    #[must_use]
    pub fn as_event(&self) -> Option<Result<Event<'_>, DecodeError>> {
        Event::read(self, true)
    }

    /// As [`as_event`](Self::as_event), but `new_message` is an unknown event.
    ///
    /// # Errors
    /// [`DecodeError`] if the event is known and its members do not fit.
    #[must_use]
    pub fn as_event_strict(&self) -> Option<Result<Event<'_>, DecodeError>> {
        Event::read(self, false)
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ServerFrame<'static> {
        fn own(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        let fields = self.fields;
        ServerFrame {
            raw: self.raw.map(own),
            verbatim: self.verbatim,
            fields: Fields {
                call_id: fields.call_id.map(WireId::into_owned),
                success: fields.success,
                data: fields.data.map(RawJson::into_owned),
                error: fields.error.map(RawJson::into_owned),
                event: fields.event.map(own),
                message: fields.message.map(own),
                username: fields.username.map(own),
                user_nick: fields.user_nick.map(own),
                channel_uid: fields.channel_uid.map(own),
                is_final: fields.is_final,
                wrong: fields.wrong,
                odd: fields.odd,
            },
        }
    }
}

/// Equal if the known members are, and for a frame that is repeated as it came, if its text is.
impl PartialEq for ServerFrame<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.verbatim == other.verbatim
            && (!self.verbatim
                || self.raw().map(str::trim_ascii) == other.raw().map(str::trim_ascii))
            && self.fields == other.fields
    }
}

/// Null is absent.
impl PartialEq for Fields<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.call_id.get() == other.call_id.get()
            && self.success.get() == other.success.get()
            && self.data.get() == other.data.get()
            && self.error.get() == other.error.get()
            && self.event.get() == other.event.get()
            && self.message.get() == other.message.get()
            && self.username.get() == other.username.get()
            && self.user_nick.get() == other.user_nick.get()
            && self.channel_uid.get() == other.channel_uid.get()
            && self.is_final.get() == other.is_final.get()
            && self.wrong == other.wrong
    }
}

/// Prints id and event name only: the rest is private text.
impl fmt::Debug for ServerFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerFrame")
            .field("call_id", &self.call_id())
            .field("success", &self.fields.success.get())
            .field("event", &self.event_name())
            .finish_non_exhaustive()
    }
}

impl Serialize for ServerFrame<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let (true, Some(raw)) = (self.verbatim, &self.raw) {
            let raw: &RawValue = serde_json::from_str(raw).map_err(serde::ser::Error::custom)?;
            return raw.serialize(serializer);
        }
        let fields = &self.fields;
        let mut frame = serializer.serialize_map(None)?;
        if let Some(call_id) = fields.call_id.get() {
            frame.serialize_entry("callId", call_id)?;
        }
        if let Some(success) = fields.success.get() {
            frame.serialize_entry("success", success)?;
        }
        for (name, value) in [
            ("event", &fields.event),
            ("message", &fields.message),
            ("username", &fields.username),
            ("user_nick", &fields.user_nick),
            ("channel_uid", &fields.channel_uid),
        ] {
            if let Some(value) = value.get() {
                frame.serialize_entry(name, value)?;
            }
        }
        if let Some(is_final) = fields.is_final.get() {
            frame.serialize_entry("is_final", is_final)?;
        }
        match fields.data.get() {
            Some(data) => frame.serialize_entry("data", data)?,
            None if fields.event.get().is_none() => frame.serialize_entry("data", &())?,
            None => {}
        }
        if let Some(error) = fields.error.get() {
            frame.serialize_entry("error", error)?;
        }
        frame.end()
    }
}

/// A [`ServerFrame`] seen as the answer to a call.
#[derive(Clone, Copy, Debug)]
pub struct Reply<'f> {
    call_id: &'f WireId<'f>,
    frame: &'f ServerFrame<'f>,
}

impl<'f> Reply<'f> {
    /// The id of the call.
    #[must_use]
    pub const fn call_id(&self) -> &'f WireId<'f> {
        self.call_id
    }

    /// What the server says about success; `None` if it does not.
    #[must_use]
    pub const fn success(&self) -> Option<bool> {
        self.frame.fields.success.get().copied()
    }

    /// The value, raw. `None` if it is null or missing, which mean the same.
    #[must_use]
    pub const fn data(&self) -> Option<&'f RawJson<'f>> {
        self.frame.fields.data.get()
    }

    /// The top-level `error`, raw.
    #[must_use]
    pub const fn error(&self) -> Option<&'f RawJson<'f>> {
        self.frame.fields.error.get()
    }

    /// Whether the call failed: `success` is false, or absent while there is an `error`. An object
    /// in `data` that merely has an `error` key is a value like any other.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self.success() {
            Some(success) => !success,
            None => self.error().is_some(),
        }
    }

    /// The value, or the failure.
    ///
    /// # Errors
    /// [`RpcError`] if the call [failed](Self::is_failure).
    pub fn result(&self) -> Result<Option<&'f RawJson<'f>>, RpcError> {
        if self.is_failure() {
            Err(RpcError::from_reply(self))
        } else {
            Ok(self.data())
        }
    }

    /// The value of a `login`. Here an `error` beside or in the value counts, even in a success, if
    /// there is no `username`.
    ///
    /// # Errors
    /// [`RpcError`] if the login failed.
    pub fn login_result(&self) -> Result<Option<&'f RawJson<'f>>, RpcError> {
        let data = self.result()?;
        let has = |name| data.is_some_and(|data| super::types::has_member(data.get(), name));
        if (self.error().is_some() || has("error")) && !has("username") {
            Err(RpcError::from_reply(self))
        } else {
            Ok(data)
        }
    }

    /// Any other top-level member, raw. Looks through the text, so ask once.
    #[must_use]
    pub fn extra(&self, name: &str) -> Option<RawJson<'f>> {
        decode::find_member(self.frame.raw.as_deref()?, name)
    }
}

/// A successful answer, for encoding: `{"callId", "success": true, "data"}`.
#[derive(Clone, Debug, Serialize)]
pub struct Success<'a, D> {
    #[serde(rename = "callId")]
    call_id: &'a WireId<'a>,
    success: bool,
    data: D,
}

impl<'a, D: Serialize> Success<'a, D> {
    /// An answer with a value.
    pub const fn new(call_id: &'a WireId<'a>, data: D) -> Self {
        Self {
            call_id,
            success: true,
            data,
        }
    }
}

/// A failed answer, for encoding: `{"callId", "success": false, "data": {"error"}}`.
#[derive(Clone, Debug, Serialize)]
pub struct Failure<'a> {
    #[serde(rename = "callId")]
    call_id: &'a WireId<'a>,
    success: bool,
    data: FailureData<'a>,
}

#[derive(Clone, Debug, Serialize)]
struct FailureData<'a> {
    error: &'a str,
}

impl<'a> Failure<'a> {
    /// An answer with an error text.
    #[must_use]
    pub const fn new(call_id: &'a WireId<'a>, error: &'a str) -> Self {
        Self {
            call_id,
            success: false,
            data: FailureData { error },
        }
    }
}
