//! Who the client is and what it may do: [`Connect`], [`OnboardSubmit`], [`AdminRequest`],
//! [`SessionQuery`].

use std::fmt;

use rpc_core::json::lenient::{optional_id, optional_object};
use rpc_core::{Json, Str};
use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::json::filled_id;
use super::signed::Signed;
use super::words::AdminAction;

/// The first frame of a client: it says who it is and which session it wants, and hands over the
/// conversation. ConnectOnion specification, *CONNECT*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "CONNECT", from = "ConnectMembers")]
#[non_exhaustive]
pub struct Connect {
    /// The session to go on with; `None` (and an empty text, which is read as that) for a new one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Str>,
    /// The id of the last event that the client has shown. What came after it is sent again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_msg_id: Option<Str>,
    /// The conversation as the client has it: a [`Session`](super::Session), as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<Json>,
    /// Who it is, and the proof.
    #[serde(flatten)]
    pub signed: Signed,
    /// What a newer client says about itself, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Json>,
}

/// All members in one object.
#[derive(Deserialize)]
struct ConnectMembers {
    #[serde(default, deserialize_with = "filled_id")]
    session_id: Option<Str>,
    #[serde(default, deserialize_with = "optional_id")]
    last_msg_id: Option<Str>,
    #[serde(default, deserialize_with = "optional_object")]
    session: Option<Json>,
    #[serde(default, deserialize_with = "optional_object")]
    payload: Option<Json>,
    from: Option<Str>,
    signature: Option<Str>,
    protocol: Option<Json>,
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
    /// A CONNECT for a new session.
    #[must_use]
    pub fn new(signed: Signed) -> Self {
        Self {
            signed,
            ..Self::default()
        }
    }

    /// Sets [`session_id`](Self::session_id).
    #[must_use]
    pub fn with_session_id(mut self, id: impl Into<Str>) -> Self {
        self.session_id = Some(id.into());
        self
    }

    /// Sets [`last_msg_id`](Self::last_msg_id).
    #[must_use]
    pub fn with_last_msg_id(mut self, id: impl Into<Str>) -> Self {
        self.last_msg_id = Some(id.into());
        self
    }

    /// Sets [`session`](Self::session).
    #[must_use]
    pub fn with_session(mut self, session: Json) -> Self {
        self.session = Some(session);
        self
    }

    /// Whether the client signs each of its commands, and wants no others to be taken:
    /// `signed_commands` of a signed payload is 1.
    #[must_use]
    pub fn signs_commands(&self) -> bool {
        let wish = self.signed.number("signed_commands");
        self.signed.signature.is_some() && wish.is_some_and(|wish| wish.as_f64() == 1.0)
    }
}

/// What a stranger offers to become a contact: `invite_code` or `payment` in the signed payload.
/// ConnectOnion specification, *Trust Gate*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "ONBOARD_SUBMIT", from = "Signed")]
#[non_exhaustive]
pub struct OnboardSubmit {
    /// What is offered, by whom, and the proof.
    #[serde(flatten)]
    pub signed: Signed,
}

impl From<Signed> for OnboardSubmit {
    fn from(signed: Signed) -> Self {
        Self::new(signed)
    }
}

impl OnboardSubmit {
    /// An offer.
    #[must_use]
    pub const fn new(signed: Signed) -> Self {
        Self { signed }
    }
}

/// What an administrator asks for: a frame ADMIN_*, whose payload says whom it is about. Not in the
/// specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AdminRequest {
    /// What to do: the frame's type.
    #[serde(rename = "type")]
    pub action: AdminAction,
    /// With whom, by whom, and the proof.
    #[serde(flatten)]
    pub signed: Signed,
}

impl AdminRequest {
    /// A request.
    #[must_use]
    pub const fn new(action: AdminAction, signed: Signed) -> Self {
        Self { action, signed }
    }
}

/// A client asks how a session stands, before or after its CONNECT. Not in the specification; both
/// known clients send it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename = "SESSION_STATUS")]
#[non_exhaustive]
pub struct SessionQuery {
    /// Which session. On the wire `session`, an object with this member.
    #[serde(
        default,
        rename = "session",
        deserialize_with = "named",
        serialize_with = "name",
        skip_serializing_if = "Option::is_none"
    )]
    pub session_id: Option<Str>,
}

impl SessionQuery {
    /// A question about this session.
    pub fn new(session_id: impl Into<Str>) -> Self {
        Self {
            session_id: Some(session_id.into()),
        }
    }
}

fn name<S: Serializer>(session_id: &Option<Str>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map([("session_id", session_id)])
}

fn named<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Str>, D::Error> {
    Ok(Option::<Named>::deserialize(from)?.and_then(|Named(id)| id))
}

/// An object that names a session. Of several members of that name the last counts.
struct Named(Option<Str>);

impl<'de> Deserialize<'de> for Named {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Session;
        impl<'de> Visitor<'de> for Session {
            type Value = Named;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Named, A::Error> {
                let mut session_id = None;
                while let Some(name) = map.next_key::<Str>()? {
                    match &*name {
                        "session_id" => session_id = map.next_value()?,
                        _ => drop(map.next_value::<IgnoredAny>()?),
                    }
                }
                Ok(Named(session_id))
            }
        }
        from.deserialize_struct("Session", &["session_id"], Session)
    }
}
