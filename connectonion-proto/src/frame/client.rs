//! [`ClientFrame`]: what a client sends.

use std::borrow::Cow;
use std::fmt;

use rpc_core::Limits;
use rpc_core::decode::{DecodeError, RawJson};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::Unknown;
use super::body::Body;
use super::connect::{AdminRequest, Connect, OnboardSubmit, SessionQuery};
use super::input::Input;
use super::keep::Owned;
use super::response::{ModeChange, PromptUpdate, Response};

/// One frame of the client, as a server reads it. ConnectOnion specification, *Client → Server*.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ClientFrame<'a> {
    /// The client says who it is, and which session it wants.
    Connect(Connect<Cow<'a, str>, RawJson<'a>>),
    /// A prompt.
    Input(Input<Cow<'a, str>, RawJson<'a>>),
    /// The answer to a PING.
    Pong,
    /// The user's answer to a question of the agent.
    Response(Response<Cow<'a, str>, RawJson<'a>>),
    /// Another mode.
    ModeChange(ModeChange<Cow<'a, str>>),
    /// Another goal.
    PromptUpdate(PromptUpdate<Cow<'a, str>>),
    /// The agent is to stop after what it is doing. Not in the specification.
    Interrupt,
    /// How does a session stand?
    SessionQuery(SessionQuery<Cow<'a, str>>),
    /// What a stranger offers.
    OnboardSubmit(OnboardSubmit<Cow<'a, str>, RawJson<'a>>),
    /// What an administrator wants.
    Admin(AdminRequest<Cow<'a, str>, RawJson<'a>>),
    /// A frame of any other type. A server answers an ERROR.
    Unknown(Unknown<'a>),
}

impl<'a> ClientFrame<'a> {
    /// Decodes a frame. What a server answers to a text that is none, says
    /// [`error::refusal`](crate::error::refusal).
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object, has no string `type`, or is of a known type with a
    /// member of the wrong type. Members whose absence has an answer of its own (`prompt`,
    /// `payload`, `from`, `signature`) may be absent.
    pub fn decode(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        let mut body = Body::new(text);
        body.read(limits)?;
        let tag = body.tag()?;
        let (name, frame) = match &*tag {
            "PONG" => return Ok(Self::Pong),
            "INTERRUPT" => return Ok(Self::Interrupt),
            "INPUT" => ("INPUT", Input::read(&body).map(Self::Input)),
            "CONNECT" => ("CONNECT", Connect::read(&body).map(Self::Connect)),
            "ASK_USER_RESPONSE" => {
                let frame = Response::ask_user(&body).map(Self::Response);
                ("ASK_USER_RESPONSE", frame)
            }
            "APPROVAL_RESPONSE" => {
                let frame = Response::approval(&body).map(Self::Response);
                ("APPROVAL_RESPONSE", frame)
            }
            "PLAN_REVIEW_RESPONSE" => {
                let frame = Response::plan_review(&body).map(Self::Response);
                ("PLAN_REVIEW_RESPONSE", frame)
            }
            "ULW_RESPONSE" => ("ULW_RESPONSE", Response::ulw(&body).map(Self::Response)),
            "mode_change" => ("mode_change", ModeChange::read(&body).map(Self::ModeChange)),
            "prompt_update" => {
                let frame = PromptUpdate::read(&body).map(Self::PromptUpdate);
                ("prompt_update", frame)
            }
            "SESSION_STATUS" => {
                let frame = SessionQuery::read(&body).map(Self::SessionQuery);
                ("SESSION_STATUS", frame)
            }
            "ONBOARD_SUBMIT" => {
                let frame = OnboardSubmit::read(&body).map(Self::OnboardSubmit);
                ("ONBOARD_SUBMIT", frame)
            }
            admin if admin.starts_with("ADMIN_") => {
                let frame = AdminRequest::read(tag, &body).map(Self::Admin);
                ("ADMIN", frame)
            }
            _ => return Ok(Self::Unknown(Unknown::new(tag, RawJson::new(text)?))),
        };
        frame.map_err(|error| error.in_frame(name))
    }

    /// The type on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Connect(_) => "CONNECT",
            Self::Input(_) => "INPUT",
            Self::Pong => "PONG",
            Self::Response(response) => response.answer.name(),
            Self::ModeChange(_) => "mode_change",
            Self::PromptUpdate(_) => "prompt_update",
            Self::Interrupt => "INTERRUPT",
            Self::SessionQuery(_) => "SESSION_STATUS",
            Self::OnboardSubmit(_) => "ONBOARD_SUBMIT",
            Self::Admin(admin) => admin.action.as_str(),
            Self::Unknown(unknown) => &unknown.tag,
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ClientFrame<'static> {
        match self {
            Self::Connect(frame) => ClientFrame::Connect(frame.keep(&Owned)),
            Self::Input(frame) => ClientFrame::Input(frame.keep(&Owned)),
            Self::Pong => ClientFrame::Pong,
            Self::Response(frame) => ClientFrame::Response(frame.keep(&Owned)),
            Self::ModeChange(frame) => ClientFrame::ModeChange(frame.keep(&Owned)),
            Self::PromptUpdate(frame) => ClientFrame::PromptUpdate(frame.keep(&Owned)),
            Self::Interrupt => ClientFrame::Interrupt,
            Self::SessionQuery(frame) => ClientFrame::SessionQuery(frame.keep(&Owned)),
            Self::OnboardSubmit(frame) => ClientFrame::OnboardSubmit(frame.keep(&Owned)),
            Self::Admin(frame) => ClientFrame::Admin(frame.keep(&Owned)),
            Self::Unknown(frame) => ClientFrame::Unknown(frame.into_owned()),
        }
    }
}

/// Prints the type only: the rest is private.
impl fmt::Debug for ClientFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ClientFrame({:?})", self.name())
    }
}

impl Serialize for ClientFrame<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Connect(frame) => frame.serialize(serializer),
            Self::Input(frame) => frame.serialize(serializer),
            Self::Response(frame) => frame.serialize(serializer),
            Self::ModeChange(frame) => frame.serialize(serializer),
            Self::PromptUpdate(frame) => frame.serialize(serializer),
            Self::SessionQuery(frame) => frame.serialize(serializer),
            Self::OnboardSubmit(frame) => frame.serialize(serializer),
            Self::Admin(frame) => frame.serialize(serializer),
            Self::Unknown(frame) => frame.serialize(serializer),
            Self::Pong | Self::Interrupt => {
                let mut frame = serializer.serialize_struct("Frame", 1)?;
                frame.serialize_field("type", self.name())?;
                frame.end()
            }
        }
    }
}
