//! [`Registration`] and [`RegistrationResponse`]: how a client introduces itself.

use rpc_core::Str;
use rpc_core::json::lenient;
use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, RegistrationError};
use crate::id::ClientId;

/// The description of a client. SmartHole specification, *Registration*.
///
/// As JSON it is the `payload` of a frame; [`frame`](Registration::frame) is the whole frame.
/// [`validate::registration`](crate::validate::registration) checks it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Its name, unique among connected clients.
    pub name: Str,
    /// The client's purpose, in natural language: routers choose clients by it.
    pub description: Str,
    /// Its version, for debugging.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<Str>,
    /// Hints at what it can do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<Str>,
}

impl Registration {
    /// Creates a registration with this name and description.
    pub fn new(name: impl Into<Str>, description: impl Into<Str>) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            version: None,
            capabilities: Vec::new(),
        }
    }

    /// Returns the whole frame, for encoding.
    pub fn frame(&self) -> impl Serialize {
        #[derive(Serialize)]
        struct Frame<'r> {
            r#type: &'static str,
            payload: &'r Registration,
        }
        Frame {
            r#type: "registration",
            payload: self,
        }
    }
}

/// A server's answer to a registration. SmartHole specification, *Registration Response*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Payload", into = "Payload")]
#[non_exhaustive]
pub enum RegistrationResponse {
    /// The client is registered.
    Accepted {
        /// The client's id at the server. This crate always sends it; other servers may omit it.
        client_id: Option<ClientId>,
        /// For people.
        message: Option<Str>,
    },
    /// The client is not registered. The connection stays open for another attempt.
    Refused {
        /// Why. This crate always sends it; other servers may omit it.
        code: Option<ErrorCode>,
        /// For people.
        message: Option<Str>,
    },
}

impl RegistrationResponse {
    /// Returns the specification's answer to a client with this name.
    pub fn accepted(client_id: impl Into<ClientId>, name: &str) -> Self {
        Self::Accepted {
            client_id: Some(client_id.into()),
            message: Some(format!("Client '{name}' registered successfully").into()),
        }
    }

    /// Returns a refusal.
    #[must_use]
    pub fn refused(error: RegistrationError) -> Self {
        Self::Refused {
            code: Some(error.code),
            message: Some(error.message),
        }
    }
}

/// The answer as it is on the wire.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Payload {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_id: Option<ClientId>,
    #[serde(default, deserialize_with = "lenient::optional_id")]
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<ErrorCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Str>,
}

/// Ignores a member that belongs to the other answer.
impl From<Payload> for RegistrationResponse {
    fn from(payload: Payload) -> Self {
        let message = payload.message;
        if payload.success {
            let client_id = payload.client_id;
            Self::Accepted { client_id, message }
        } else {
            let code = payload.code;
            Self::Refused { code, message }
        }
    }
}

impl From<RegistrationResponse> for Payload {
    fn from(response: RegistrationResponse) -> Self {
        let (success, client_id, code, message) = match response {
            RegistrationResponse::Accepted { client_id, message } => {
                (true, client_id, None, message)
            }
            RegistrationResponse::Refused { code, message } => (false, None, code, message),
        };
        Self {
            success,
            client_id,
            code,
            message,
        }
    }
}
