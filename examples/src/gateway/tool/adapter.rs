//! [`ChannelAdapter`]: a plugin that speaks a chat service's webhook.

use async_trait::async_trait;
use serde::Deserialize;

/// What a chat service has posted, in the gateway's terms. Members that are missing, null or no
/// strings have their default.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
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
    /// Reads what `parse_incoming` returns.
    ///
    /// # Errors
    /// Why it is no JSON object.
    pub fn parse(output: &[u8]) -> Result<Self, String> {
        let mut object: serde_json::Map<String, serde_json::Value> =
            serde_json::from_slice(output).map_err(|error| error.to_string())?;
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

/// A request that `format_outgoing` leaves to the gateway.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Outgoing {
    /// Where to post.
    pub url: String,
    /// What to post, as JSON. Default `{"text": CONTENT}`.
    pub body: Option<serde_json::Value>,
}

/// Why a request for an adapter failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PostError {
    /// The adapter's capabilities do not name the host. Nothing was sent.
    #[error("{host} not in allowed_hosts")]
    Denied {
        /// The host; `unknown` if the address has none.
        host: String,
    },
    /// The service was not reached, or has refused.
    #[error("{0}")]
    Failed(String),
}

/// Translates between a chat service's webhook and the gateway.
#[async_trait]
pub trait ChannelAdapter: Send + Sync {
    /// Reads the body of a webhook.
    ///
    /// # Errors
    /// Why it is no message, for the service to read.
    ///
    /// # Cancel safety
    /// Dropping the future ends the call.
    async fn parse_incoming(&self, body: &[u8]) -> Result<Incoming, String>;

    /// Puts an answer into the form of the service: the body of the HTTP answer, or an [`Outgoing`]
    /// in JSON.
    ///
    /// # Errors
    /// Why that failed. The service gets the plain answer then.
    ///
    /// # Cancel safety
    /// Dropping the future ends the call.
    async fn format_outgoing(&self, content: &str) -> Result<Vec<u8>, String>;

    /// Posts JSON to a host that the adapter's capabilities name. Returns what the host answers.
    ///
    /// # Errors
    /// [`PostError`].
    ///
    /// # Cancel safety
    /// Dropping the future gives the answer up; the request may have arrived.
    async fn post(&self, url: &str, body: Vec<u8>) -> Result<Vec<u8>, PostError>;
}
