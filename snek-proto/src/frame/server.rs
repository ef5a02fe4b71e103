//! [`ServerFrame`]: an answer or an event.

use rpc_core::json::{self, LooseStr, lenient};
use rpc_core::{DecodeError, Json, Limits};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::event::Event;
use crate::error::RpcError;
use crate::id::{CallId, WireId};

/// One frame of the server. Whether it is an answer or an event depends on the receiver: a frame
/// whose `callId` belongs to a pending call is its answer, even if it also has an `event`; any
/// other frame with an `event` is an event, even with a foreign `callId`.
///
/// A member of the wrong type does not make the frame unreadable, because the frame may be of the
/// kind that does not need it.
///
/// ```
/// use snek_proto::Limits;
/// use snek_proto::frame::ServerFrame;
///
/// let text = r#"{"callId":"1","success":true,"data":{"pong":[]}}"#;
/// let frame = ServerFrame::decode(text, &Limits::default())?;
/// assert_eq!(frame.into_result()?.data().get(), r#"{"pong":[]}"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct ServerFrame {
    pub(super) members: Members,
    /// The whole frame, if it may have more than the known members.
    pub(super) raw: Option<Json>,
    /// Whether to treat `new_message` as an unknown event.
    pub(super) strict: bool,
}

/// The known members of all frames.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Members {
    #[serde(rename = "callId", skip_serializing_if = "Option::is_none")]
    call_id: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    success: Option<LooseStr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) event: Option<LooseStr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<LooseStr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) username: Option<LooseStr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) user_nick: Option<LooseStr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) channel_uid: Option<LooseStr>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) is_final: Option<LooseStr>,
    #[serde(default, deserialize_with = "lenient::present")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data: Option<Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Json>,
}

impl Members {
    /// Returns whether these are all members of the text that a caller can ask for.
    fn are_all_of(&self, text: &str, strict: bool) -> bool {
        let is_text = |it: &Option<LooseStr>| matches!(it, None | Some(LooseStr::Str(_)));
        let is_flag = |it: &Option<LooseStr>| matches!(it, None | Some(LooseStr::Bool(_)));
        let texts = is_text(&self.message) && is_text(&self.username) && is_text(&self.user_nick);
        let texts = texts && is_text(&self.event) && is_text(&self.channel_uid);
        if !texts || !is_flag(&self.success) || !is_flag(&self.is_final) {
            return false;
        }
        match (&self.call_id, &self.event) {
            (Some(id), _) => text.trim_ascii().len() == self.shortest_answer(id),
            (None, Some(LooseStr::Str(name))) => match &**name {
                "message" | "set_typing" | "join" | "leave" => true,
                name => name == "new_message" && !strict,
            },
            (None, _) => true,
        }
    }

    /// Returns the length of the shortest answer with these members. A longer text may have other
    /// members.
    fn shortest_answer(&self, id: &Json) -> usize {
        let member = |name: &str, value: usize| r#""":,"#.len() + name.len() + value;
        let success = match self.success {
            Some(LooseStr::Bool(true)) => member("success", 4),
            Some(_) => member("success", 5),
            None => 0,
        };
        let data = self.data.as_ref();
        let data = data.map_or(0, |data| member("data", data.get().len()));
        // Two braces, and a comma less than members.
        1 + member("callId", id.get().len()) + success + data
    }
}

