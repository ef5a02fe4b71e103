//! [`Response`]: what a client answers to a message.

use std::borrow::Cow;

use rpc_core::decode::{
    DecodeError, DecodeErrorKind, Field, FrameCopy, Members, RawJson, Reader, SharedStr, Slot,
};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::client::Envelope;

/// A client's response to a message; there may be several to one message. SmartHole specification,
/// *Response*.
///
/// As JSON it is the whole frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response<S = SharedStr> {
    /// The id of the message.
    pub message_id: S,
    /// What the client says.
    pub answer: Answer<S>,
}

/// What a client says to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer<S = SharedStr> {
    /// It takes the message.
    Ack,
    /// It does not take the message.
    Reject {
        /// Why.
        reason: Option<S>,
    },
    /// Something to show to the user.
    Notification(Notification<S>),
    /// An answer that this crate does not know. A server ignores it.
    Unknown {
        /// Its type.
        tag: S,
        /// Its payload as JSON; `None` if there is none.
        payload: Option<S>,
    },
}

/// Something to show to the user. SmartHole specification, *Notification*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Notification<S = SharedStr> {
    /// The title; the client's name if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<S>,
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<S>,
    /// How important it is; normal if it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

/// How important a notification is. The specification has these three, and another makes a response
/// invalid, so the enum is exhaustive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Priority {
    /// `low`.
    Low,
    /// `normal`.
    #[default]
    Normal,
    /// `high`.
    High,
}

impl Priority {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Normal => "normal",
            Self::High => "high",
        }
    }

    /// The priority of this name.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        [Self::Low, Self::Normal, Self::High]
            .into_iter()
            .find(|priority| priority.as_str() == text)
    }
}

impl<S> Response<S> {
    /// An answer to this message.
    pub fn new(message_id: impl Into<S>, answer: Answer<S>) -> Self {
        Self {
            message_id: message_id.into(),
            answer,
        }
    }
}

impl<S> Answer<S> {
    /// A rejection with or without a reason.
    #[must_use]
    pub const fn reject(reason: Option<S>) -> Self {
        Self::Reject { reason }
    }
}

impl<S: AsRef<str>> Answer<S> {
    /// The type on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Ack => "ack",
            Self::Reject { .. } => "reject",
            Self::Notification(_) => "notification",
            Self::Unknown { tag, .. } => tag.as_ref(),
        }
    }
}

impl<S> Notification<S> {
    /// A notification with this text, and the client's name as its title.
    pub fn new(body: impl Into<S>) -> Self {
        Self {
            title: None,
            body: Some(body.into()),
            priority: None,
        }
    }

    /// Sets [`title`](Self::title).
    #[must_use]
    pub fn with_title(mut self, title: impl Into<S>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// Sets [`priority`](Self::priority).
    #[must_use]
    pub fn with_priority(mut self, priority: Priority) -> Self {
        self.priority = Some(priority);
        self
    }
}

impl<S: AsRef<str>> Notification<S> {
    /// The same notification, borrowed.
    #[must_use]
    pub fn borrowed(&self) -> Notification<&str> {
        Notification {
            title: self.title.as_ref().map(AsRef::as_ref),
            body: self.body.as_ref().map(AsRef::as_ref),
            priority: self.priority,
        }
    }

    /// Whether there is nothing to show: neither a title nor a text, or empty ones.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        let blank = |text: &Option<S>| text.as_ref().is_none_or(|text| text.as_ref().is_empty());
        blank(&self.title) && blank(&self.body)
    }
}

impl<'a> Response<Cow<'a, str>> {
    /// A copy whose texts are pieces of one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> Response {
        let piece = |text: &Option<Cow<'a, str>>| text.as_deref().map(|text| copy.str(text));
        Response {
            message_id: copy.str(&self.message_id),
            answer: match &self.answer {
                Answer::Ack => Answer::Ack,
                Answer::Reject { reason } => Answer::Reject {
                    reason: piece(reason),
                },
                Answer::Notification(shown) => Answer::Notification(Notification {
                    title: piece(&shown.title),
                    body: piece(&shown.body),
                    priority: shown.priority,
                }),
                Answer::Unknown { tag, payload } => Answer::Unknown {
                    tag: copy.str(tag),
                    payload: piece(payload),
                },
            },
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Response<Cow<'static, str>> {
        fn own(text: Cow<'_, str>) -> Cow<'static, str> {
            Cow::Owned(text.into_owned())
        }
        Response {
            message_id: own(self.message_id),
            answer: match self.answer {
                Answer::Ack => Answer::Ack,
                Answer::Reject { reason } => Answer::Reject {
                    reason: reason.map(own),
                },
                Answer::Notification(shown) => Answer::Notification(Notification {
                    title: shown.title.map(own),
                    body: shown.body.map(own),
                    priority: shown.priority,
                }),
                Answer::Unknown { tag, payload } => Answer::Unknown {
                    tag: own(tag),
                    payload: payload.map(own),
                },
            },
        }
    }
}

/// The member `payload` of a response: read if the type was known by then, else raw.
enum Payload<'a> {
    Read(Answer<Cow<'a, str>>),
    Raw(RawJson<'a>),
}

impl<'a> Payload<'a> {
    /// `None` is null.
    fn read(tag: Option<&str>, payload: &mut Reader<'a>) -> Result<Option<Self>, DecodeError> {
        let answer = match tag {
            Some("reject") => object(payload, RejectMembers::answer)?,
            Some("notification") => object(payload, NotificationMembers::answer)?,
            _ => return Ok(Some(Self::Raw(payload.raw_or_null()?))),
        };
        Ok(answer.map(Self::Read))
    }
}

/// A payload that is an object or null, made an answer.
fn object<'a, M: Members<'a> + Default>(
    payload: &mut Reader<'a>,
    answer: impl FnOnce(M) -> Answer<Cow<'a, str>>,
) -> Result<Option<Answer<Cow<'a, str>>>, DecodeError> {
    if !matches!(payload.first_byte(), Some(b'{' | b'n')) {
        return Err(payload.fail(DecodeErrorKind::NotAnObject));
    }
    Ok(payload.object()?.map(answer))
}

#[derive(Default)]
pub(super) struct ResponseMembers<'a> {
    message_id: Slot<Cow<'a, str>>,
    tag: Slot<Cow<'a, str>>,
    payload: Slot<Payload<'a>>,
}

