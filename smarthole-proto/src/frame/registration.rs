//! [`Registration`] and [`RegistrationResponse`]: how a client introduces itself.

use std::borrow::Cow;

use rpc_core::decode::{DecodeError, Field, FrameCopy, Members, SharedStr, Slot};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::client::Envelope;
use crate::error::{ErrorCode, RegistrationError};

/// What a client says of itself. SmartHole specification, *Registration*.
///
/// As JSON it is the `payload` of a frame; [`frame`](Registration::frame) is the whole.
/// [`validate::registration`](crate::validate::registration) checks it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Registration<S = SharedStr> {
    /// Its name, unique among connected clients.
    pub name: S,
    /// What it does, in natural language: routers choose by it.
    pub description: S,
    /// Its version, for debugging.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<S>,
    /// Hints at what it can do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<S>,
}

impl<S> Registration<S> {
    /// A client of this name that does this.
    pub fn new(name: impl Into<S>, description: impl Into<S>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            version: None,
            capabilities: Vec::new(),
        }
    }

    /// Sets [`version`](Self::version).
    #[must_use]
    pub fn with_version(mut self, version: impl Into<S>) -> Self {
        self.version = Some(version.into());
        self
    }

    /// Adds one of the [`capabilities`](Self::capabilities).
    #[must_use]
    pub fn with_capability(mut self, capability: impl Into<S>) -> Self {
        self.capabilities.push(capability.into());
        self
    }
}

impl Registration<Cow<'_, str>> {
    /// A copy whose texts are pieces of one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> Registration {
        Registration {
            name: copy.str(&self.name),
            description: copy.str(&self.description),
            version: self.version.as_deref().map(|version| copy.str(version)),
            capabilities: self
                .capabilities
                .iter()
                .map(|text| copy.str(text))
                .collect(),
        }
    }
}

/// A server's answer to a registration. SmartHole specification, *Registration Response*.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistrationResponse<S = SharedStr> {
    /// The client is registered.
    Accepted {
        /// What the server calls it. Always sent by this crate; other servers may leave it out.
        client_id: Option<S>,
        /// For people.
        message: Option<S>,
    },
    /// The client is not registered. The connection stays open for another attempt.
    Refused {
        /// Why. Always sent by this crate; other servers may leave it out.
        code: Option<ErrorCode>,
        /// For people.
        message: Option<S>,
    },
}

impl RegistrationResponse {
    /// The answer of the specification to a client of this name.
    pub fn accepted(client_id: impl Into<SharedStr>, name: &str) -> Self {
        Self::Accepted {
            client_id: Some(client_id.into()),
            message: Some(format!("Client '{name}' registered successfully").into()),
        }
    }

    /// A refusal.
    #[must_use]
    pub fn refused(error: RegistrationError) -> Self {
        Self::Refused {
            code: Some(error.code),
            message: Some(error.message),
        }
    }
}

#[derive(Default)]
pub(super) struct ResponseMembers<'a> {
    success: Slot<bool>,
    client_id: Slot<Cow<'a, str>>,
    code: Slot<Cow<'a, str>>,
    message: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for ResponseMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "success" => field.bool("success", &mut self.success),
            "clientId" => field.id("clientId", &mut self.client_id),
            "code" => field.id("code", &mut self.code),
            "message" => field.str("message", &mut self.message),
            _ => field.skip(),
        }
    }
}

impl<'a> ResponseMembers<'a> {
    pub(super) fn read(self) -> Result<RegistrationResponse<Cow<'a, str>>, DecodeError> {
        let message = self.message.take();
        Ok(if self.success.require("success")? {
            RegistrationResponse::Accepted {
                client_id: self.client_id.take(),
                message,
            }
        } else {
            RegistrationResponse::Refused {
                code: self.code.take().map(|code| ErrorCode::parse(&code)),
                message,
            }
        })
    }
}

impl<'a> RegistrationResponse<Cow<'a, str>> {
    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> RegistrationResponse<Cow<'static, str>> {
        let own = |text: Cow<'a, str>| Cow::Owned(text.into_owned());
        match self {
            Self::Accepted { client_id, message } => RegistrationResponse::Accepted {
                client_id: client_id.map(own),
                message: message.map(own),
            },
            Self::Refused { code, message } => RegistrationResponse::Refused {
                code,
                message: message.map(own),
            },
        }
    }

    /// A copy whose texts are pieces of one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> RegistrationResponse {
        let piece = |text: &Option<Cow<'a, str>>| text.as_deref().map(|text| copy.str(text));
        match self {
            Self::Accepted { client_id, message } => RegistrationResponse::Accepted {
                client_id: piece(client_id),
                message: piece(message),
            },
            Self::Refused { code, message } => RegistrationResponse::Refused {
                code: code.clone(),
                message: piece(message),
            },
        }
    }
}

/// The payload of the answer.
struct Payload<'f, S>(&'f RegistrationResponse<S>);

impl<S: AsRef<str>> Serialize for Payload<'_, S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut payload = serializer.serialize_struct("RegistrationResponse", 3)?;
        match self.0 {
            RegistrationResponse::Accepted { client_id, message } => {
                payload.serialize_field("success", &true)?;
                if let Some(client_id) = client_id {
                    payload.serialize_field("clientId", client_id.as_ref())?;
                }
                if let Some(message) = message {
                    payload.serialize_field("message", message.as_ref())?;
                }
            }
            RegistrationResponse::Refused { code, message } => {
                payload.serialize_field("success", &false)?;
                if let Some(code) = code {
                    payload.serialize_field("code", code.as_str())?;
                }
                if let Some(message) = message {
                    payload.serialize_field("message", message.as_ref())?;
                }
            }
        }
        payload.end()
    }
}

/// Writes the whole frame.
impl<S: AsRef<str>> Serialize for RegistrationResponse<S> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        Envelope::new("registration_response", Payload(self)).serialize(serializer)
    }
}
