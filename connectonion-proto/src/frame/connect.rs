//! Who the client is and what it may do: [`Connect`], [`OnboardSubmit`], [`AdminRequest`],
//! [`SessionQuery`].

use std::borrow::Cow;

use rpc_core::decode::{DecodeError, FrameCopy, RawJson, SharedJson, SharedStr};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::body::Body;
use super::json::{Json, last_member};
use super::keep::Keep;
use super::number::Number;
use super::signed::Signed;
use super::word::{AdminAction, Word};

/// The first frame of a client: it says who it is and which session it wants, and hands over the
/// conversation. ConnectOnion specification, *CONNECT*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "CONNECT")]
#[non_exhaustive]
pub struct Connect<S = SharedStr, J = SharedJson> {
    /// The session to go on with; `None` (and an empty text, which is read as that) for a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<S>,
    /// The id of the last event that the client has shown. What came after it is sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_msg_id: Option<S>,
    /// The conversation as the client has it: a [`Session`](super::Session), as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<J>,
    /// Who it is, and the proof.
    #[serde(flatten)]
    pub signed: Signed<S, J>,
    /// What a newer client says about itself, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<J>,
}

impl<S, J: Json> Connect<S, J> {
    /// Whether the client signs each of its commands, and wants no others to be taken:
    /// `signed_commands` of a signed payload is 1.
    #[must_use]
    pub fn signs_commands(&self) -> bool {
        let wish = self.signed.number("signed_commands");
        self.signed.signature.is_some() && wish.is_some_and(|wish| wish.as_f64() == 1.0)
    }
}

impl Connect {
    /// A CONNECT for a new session.
    #[must_use]
    pub const fn new(signed: Signed) -> Self {
        Self {
            session_id: None,
            last_msg_id: None,
            session: None,
            signed,
            protocol: None,
        }
    }

    /// Sets [`session_id`](Self::session_id).
    #[must_use]
    pub fn with_session_id(mut self, id: impl Into<SharedStr>) -> Self {
        self.session_id = Some(id.into());
        self
    }

    /// Sets [`last_msg_id`](Self::last_msg_id).
    #[must_use]
    pub fn with_last_msg_id(mut self, id: impl Into<SharedStr>) -> Self {
        self.last_msg_id = Some(id.into());
        self
    }

    /// Sets [`session`](Self::session).
    #[must_use]
    pub fn with_session(mut self, session: SharedJson) -> Self {
        self.session = Some(session);
        self
    }
}

impl<'a> Connect<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            session_id: body.id("session_id")?.filter(|id| !id.is_empty()),
            last_msg_id: body.id("last_msg_id")?,
            session: body.object("session")?,
            signed: Signed::read(body)?,
            protocol: body.raw("protocol")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> Connect<K::Text, K::Json> {
        Connect {
            session_id: how.texts(&self.session_id),
            last_msg_id: how.texts(&self.last_msg_id),
            session: how.jsons(&self.session),
            signed: self.signed.keep(how),
            protocol: how.jsons(&self.protocol),
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> Connect {
        self.keep(copy)
    }
}

/// What a stranger offers to become a contact: `invite_code` or `payment` in the signed payload.
/// ConnectOnion specification, *Trust Gate*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "ONBOARD_SUBMIT")]
#[non_exhaustive]
pub struct OnboardSubmit<S = SharedStr, J = SharedJson> {
    /// What is offered, by whom, and the proof.
    #[serde(flatten)]
    pub signed: Signed<S, J>,
}

impl OnboardSubmit {
    /// An offer.
    #[must_use]
    pub const fn new(signed: Signed) -> Self {
        Self { signed }
    }
}

impl<S, J: Json> OnboardSubmit<S, J> {
    /// The invite code in the payload.
    #[must_use]
    pub fn invite_code(&self) -> Option<Cow<'_, str>> {
        self.signed.text("invite_code")
    }

    /// The payment that the payload claims. Nothing proves it.
    #[must_use]
    pub fn payment(&self) -> Option<Number> {
        self.signed.number("payment")
    }
}

