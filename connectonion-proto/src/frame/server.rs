//! [`ServerFrame`]: what a server sends.

use rpc_core::json::{TagKind, Tagged, decode_keeping};
use rpc_core::{DecodeError, Json, Limits, Str};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::event::{EventKind, StreamEvent};
use super::frames::frames;
use super::json::in_frame;
use super::onboard::{AdminResult, OnboardRequired, OnboardSuccess};
use super::reply::{Connected, ErrorFrame, Output, RuntimeInputAck, SessionStatus};

frames! {
    /// One frame of the server, as a client reads it, which ignores what is unknown. ConnectOnion
    /// specification, *Server → Client*.
    pub enum ServerFrame {
        /// The client is let in.
        "CONNECTED" => Connected(Connected) then Connected::read,
        /// The agent is done.
        "OUTPUT" => Output(Output),
        /// A prompt is queued.
        "RUNTIME_INPUT_ACK" => RuntimeInputAck(RuntimeInputAck),
        /// Something was wrong.
        "ERROR" => Error(ErrorFrame),
        /// How a session stands.
        "SESSION_STATUS" => SessionStatus(SessionStatus),
        /// The client is a stranger.
        "ONBOARD_REQUIRED" => OnboardRequired(OnboardRequired),
        /// The client is a contact now.
        "ONBOARD_SUCCESS" => OnboardSuccess(OnboardSuccess),
        /// What has become of an administrator's request.
        "ADMIN_RESULT" => AdminResult(AdminResult),
    } alone {
        /// The server wants a PONG.
        "PING" => Ping,
    } others {
        /// One step of the agent's work.
        Event(event: StreamEvent) = event.kind.tag(),
    }
}

impl ServerFrame {
    /// Decodes a frame. One of a type that this crate does not know is an event
    /// ([`EventKind::Unknown`]) if it has an `id` and a `ts`, as all events have, and
    /// [`Unknown`](Self::Unknown) if not.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object, has no string `type`, or is of a known type with a
    /// member of the wrong type or without one that it cannot do without.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        Self::decode_keeping(text, limits, |_| false).map(|(frame, _)| frame)
    }

    /// As [`decode`](Self::decode), with the whole text if `keep` says so.
    pub(crate) fn decode_keeping(
        text: &str,
        limits: &Limits,
        keep: impl FnOnce(&Self) -> bool,
    ) -> Result<(Self, Option<Json>), DecodeError> {
        decode_keeping(text, limits, keep)
            .map_err(|error| in_frame(error, text, Self::TAGS.iter().chain(EventKind::TAGS)))
    }

    fn kind_of_other(tag: &str) -> TagKind {
        EventKind::kind(tag)
    }

    fn read_other<'de, D: Deserializer<'de>>(tag: &str, from: D) -> Result<Self, D::Error> {
        StreamEvent::read_rest(Some(tag), from).map(Self::Event)
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