impl<'a> Members<'a> for ResponseMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "messageId" => field.id("messageId", &mut self.message_id),
            "type" => field.str("type", &mut self.tag),
            "payload" => {
                let tag = self.tag.get().map(|tag| &**tag);
                field.read("payload", &mut self.payload, |payload| {
                    Payload::read(tag, payload)
                })
            }
            _ => field.skip(),
        }
    }
}

impl<'a> ResponseMembers<'a> {
    /// The response whose payload these are, in the frame `text`.
    pub(super) fn read(self, text: &'a str) -> Result<Response<Cow<'a, str>>, DecodeError> {
        let message_id = self.message_id.require("messageId")?;
        let tag = self.tag.require("type")?;
        let answer = match (&*tag, self.payload.take()) {
            ("ack", _) => Answer::Ack,
            ("reject" | "notification", None) => return Err(DecodeError::missing("payload")),
            (_, Some(Payload::Read(answer))) => answer,
            ("reject" | "notification", Some(Payload::Raw(raw))) => {
                let read = Payload::read(Some(&tag), &mut Reader::back_to(&raw, text));
                match read.map_err(|error| error.under("payload"))? {
                    Some(Payload::Read(answer)) => answer,
                    _ => return Err(DecodeError::missing("payload")),
                }
            }
            (_, payload) => Answer::Unknown {
                payload: match payload {
                    Some(Payload::Raw(raw)) => Some(raw.into_text()),
                    _ => None,
                },
                tag,
            },
        };
        Ok(Response { message_id, answer })
    }
}

#[derive(Default)]
struct RejectMembers<'a> {
    reason: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for RejectMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "reason" => field.str("reason", &mut self.reason),
            _ => field.skip(),
        }
    }
}

impl<'a> RejectMembers<'a> {
    fn answer(self) -> Answer<Cow<'a, str>> {
        Answer::Reject {
            reason: self.reason.take(),
        }
    }
}

#[derive(Default)]
struct NotificationMembers<'a> {
    title: Slot<Cow<'a, str>>,
    body: Slot<Cow<'a, str>>,
    priority: Slot<Priority>,
}

impl<'a> Members<'a> for NotificationMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "title" => field.str("title", &mut self.title),
            "body" => field.str("body", &mut self.body),
            "priority" => field.read("priority", &mut self.priority, |priority| {
                let Some(word) = priority.str()? else {
                    return Ok(None);
                };
                let known = Priority::parse(&word);
                known.map(Some).ok_or_else(|| bad_priority(priority))
            }),
            _ => field.skip(),
        }
    }
}

fn bad_priority(at: &Reader<'_>) -> DecodeError {
    at.fail(DecodeErrorKind::BadValue {
        member: "priority",
        expected: "low, normal or high",
    })
}

impl<'a> NotificationMembers<'a> {
    fn answer(self) -> Answer<Cow<'a, str>> {
        Answer::Notification(Notification {
            title: self.title.take(),
            body: self.body.take(),
            priority: self.priority.take(),
        })
    }
}

/// The payload of a response, for encoding.
struct Body<'f, S>(&'f Response<S>);

impl<S: AsRef<str>> Serialize for Body<'_, S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut body = serializer.serialize_struct("Response", 3)?;
        body.serialize_field("messageId", self.0.message_id.as_ref())?;
        body.serialize_field("type", self.0.answer.name())?;
        match &self.0.answer {
            Answer::Ack => body.serialize_field("payload", &Reject::<&str>(&None))?,
            Answer::Reject { reason } => body.serialize_field("payload", &Reject(reason))?,
            Answer::Notification(shown) => body.serialize_field("payload", &Shown(shown))?,
            Answer::Unknown { payload, .. } => {
                if let Some(json) = payload.as_ref().and_then(|json| raw(json.as_ref())) {
                    body.serialize_field("payload", &json)?;
                }
            }
        }
        body.end()
    }
}

/// A payload of its own; nothing is written of a text that is no JSON.
fn raw(json: &str) -> Option<RawJson<'_>> {
    RawJson::new(json).ok()
}

/// `{}`, or `{"reason"}`.
struct Reject<'f, S>(&'f Option<S>);

impl<S: AsRef<str>> Serialize for Reject<'_, S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut payload = serializer.serialize_struct("Reject", 1)?;
        if let Some(reason) = self.0 {
            payload.serialize_field("reason", reason.as_ref())?;
        }
        payload.end()
    }
}

struct Shown<'f, S>(&'f Notification<S>);

impl<S: AsRef<str>> Serialize for Shown<'_, S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        Notification::<&str>::serialize(&self.0.borrowed(), serializer)
    }
}

/// Writes the whole frame.
impl<S: AsRef<str>> Serialize for Response<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        Envelope::new("response", Body(self)).serialize(serializer)
    }
}