impl<'a> OnboardSubmit<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let signed = Signed::read(body)?;
        Ok(Self { signed })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> OnboardSubmit<K::Text, K::Json> {
        OnboardSubmit {
            signed: self.signed.keep(how),
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> OnboardSubmit {
        self.keep(copy)
    }
}

/// What an administrator asks for: a frame ADMIN_*, whose payload says whom it is about. Not in the
/// specification.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AdminRequest<S = SharedStr, J = SharedJson> {
    /// What to do: the frame's type.
    pub action: Word<AdminAction, S>,
    /// With whom, by whom, and the proof.
    pub signed: Signed<S, J>,
}

impl AdminRequest {
    /// A request.
    #[must_use]
    pub const fn new(action: AdminAction, signed: Signed) -> Self {
        Self {
            action: Word::Known(action),
            signed,
        }
    }
}

impl<S, J: Json> AdminRequest<S, J> {
    /// The client that it is about.
    #[must_use]
    pub fn client_id(&self) -> Option<Cow<'_, str>> {
        self.signed.text("client_id")
    }

    /// The administrator that it is about.
    #[must_use]
    pub fn admin_id(&self) -> Option<Cow<'_, str>> {
        self.signed.text("admin_id")
    }

    /// Why somebody is blocked.
    #[must_use]
    pub fn reason(&self) -> Option<Cow<'_, str>> {
        self.signed.text("reason")
    }
}

impl<'a> AdminRequest<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn read(tag: Cow<'a, str>, body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            action: Word::parse(tag),
            signed: Signed::read(body)?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> AdminRequest<K::Text, K::Json> {
        AdminRequest {
            action: how.word(&self.action),
            signed: self.signed.keep(how),
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> AdminRequest {
        self.keep(copy)
    }
}

impl<S: AsRef<str> + Serialize, J: Serialize> Serialize for AdminRequest<S, J> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        #[derive(Serialize)]
        struct Frame<'f, S, J> {
            #[serde(rename = "type")]
            action: &'f str,
            #[serde(flatten)]
            signed: &'f Signed<S, J>,
        }
        let frame = Frame {
            action: self.action.as_str(),
            signed: &self.signed,
        };
        frame.serialize(serializer)
    }
}

/// A client asks how a session stands, before or after its CONNECT. Not in the specification; both
/// known clients send it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionQuery<S = SharedStr> {
    /// Which session.
    pub session_id: Option<S>,
}

impl SessionQuery {
    /// A question about this session.
    pub fn new(session_id: impl Into<SharedStr>) -> Self {
        Self {
            session_id: Some(session_id.into()),
        }
    }
}

impl<'a> SessionQuery<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let session = body.object("session")?.map(RawJson::into_text);
        let session_id = match session {
            Some(Cow::Borrowed(session)) => last_member(session, "session_id"),
            // Members of a decoded frame are borrowed.
            Some(Cow::Owned(_)) | None => None,
        };
        let session_id = match session_id {
            Some(id) => Some(id.into_str().ok_or_else(|| {
                DecodeError::wrong_type("session_id", "a string").under("session")
            })?),
            None => None,
        };
        Ok(Self { session_id })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> SessionQuery<K::Text> {
        SessionQuery {
            session_id: how.texts(&self.session_id),
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> SessionQuery {
        self.keep(copy)
    }
}

impl<S: AsRef<str>> Serialize for SessionQuery<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        #[derive(Serialize)]
        struct Named<'f> {
            session_id: &'f str,
        }
        let mut frame = serializer.serialize_struct("SessionQuery", 2)?;
        frame.serialize_field("type", "SESSION_STATUS")?;
        if let Some(session_id) = &self.session_id {
            let session_id = session_id.as_ref();
            frame.serialize_field("session", &Named { session_id })?;
        }
        frame.end()
    }
}
