//! The client's identity and its requests: [`Connect`], [`OnboardSubmit`], [`AdminRequest`],
//! [`SessionQuery`].

use rpc_core::json::lenient::{optional_id, optional_object, optional_verbatim_object};
use rpc_core::{Json, Str, members};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::json::{filled_id, last_member};
use super::signed::Signed;
use super::words::AdminAction;

use crate::id::{EventId, SessionId};

members! {
    /// The first frame of a client: its identity, the requested session, and the conversation.
    /// ConnectOnion specification, *CONNECT*.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(tag = "type", rename = "CONNECT", from = "ConnectMembers")]
    pub struct Connect {
        /// The session to resume; `None` for a new one. An empty text is read as `None`.
        pub session_id: Option<SessionId>,
        /// The id of the last event that the client has shown. The events after it are replayed.
        pub last_msg_id: Option<EventId>,
        /// The conversation as the client has it: a [`Session`](super::Session), as it was sent.
        pub session: Option<Json>,
        /// The client's identity, with proof.
        #[serde(flatten)]
        pub signed: Signed,
        /// A newer client's description of itself, as it was sent.
        pub protocol: Option<Json>,
    }

    /// A request for the status of a session, before or after CONNECT. Not in the specification; both
    /// known clients send it.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(tag = "type", rename = "SESSION_STATUS")]
    pub struct SessionQuery {
        /// The session. On the wire `session`, an object with this member.
        #[serde(
            default,
            rename = "session",
            deserialize_with = "named",
            serialize_with = "name",
        )]
        pub session_id: Option<SessionId>,
    }

    /// A stranger's offer to become a contact: `invite_code` or `payment` in the signed payload.
    /// ConnectOnion specification, *Trust Gate*.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(tag = "type", rename = "ONBOARD_SUBMIT", from = "Signed")]
    pub struct OnboardSubmit {
        /// The offer, its sender, and the proof.
        #[serde(flatten)]
        pub signed: Signed,
    }

    /// An administrator's command: a frame ADMIN_*, whose payload names the client that it is about.
    /// Not in the specification.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
    pub struct AdminRequest {
        /// The command: the frame's type.
        #[serde(rename = "type")]
        pub action: AdminAction,
        /// The client that it is about, its sender, and the proof.
        #[serde(flatten)]
        pub signed: Signed,
    }

    /// All members in one object.
    #[derive(Deserialize)]
    struct ConnectMembers {
        session_id: Option<SessionId> as "filled_id",
        last_msg_id: Option<EventId> as "optional_id",
        session: Option<Json> as "optional_object",
        payload: Option<Json> as "optional_verbatim_object",
        from: Option<Str>,
        signature: Option<Str>,
        protocol: Option<Json>,
    }
}

impl From<ConnectMembers> for Connect {
    fn from(read: ConnectMembers) -> Self {
        Self {
            session_id: read.session_id,
            last_msg_id: read.last_msg_id,
            session: read.session,
            signed: Signed {
                payload: read.payload,
                from: read.from,
                signature: read.signature,
            },
            protocol: read.protocol,
        }
    }
}

impl Connect {
    /// Creates a CONNECT for a new session.
    #[must_use]
    pub fn new(signed: Signed) -> Self {
        Self {
            signed,
            ..Self::default()
        }
    }

    /// Returns whether the client signs all its commands, so that unsigned ones must be refused:
    /// `signed_commands` of a signed payload is 1.
    #[must_use]
    pub fn signs_commands(&self) -> bool {
        let wish = self.signed.number("signed_commands");
        self.signed.signature.is_some() && wish.is_some_and(|wish| wish.as_f64() == 1.0)
    }
}

impl From<Signed> for OnboardSubmit {
    fn from(signed: Signed) -> Self {
        Self { signed }
    }
}

impl AdminRequest {
    /// Creates a command.
    #[must_use]
    pub const fn new(action: AdminAction, signed: Signed) -> Self {
        Self { action, signed }
    }
}

impl SessionQuery {
    /// Creates a query about this session.
    pub fn new(session_id: impl Into<SessionId>) -> Self {
        Self {
            session_id: Some(session_id.into()),
        }
    }
}

fn name<S: Serializer>(session_id: &Option<SessionId>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map([("session_id", session_id)])
}

/// Reads the id in an object. Of several members of that name the last counts.
fn named<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SessionId>, D::Error> {
    let session = optional_object(from)?;
    let id = session.and_then(|session: Json| last_member(&session, "session_id"));
    id.map(|id| id.parse::<Str>().map(SessionId::new))
        .transpose()
        .map_err(D::Error::custom)
}
