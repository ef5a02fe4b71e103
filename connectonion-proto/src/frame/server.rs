//! [`ServerFrame`]: the frames of a server.

use rpc_core::json::tagged::read_alone;
use rpc_core::json::{TagKind, Tagged, decode, decode_keeping};
use rpc_core::{DecodeError, Json, Limits, Str};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::event::{EventKind, StreamEvent};
use super::json::{in_frame, type_alone, verbatim};
use super::onboard::{AdminResult, OnboardRequired, OnboardSuccess};
use super::reply::{Connected, ErrorFrame, Output, RuntimeInputAck, SessionStatus};

/// One frame of the server, as a client reads it. ConnectOnion specification, *Server → Client*.
///
/// ```
/// use connectonion_proto::frame::{EventKind, ServerFrame};
/// use connectonion_proto::limits::defaults;
///
/// let text = r#"{"type":"tool_call","tool_id":"c1","name":"add","args":{"a":2},"id":"ev-1","ts":1.5}"#;
/// let ServerFrame::Event(event) = ServerFrame::decode(text, &defaults())? else { panic!() };
/// let EventKind::ToolCall(call) = &event.kind else { panic!() };
/// assert_eq!(call.args.as_ref().map(|args| args.get()), Some(r#"{"a":2}"#));
/// # Ok::<(), rpc_core::DecodeError>(())
/// ```
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged, from = "Tags")]
#[non_exhaustive]
pub enum ServerFrame {
    /// The client is admitted.
    Connected(Connected),
    /// The run has ended.
    Output(Output),
    /// Asks for a PONG.
    #[serde(serialize_with = "ping")]
    Ping,
    /// One step of the agent's work.
    Event(StreamEvent),
    /// A prompt is queued.
    RuntimeInputAck(RuntimeInputAck),
    /// An error.
    Error(ErrorFrame),
    /// The status of a session.
    SessionStatus(SessionStatus),
    /// The client is a stranger.
    OnboardRequired(OnboardRequired),
    /// The client is a contact now.
    OnboardSuccess(OnboardSuccess),
    /// The result of an administrator's command.
    AdminResult(AdminResult),
    /// A frame of any other type that is not an event. A client ignores it.
    #[serde(serialize_with = "verbatim")]
    Unknown {
        /// Its type.
        tag: Str,
        /// The whole frame.
        raw: Json,
    },
}

impl ServerFrame {
    /// Decodes a frame. A frame of an unknown type is an event ([`EventKind::Unknown`]) if it has
    /// an `id` and a `ts`, as all events have, and otherwise [`Unknown`](Self::Unknown).
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not an object, has no string `type`, or is of a known type
    /// with a member of the wrong type or without a required one.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        decode(text, limits).map_err(|error| Self::in_frame(error, text))
    }

    /// Like [`decode`](Self::decode), with the whole text if `keep` returns `true`.
    pub(crate) fn decode_keeping(
        text: &str,
        limits: &Limits,
        keep: impl FnOnce(&Self) -> bool,
    ) -> Result<(Self, Option<Json>), DecodeError> {
        decode_keeping(text, limits, keep).map_err(|error| Self::in_frame(error, text))
    }

    #[cold]
    fn in_frame(error: DecodeError, text: &str) -> DecodeError {
        in_frame(error, text, Tags::TAGS.iter().chain(EventKind::TAGS))
    }

    /// Returns the type on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Connected(_) => "CONNECTED",
            Self::Output(_) => "OUTPUT",
            Self::Ping => "PING",
            Self::Event(event) => event.kind.tag(),
            Self::RuntimeInputAck(_) => "RUNTIME_INPUT_ACK",
            Self::Error(_) => "ERROR",
            Self::SessionStatus(_) => "SESSION_STATUS",
            Self::OnboardRequired(_) => "ONBOARD_REQUIRED",
            Self::OnboardSuccess(_) => "ONBOARD_SUCCESS",
            Self::AdminResult(_) => "ADMIN_RESULT",
            Self::Unknown { tag, .. } => tag,
        }
    }

    fn unknown(tag: Str, raw: Json) -> Self {
        let id = raw.member("id");
        let id = id.as_ref().and_then(Json::as_str);
        let ts = raw.member("ts").and_then(|ts| ts.parse().ok());
        let (Some(id), Some(ts)) = (id, ts) else {
            return Self::Unknown { tag, raw };
        };
        let session_id = raw.member("session_id");
        Self::Event(StreamEvent {
            id: Some(id.as_ref().into()),
            ts: Some(ts),
            session_id: session_id.and_then(|id| id.parse().ok()),
            kind: EventKind::Unknown { tag, raw },
        })
    }
}

/// The frames that are the host's own: they answer one connection, or belong to it.
pub(super) const HOST_FRAMES: [&str; 9] = [
    "CONNECTED",
    "OUTPUT",
    "PING",
    "RUNTIME_INPUT_ACK",
    "ERROR",
    "SESSION_STATUS",
    "ONBOARD_REQUIRED",
    "ONBOARD_SUCCESS",
    "ADMIN_RESULT",
];

/// Reads a frame by its type.
struct Tags(ServerFrame);

impl From<Tags> for ServerFrame {
    fn from(Tags(frame): Tags) -> Self {
        frame
    }
}

impl Tagged for Tags {
    const TAG: &'static str = "type";
    const CONTENT: Option<&'static str> = None;
    /// Without those of events.
    const TAGS: &'static [&'static str] = &HOST_FRAMES;

    fn kind(tag: &str) -> TagKind {
        match EventKind::kind(tag) {
            TagKind::Unknown if tag == "PING" => TagKind::Unit,
            TagKind::Unknown if Self::TAGS.contains(&tag) => TagKind::Content,
            kind => kind,
        }
    }

    fn read<'de, D: Deserializer<'de>>(tag: &str, from: D) -> Result<Self, D::Error> {
        Ok(Self(match tag {
            "CONNECTED" => ServerFrame::Connected(Connected::deserialize(from)?.read()),
            "OUTPUT" => ServerFrame::Output(Deserialize::deserialize(from)?),
            "RUNTIME_INPUT_ACK" => ServerFrame::RuntimeInputAck(Deserialize::deserialize(from)?),
            "ERROR" => ServerFrame::Error(Deserialize::deserialize(from)?),
            "SESSION_STATUS" => ServerFrame::SessionStatus(Deserialize::deserialize(from)?),
            "ONBOARD_REQUIRED" => ServerFrame::OnboardRequired(Deserialize::deserialize(from)?),
            "ONBOARD_SUCCESS" => ServerFrame::OnboardSuccess(Deserialize::deserialize(from)?),
            "ADMIN_RESULT" => ServerFrame::AdminResult(Deserialize::deserialize(from)?),
            event => ServerFrame::Event(StreamEvent::read_rest(Some(event), from)?),
        }))
    }

    fn without<E: Error>(tag: &str, raw: Option<Json>) -> Result<Self, E> {
        let frame = raw.map(|raw| ServerFrame::unknown(tag.into(), raw));
        Ok(Self(frame.unwrap_or(ServerFrame::Ping)))
    }
}

impl<'de> Deserialize<'de> for Tags {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read_alone(from)
    }
}

fn ping<S: Serializer>(to: S) -> Result<S::Ok, S::Error> {
    type_alone("PING", to)
}

// Prints the type only: the contents are private.
rpc_core::debug_fields!([] ServerFrame, this => { name: this.name() });
