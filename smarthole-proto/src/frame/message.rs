//! [`Message`]: the user's text, routed to a client.

use rpc_core::json::lenient;
use rpc_core::{Str, words};
use serde::{Deserialize, Serialize};

use crate::id::MessageId;

/// The user's text, routed to a client. SmartHole specification, *Routed Message*.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Identifies the message in responses. Opaque.
    pub id: MessageId,
    /// The user's text, without the prefix of direct routing.
    pub text: Str,
    /// When the server created the message: ISO 8601, see
    /// [`timestamp::parse`](crate::timestamp::parse).
    #[serde(deserialize_with = "lenient::id")]
    pub timestamp: Str,
    /// How it got here.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub metadata: Metadata,
}

/// How a message got to a client. The default is typed, and not direct.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Metadata {
    /// How the user entered it.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub input_method: InputMethod,
    /// Whether the user named the client.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub direct_routed: bool,
    /// The confidence of the speech recognition, from 0 to 1; for voice only. Written if it is a
    /// number.
    #[serde(skip_serializing_if = "is_no_number")]
    pub confidence: Option<f64>,
    /// Why the router chose this client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub routing_reason: Option<Str>,
}

words! {
    /// How the user entered a text.
    #[derive(Default)]
    pub enum InputMethod {
        /// Spoken.
        "voice" => Voice,
        /// Typed. Also the default if a server does not say.
        #[default]
        "text" => Text,
        .. => Other,
    }
}

#[expect(clippy::ref_option, reason = "serde hands it over like this")]
fn is_no_number(confidence: &Option<f64>) -> bool {
    !confidence.is_some_and(f64::is_finite)
}

impl Message {
    /// Creates a typed message that a router chose this client for.
    pub fn new(id: impl Into<MessageId>, text: impl Into<Str>, timestamp: impl Into<Str>) -> Self {
        Self {
            id: id.into(),
            text: text.into(),
            timestamp: timestamp.into(),
            metadata: Metadata::default(),
        }
    }
}
