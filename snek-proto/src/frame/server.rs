//! [`ServerFrame`]: an answer or an event, decoded once and viewed as either.

use std::borrow::Cow;
use std::fmt;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, LooseStr, Members, RawJson, Slot};
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
    /// Members hold what these fields cannot: encoding repeats `raw`.
    verbatim: bool,
    call_id: Option<WireId<'a>>,
    success: Option<bool>,
    pub(super) data: Option<RawJson<'a>>,
    error: Option<RawJson<'a>>,
    pub(super) event: Option<Cow<'a, str>>,
    pub(super) flat: FlatEvent<'a>,
}

/// The members that a message event has at top level.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FlatEvent<'a> {
    pub(super) message: Option<Cow<'a, str>>,
    pub(super) username: Option<Cow<'a, str>>,
    pub(super) user_nick: Option<Cow<'a, str>>,
    pub(super) channel_uid: Option<Cow<'a, str>>,
    pub(super) is_final: Option<bool>,
    /// The first member that is there with the wrong type. An answer may have such members.
    pub(super) wrong: Option<&'static str>,
}

#[derive(Default)]
struct Fields<'a> {
    call_id: Slot<RawJson<'a>>,
    success: Slot<LooseStr<'a>>,
    data: Slot<RawJson<'a>>,
    error: Slot<RawJson<'a>>,
    event: Slot<LooseStr<'a>>,
    message: Slot<LooseStr<'a>>,
    username: Slot<LooseStr<'a>>,
    user_nick: Slot<LooseStr<'a>>,
    channel_uid: Slot<LooseStr<'a>>,
    is_final: Slot<LooseStr<'a>>,
}

impl<'a> Members<'a> for Fields<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "callId" => field.raw("callId", &mut self.call_id),
            "success" => field.loose_str("success", &mut self.success),
            "data" => field.raw("data", &mut self.data),
            "error" => field.raw("error", &mut self.error),
            "event" => field.loose_str("event", &mut self.event),
            "message" => field.loose_str("message", &mut self.message),
            "username" => field.loose_str("username", &mut self.username),
            "user_nick" => field.loose_str("user_nick", &mut self.user_nick),
            "channel_uid" => field.loose_str("channel_uid", &mut self.channel_uid),
            "is_final" => field.loose_str("is_final", &mut self.is_final),
            _ => field.skip(),
        }
    }
}

/// Sorts loose members into typed ones and notes the first that does not fit.
#[derive(Default)]
struct Sorter {
    wrong: Option<&'static str>,
}

impl Sorter {
    fn str<'a>(&mut self, name: &'static str, slot: Slot<LooseStr<'a>>) -> Option<Cow<'a, str>> {
        match slot.take()? {
            LooseStr::Str(text) => Some(text),
            LooseStr::Bool(_) | LooseStr::Other => self.misfit(name),
        }
    }

    fn bool(&mut self, name: &'static str, slot: Slot<LooseStr<'_>>) -> Option<bool> {
        match slot.take()? {
            LooseStr::Bool(value) => Some(value),
            LooseStr::Str(_) | LooseStr::Other => self.misfit(name),
        }
    }

    fn misfit<T>(&mut self, name: &'static str) -> Option<T> {
        self.wrong = self.wrong.or(Some(name));
        None
    }
}

impl<'a> ServerFrame<'a> {
    /// Decodes a frame. A client skips a text that is none and goes on.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object or repeats a known member. Whether an event's own
    /// members fit is checked by [`as_event`](Self::as_event). A `callId` that is neither string,
    /// number nor boolean belongs to no call, and hides no event.
    pub fn decode(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        let fields: Fields<'a> = decode::object(text, limits)?;
        let mut flat = Sorter::default();
        let mut message = FlatEvent {
            message: flat.str("message", fields.message),
            username: flat.str("username", fields.username),
            user_nick: flat.str("user_nick", fields.user_nick),
            channel_uid: flat.str("channel_uid", fields.channel_uid),
            is_final: flat.bool("is_final", fields.is_final),
            wrong: None,
        };
        message.wrong = flat.wrong;
        let mut rest = Sorter::default();
        let success = rest.bool("success", fields.success);
        let event = rest.str("event", fields.event);
        let unknown = event
            .as_deref()
            .is_some_and(|event| !Event::is_known(event));
        let call_id = fields.call_id.take().map(WireId::new);
        let odd_id = matches!(call_id, Some(Err(_)));
        Ok(Self {
            raw: Some(Cow::Borrowed(text)),
            verbatim: unknown || odd_id || message.wrong.is_some() || rest.wrong.is_some(),
            call_id: call_id.and_then(Result::ok),
            success,
            data: fields.data.take(),
            error: fields.error.take(),
            event,
            flat: message,
        })
    }