impl ServerFrame {
    /// Decodes a frame. A client skips text that does not decode. The platform's nested
    /// `new_message` form is read as a message.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not an object or repeats a known member.
    /// [`into_event`](Self::into_event) checks the members of an event. A `callId` that is not a
    /// string, number or boolean belongs to no call, and does not hide an event.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        Self::read(text, limits, false)
    }

    /// Decodes a frame like [`decode`](Self::decode), but treats `new_message` as an unknown event.
    ///
    /// # Errors
    /// As for [`decode`](Self::decode).
    pub fn decode_strict(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        Self::read(text, limits, true)
    }

    fn read(text: &str, limits: &Limits, strict: bool) -> Result<Self, DecodeError> {
        let keep = |members: &Members| !members.are_all_of(text, strict);
        let (mut members, raw) = json::decode_keeping(text, limits, keep)?;
        if members.event.is_none() {
            members.data.get_or_insert(Json::NULL);
        }
        Ok(Self {
            members,
            raw,
            strict,
        })
    }

    /// Creates an answer with a value: `{"callId", "success": true, "data"}`.
    #[must_use]
    pub fn success(call_id: WireId, data: impl Into<Json>) -> Self {
        Self::answer(call_id, true, data.into())
    }

    /// Creates an answer with an error text: `{"callId", "success": false, "data": {"error"}}`.
    #[must_use]
    pub fn failure(call_id: WireId, error: &str) -> Self {
        Self::answer(call_id, false, serde_json::json!({ "error": error }).into())
    }

    fn answer(call_id: WireId, success: bool, data: Json) -> Self {
        let members = Members {
            call_id: Some(call_id.into()),
            success: Some(LooseStr::Bool(success)),
            data: Some(data),
            ..Members::default()
        };
        Self {
            members,
            raw: None,
            strict: false,
        }
    }

    /// Returns the id of the call that this may answer.
    #[must_use]
    pub fn call_id(&self) -> Option<WireId> {
        WireId::new(self.members.call_id.clone()?).ok()
    }

    /// The id of the call that this may answer, if it has the form of this client's ids.
    pub(crate) fn own_call_id(&self) -> Option<CallId> {
        let id = self.members.call_id.as_ref()?;
        // It comes back as it was sent, unless the server writes it in its own way.
        let inner = id.get().strip_prefix('"');
        let inner = inner.and_then(|it| it.strip_suffix('"'));
        let as_sent = inner.and_then(CallId::parse);
        as_sent.or_else(|| CallId::parse(&id.as_id()?))
    }

    /// Whether the call failed: `success` is false, or absent while there is an `error`. An object
    /// in `data` that merely has an `error` key is a value like any other.
    const fn is_failure(&self) -> bool {
        match self.members.success {
            Some(LooseStr::Bool(success)) => !success,
            _ => self.members.error.is_some(),
        }
    }

    /// Returns the frame as the answer to a call.
    ///
    /// # Errors
    /// [`RpcError`] if the call failed: `success` is false, or absent while there is an `error`.
    pub fn into_result(self) -> Result<CallValue, RpcError> {
        if self.is_failure() {
            return Err(self.into_error());
        }
        Ok(CallValue {
            data: self.members.data.unwrap_or_default(),
            frame: self.raw,
        })
    }

    /// Returns the frame as the answer to a `login`. Without a `username`, an `error` beside or in
    /// the value is a failure, even if `success` is true.
    ///
    /// # Errors
    /// [`RpcError`] if the login failed.
    pub fn into_login_result(self) -> Result<CallValue, RpcError> {
        let has = |name| (self.members.data.as_ref()).is_some_and(|it| it.member(name).is_some());
        if (self.members.error.is_some() || has("error")) && !has("username") {
            return Err(self.into_error());
        }
        self.into_result()
    }

    fn into_error(self) -> RpcError {
        let data = self.members.data.filter(|data| !data.is_null());
        RpcError::from_answer(data, self.members.error)
    }

    /// Returns the frame as an event, or `None` if it has no `event`.
    ///
    /// # Errors
    /// [`DecodeError`] if the event is known and its members are invalid.
    #[must_use]
    pub fn into_event(self) -> Option<Result<Event, DecodeError>> {
        Event::read(self)
    }
}

// Prints only id and event name: the rest is private.
rpc_core::debug_fields!([] ServerFrame, this => {
    call_id: this.call_id(),
    success: this.members.success,
    event: this.members.event.clone().and_then(LooseStr::text),
});

impl Serialize for ServerFrame {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match &self.raw {
            Some(raw) => raw.serialize(to),
            None => self.members.serialize(to),
        }
    }
}

impl<'de> Deserialize<'de> for ServerFrame {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let limits = Limits::unlimited();
        Self::decode(Json::deserialize(from)?.get(), &limits).map_err(D::Error::custom)
    }
}

/// The value of a successful call, and the other members of its frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallValue {
    data: Json,
    /// The frame, if it may have other members.
    frame: Option<Json>,
}

impl CallValue {
    /// Reads the answer to a call that succeeded, as servers of this crate write it.
    pub(crate) fn in_order(text: &str, limits: &Limits) -> Option<(CallId, Self)> {
        let mut object = json::InOrder::new(text, limits)?;
        let id = CallId::parse(object.text("callId")?)?;
        object.raw("success").filter(|it| *it == "true")?;
        let data = object.json("data")?;
        let frame = None;
        object.is_end().then_some((id, Self { data, frame }))
    }

    /// Returns the raw value; `null` if there was none.
    #[must_use]
    pub const fn data(&self) -> &Json {
        &self.data
    }

    /// Reads the value as a `T`.
    ///
    /// # Errors
    /// [`DecodeError`] if it is not a `T`.
    pub fn parse<'a, T: Deserialize<'a>>(&'a self) -> Result<T, DecodeError> {
        self.data.parse()
    }

    /// Returns any other top-level member of the frame. Searches the text, so call it once.
    #[must_use]
    pub fn extra(&self, name: &str) -> Option<Json> {
        self.frame.as_ref()?.member(name)
    }
}
