//! [`Status`]: what a server is and what it has to do.

use rpc_core::{DecodeError, Limits, Str, json};
use serde::{Deserialize, Deserializer, Serialize};

use super::open::{Extra, keep_extra};
use crate::limits::{CAPABILITIES, PROTOCOL_VERSION};
use crate::loose;

/// What a server is and what it has to do: `status.result`, and the body of `GET /v1/status`. Both
/// `provider_auth` and `tasks_detached` are written, so that clients of all versions are content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
#[non_exhaustive]
pub struct Status {
    /// Whether the server is well; known servers always are.
    #[serde(default = "well", deserialize_with = "well_unless_told")]
    pub ok: bool,
    /// The models' providers; seen: `anthropic`, `google`, `openai`, `vercel`.
    #[serde(default, deserialize_with = "loose::strings")]
    pub providers: Vec<Str>,
    /// Providers that a key is known for. Servers from 0.22.
    #[serde(default, deserialize_with = "loose::strings")]
    pub provider_auth: Vec<Str>,
    /// The model that is used by default.
    #[serde(default, deserialize_with = "loose::text")]
    pub model: Str,
    /// The protocol's version, `1`. It proves nothing: all known servers tell the same.
    #[serde(default, deserialize_with = "loose::text")]
    pub protocol_version: Str,
    /// What the server can do: words between commas. See
    /// [`capability_words`](Self::capability_words).
    #[serde(default, deserialize_with = "loose::text")]
    pub capabilities: Str,
    /// The server's own address.
    #[serde(default, deserialize_with = "loose::text")]
    pub service: Str,
    /// Tasks that are remembered.
    #[serde(default, deserialize_with = "loose::count")]
    pub tasks_total: u64,
    /// Tasks that run.
    #[serde(default, deserialize_with = "loose::count")]
    pub tasks_running: u64,
    /// Tasks that run for nobody. Servers up to 0.21.
    #[serde(default, deserialize_with = "loose::count")]
    pub tasks_detached: u64,
    /// Chats of all connections that wait.
    #[serde(default, deserialize_with = "loose::count")]
    pub rpc_queue_length: u64,
    /// Members that this crate does not know. Real clients want texts, numbers, booleans and lists
    /// of texts here.
    #[serde(flatten, skip_deserializing)]
    pub extra: Extra,
}

keep_extra!(Status);

const fn well() -> bool {
    true
}

fn well_unless_told<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_else(well))
}

impl Status {
    /// A server with this model and address and with nothing to do.
    pub fn new(model: impl Into<Str>, service: impl Into<Str>) -> Self {
        Self {
            ok: true,
            protocol_version: PROTOCOL_VERSION.into(),
            capabilities: CAPABILITIES.into(),
            model: model.into(),
            service: service.into(),
            providers: Vec::new(),
            provider_auth: Vec::new(),
            tasks_total: 0,
            tasks_running: 0,
            tasks_detached: 0,
            rpc_queue_length: 0,
            extra: Extra::default(),
        }
    }

    /// Adds a provider.
    #[must_use]
    pub fn with_provider(mut self, provider: impl Into<Str>) -> Self {
        self.providers.push(provider.into());
        self
    }

    /// The words of [`capabilities`](Self::capabilities), without the space around them.
    pub fn capability_words(&self) -> impl Iterator<Item = &str> {
        let words = self.capabilities.split(',').map(str::trim);
        words.filter(|word| !word.is_empty())
    }

    /// Decodes the body of `GET /v1/status`. What is absent is empty or zero: look at the
    /// [version](Self::protocol_version).
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object, or `ok` neither true nor false. Decoding it again
    /// fails again.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        json::decode_js(text, limits)
    }
}
