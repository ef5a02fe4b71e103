//! [`ServerFrame`]: what a server sends.

use std::borrow::Cow;
use std::fmt;

use rpc_core::Limits;
use rpc_core::decode::{DecodeError, RawJson};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::Unknown;
use super::body::Body;
use super::event::BorrowedEvent;
use super::keep::Owned;
use super::onboard::{AdminResult, OnboardRequired, OnboardSuccess};
use super::reply::{Connected, ErrorFrame, Output, RuntimeInputAck, SessionStatus};

/// One frame of the server, as a client reads it. ConnectOnion specification, *Server → Client*.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum ServerFrame<'a> {
    /// The client is let in.
    Connected(Connected<Cow<'a, str>, RawJson<'a>>),
    /// The agent is done.
    Output(Output<Cow<'a, str>, RawJson<'a>>),
    /// The server wants a PONG.
    Ping,
    /// One step of the agent's work.
    Event(BorrowedEvent<'a>),
    /// A prompt is queued.
    RuntimeInputAck(RuntimeInputAck<Cow<'a, str>>),
    /// Something was wrong.
    Error(ErrorFrame<Cow<'a, str>, RawJson<'a>>),
    /// How a session stands.
    SessionStatus(SessionStatus<Cow<'a, str>>),
    /// The client is a stranger.
    OnboardRequired(OnboardRequired<Cow<'a, str>, RawJson<'a>>),
    /// The client is a contact now.
    OnboardSuccess(OnboardSuccess<Cow<'a, str>>),
    /// What has become of an administrator's request.
    AdminResult(AdminResult<Cow<'a, str>>),
    /// A frame of any other type that is no event. A client ignores it.
    Unknown(Unknown<'a>),
}

impl<'a> ServerFrame<'a> {
    /// Decodes a frame. One of a type that this crate does not know is an
    /// [`OtherEvent`](super::OtherEvent) if it has an `id` and a `ts`, as all events have, and
    /// [`Unknown`] if not.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object, has no string `type`, or is of a known type with a
    /// member of the wrong type or without one that it cannot do without.
    pub fn decode(text: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        let mut body = Body::new(text);
        body.read(limits)?;
        let tag = body.tag()?;
        let (name, frame) = match &*tag {
            "PING" => return Ok(Self::Ping),
            "OUTPUT" => ("OUTPUT", Output::read(&body).map(Self::Output)),
            "CONNECTED" => ("CONNECTED", Connected::read(&body).map(Self::Connected)),
            "ERROR" => ("ERROR", ErrorFrame::read(&body).map(Self::Error)),
            "RUNTIME_INPUT_ACK" => {
                let frame = RuntimeInputAck::read(&body).map(Self::RuntimeInputAck);
                ("RUNTIME_INPUT_ACK", frame)
            }
            "SESSION_STATUS" => {
                let frame = SessionStatus::read(&body).map(Self::SessionStatus);
                ("SESSION_STATUS", frame)
            }
            "ONBOARD_REQUIRED" => {
                let frame = OnboardRequired::read(&body).map(Self::OnboardRequired);
                ("ONBOARD_REQUIRED", frame)
            }
            "ONBOARD_SUCCESS" => {
                let frame = OnboardSuccess::read(&body).map(Self::OnboardSuccess);
                ("ONBOARD_SUCCESS", frame)
            }
            "ADMIN_RESULT" => {
                let frame = AdminResult::read(&body).map(Self::AdminResult);
                ("ADMIN_RESULT", frame)
            }
            other => {
                if let Some(event) = BorrowedEvent::read(other, &body) {
                    return event.map(Self::Event);
                }
                if let Some(event) = BorrowedEvent::read_other(&tag, &body) {
                    return Ok(Self::Event(event));
                }
                return Ok(Self::Unknown(Unknown::new(tag, RawJson::new(text)?)));
            }
        };
        frame.map_err(|error| error.in_frame(name))
    }

    /// The type on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Connected(_) => "CONNECTED",
            Self::Output(_) => "OUTPUT",
            Self::Ping => "PING",
            Self::Event(event) => event.kind.name(),
            Self::RuntimeInputAck(_) => "RUNTIME_INPUT_ACK",
            Self::Error(_) => "ERROR",
            Self::SessionStatus(_) => "SESSION_STATUS",
            Self::OnboardRequired(_) => "ONBOARD_REQUIRED",
            Self::OnboardSuccess(_) => "ONBOARD_SUCCESS",
            Self::AdminResult(_) => "ADMIN_RESULT",
            Self::Unknown(unknown) => &unknown.tag,
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ServerFrame<'static> {
        match self {
            Self::Connected(frame) => ServerFrame::Connected(frame.keep(&Owned)),
            Self::Output(frame) => ServerFrame::Output(frame.keep(&Owned)),
            Self::Ping => ServerFrame::Ping,
            Self::Event(event) => ServerFrame::Event(event.keep(&Owned)),
            Self::RuntimeInputAck(frame) => ServerFrame::RuntimeInputAck(frame.keep(&Owned)),
            Self::Error(frame) => ServerFrame::Error(frame.keep(&Owned)),
            Self::SessionStatus(frame) => ServerFrame::SessionStatus(frame.keep(&Owned)),
            Self::OnboardRequired(frame) => ServerFrame::OnboardRequired(frame.keep(&Owned)),
            Self::OnboardSuccess(frame) => ServerFrame::OnboardSuccess(frame.keep(&Owned)),
            Self::AdminResult(frame) => ServerFrame::AdminResult(frame.keep(&Owned)),
            Self::Unknown(frame) => ServerFrame::Unknown(frame.into_owned()),
        }
    }
}

/// Prints the type only: the rest is private.
impl fmt::Debug for ServerFrame<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServerFrame({:?})", self.name())
    }
}

impl Serialize for ServerFrame<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Connected(frame) => frame.serialize(serializer),
            Self::Output(frame) => frame.serialize(serializer),
            Self::Event(event) => event.serialize(serializer),
            Self::RuntimeInputAck(frame) => frame.serialize(serializer),
            Self::Error(frame) => frame.serialize(serializer),
            Self::SessionStatus(frame) => frame.serialize(serializer),
            Self::OnboardRequired(frame) => frame.serialize(serializer),
            Self::OnboardSuccess(frame) => frame.serialize(serializer),
            Self::AdminResult(frame) => frame.serialize(serializer),
            Self::Unknown(frame) => frame.serialize(serializer),
            Self::Ping => {
                let mut frame = serializer.serialize_struct("Frame", 1)?;
                frame.serialize_field("type", self.name())?;
                frame.end()
            }
        }
    }
}
