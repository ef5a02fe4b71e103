//! [`ChannelAdapter`]: a plugin that speaks a chat service's webhook.

use async_trait::async_trait;
use serde::Deserialize;

/// A message from a chat service. Members that are missing, null or not strings have their default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Incoming {
    /// The message. Default: empty.
    pub content: String,
    /// The account within the channel. Default `webhook`.
    pub account: String,
    /// The peer. Default `main`.
    pub peer: String,
    /// The guild or server.
    pub guild: Option<String>,
    /// The team within a guild.
    pub team: Option<String>,
}

impl Incoming {
    /// Parses the output of `parse_incoming`.
    ///
    /// # Errors
    /// The reason why it is not a JSON object.
    pub fn parse(output: &[u8]) -> Result<Self, String> {
        let mut object: serde_json::Map<String, serde_json::Value> =
            rpc_core::json::from_slice(output).map_err(|error| error.to_string())?;
        let mut text = |name: &str| match object.remove(name) {
            Some(serde_json::Value::String(text)) => Some(text),
            _ => None,
        };
        Ok(Self {
            content: text("content").unwrap_or_default(),
            account: text("account").unwrap_or_else(|| "webhook".to_owned()),
            peer: text("peer").unwrap_or_else(|| "main".to_owned()),
            guild: text("guild"),
            team: text("team"),
        })
    }
}

/// A request that `format_outgoing` wants the gateway to make.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Outgoing {
    /// The URL to post to.
    pub url: String,
    /// The body as JSON. Default `{"text": CONTENT}`.
    pub body: Option<serde_json::Value>,
}

/// The error of a request for an adapter.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The adapter's capabilities do not include the host. Nothing was sent.
    #[error("{host} not in allowed_hosts")]
    Denied {
        /// The host; `unknown` if the address has none.
        host: String,
    },
    /// The service was not reached, or refused.
    #[error("{0}")]
    Failed(String),
}

/// A translator between a chat service's webhook and the gateway.
#[async_trait]
pub trait ChannelAdapter: Send + Sync {
    /// Parses the body of a webhook.
    ///
    /// # Errors
    /// The reason why it is not a message, for the service.
    ///
    /// # Cancel safety
    /// Dropping the future ends the call.
    async fn parse_incoming(&self, body: &[u8]) -> Result<Incoming, String>;

    /// Formats an answer for the service: the body of the HTTP answer, or an [`Outgoing`] in JSON.
    ///
    /// # Errors
    /// The reason of the failure. The service gets the plain answer then.
    ///
    /// # Cancel safety
    /// Dropping the future ends the call.
    async fn format_outgoing(&self, content: &str) -> Result<Vec<u8>, String>;

    /// Posts JSON to a host in the adapter's capabilities. Returns the host's answer.
    ///
    /// # Errors
    /// [`PostError`].
    ///
    /// # Cancel safety
    /// Dropping the future drops the answer; the request may have arrived.
    async fn post(&self, url: &str, body: Vec<u8>) -> Result<Vec<u8>, PostError>;
}