    /// An answer with a value.
    #[must_use]
    pub fn success(call_id: WireId<'a>, data: impl Into<RawJson<'a>>) -> Self {
        Self {
            raw: None,
            verbatim: false,
            call_id: Some(call_id),
            success: Some(true),
            data: Some(data.into()),
            error: None,
            event: None,
            flat: FlatEvent {
                message: None,
                username: None,
                user_nick: None,
                channel_uid: None,
                is_final: None,
                wrong: None,
            },
        }
    }

    /// The id of the call that this may answer.
    #[must_use]
    pub const fn call_id(&self) -> Option<&WireId<'a>> {
        self.call_id.as_ref()
    }

    /// The event's name, if there is one.
    #[must_use]
    pub fn event_name(&self) -> Option<&str> {
        self.event.as_deref()
    }

    /// The text that the frame was decoded from, with members that the type does not hold.
    #[must_use]
    pub fn raw(&self) -> Option<&str> {
        self.raw.as_deref()
    }

    /// The frame as an answer. `None` without a `callId`.
    #[must_use]
    pub const fn as_reply(&self) -> Option<Reply<'_>> {
        match &self.call_id {
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
        ServerFrame {
            raw: self.raw.map(own),
            verbatim: self.verbatim,
            call_id: self.call_id.map(WireId::into_owned),
            success: self.success,
            data: self.data.map(RawJson::into_owned),
            error: self.error.map(RawJson::into_owned),
            event: self.event.map(own),
            flat: FlatEvent {
                message: self.flat.message.map(own),
                username: self.flat.username.map(own),
                user_nick: self.flat.user_nick.map(own),
                channel_uid: self.flat.channel_uid.map(own),
                is_final: self.flat.is_final,
                wrong: self.flat.wrong,
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
            && self.call_id == other.call_id
            && self.success == other.success
            && self.data == other.data
            && self.error == other.error
            && self.event == other.event
            && self.flat == other.flat
    }
}

/// Prints id and event name only: the rest is private text.
impl fmt::Debug for ServerFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerFrame")
            .field("call_id", &self.call_id)
            .field("success", &self.success)
            .field("event", &self.event)
            .finish_non_exhaustive()
    }
}

impl Serialize for ServerFrame<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let (true, Some(raw)) = (self.verbatim, &self.raw) {
            let raw: &RawValue = serde_json::from_str(raw).map_err(serde::ser::Error::custom)?;
            return raw.serialize(serializer);
        }
        let mut frame = serializer.serialize_map(None)?;
        if let Some(call_id) = &self.call_id {
            frame.serialize_entry("callId", call_id)?;
        }
        if let Some(success) = self.success {
            frame.serialize_entry("success", &success)?;
        }
        if let Some(event) = &self.event {
            frame.serialize_entry("event", event)?;
        }
        let flat = &self.flat;
        for (name, value) in [
            ("message", &flat.message),
            ("username", &flat.username),
            ("user_nick", &flat.user_nick),
            ("channel_uid", &flat.channel_uid),
        ] {
            if let Some(value) = value {
                frame.serialize_entry(name, value)?;
            }
        }
        if let Some(is_final) = flat.is_final {
            frame.serialize_entry("is_final", &is_final)?;
        }
        match &self.data {
            Some(data) => frame.serialize_entry("data", data)?,
            None if self.event.is_none() => frame.serialize_entry("data", &())?,
            None => {}
        }
        if let Some(error) = &self.error {
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
        self.frame.success
    }

    /// The value, raw. `None` if it is null or missing, which mean the same.
    #[must_use]
    pub const fn data(&self) -> Option<&'f RawJson<'f>> {
        self.frame.data.as_ref()
    }

    /// The top-level `error`, raw.
    #[must_use]
    pub const fn error(&self) -> Option<&'f RawJson<'f>> {
        self.frame.error.as_ref()
    }

    /// Whether the call failed: `success` is false, or absent while there is an `error`. An object
    /// in `data` that merely has an `error` key is a value like any other.
    #[must_use]
    pub fn is_failure(&self) -> bool {
        match self.frame.success {
            Some(success) => !success,
            None => self.frame.error.is_some(),
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
