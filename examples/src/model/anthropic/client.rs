//! [`Anthropic`]: a client for providers with Anthropic's interface.

use std::fmt;

use async_trait::async_trait;
use reqwest::header::{HeaderMap, HeaderValue};
use rpc_core::Secret;

use super::{Events, request_body};
use crate::model::http::{Asker, HttpClient, RequestPolicy, endpoint, sensitive};
use crate::model::provider::ANTHROPIC_ENDPOINT;
use crate::model::{ChatModel, ChatRequest, Deltas, ModelError};

/// The version of the interface to request.
const VERSION: &str = "2023-06-01";

rpc_core::config! {
    /// The model, and the settings of requests.
    #[derive(Clone, Debug)]
    pub struct AnthropicConfig {
        /// The address of the interface. The default path is `/v1/messages`. Default
        /// [`ANTHROPIC_ENDPOINT`].
        pub url: String = ANTHROPIC_ENDPOINT.to_owned() => with_url(impl Into<String>),
        /// The model's name.
        pub model: String = model.into(),
        /// The key. Default none, for your own servers.
        pub key: Option<Secret> = None => with_key(Option<Secret>),
        /// The longest answer in tokens, which the interface requires. Default 4,096.
        pub max_tokens: u32 = 4096 => with_max_tokens,
        /// The timeouts and attempts of requests.
        pub policy: RequestPolicy = RequestPolicy::default() => with_policy,
    }
    /// Creates the configuration of a model, without a key.
    pub fn new(model: impl Into<String>);
}

/// A model behind the Anthropic Messages API.
pub struct Anthropic {
    asker: Asker,
    config: AnthropicConfig,
}

impl Anthropic {
    /// Creates a model with its own connections. Sends nothing yet.
    ///
    /// # Errors
    /// [`ModelError::Setup`] for an invalid address or key, or if TLS cannot be set up.
    pub fn new(config: AnthropicConfig) -> Result<Self, ModelError> {
        Self::with_http(config, &HttpClient::default())
    }

    /// Creates a model with these connections. Sends nothing yet.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_http(config: AnthropicConfig, http: &HttpClient) -> Result<Self, ModelError> {
        let mut url = endpoint(&config.url, ANTHROPIC_ENDPOINT)?;
        if url.path() == "/" {
            url.set_path("/v1/messages");
        }
        let mut headers = HeaderMap::new();
        headers.insert("anthropic-version", HeaderValue::from_static(VERSION));
        if let Some(key) = &config.key {
            headers.insert("x-api-key", sensitive("", key)?);
        }
        let asker = Asker::new(http, url, headers, config.key.as_ref(), config.policy)?;
        Ok(Self { asker, config })
    }

    /// Returns whether the key and the conversation leave this machine unencrypted.
    #[must_use]
    pub fn goes_unencrypted(&self) -> bool {
        self.asker.goes_unencrypted()
    }
}

#[async_trait]
impl ChatModel for Anthropic {
    async fn stream(&self, request: ChatRequest<'_>) -> Result<Deltas, ModelError> {
        let model = request.model.unwrap_or(&self.config.model);
        let body = request_body(model, self.config.max_tokens, &request)?;
        self.asker.ask::<Events>(body.into()).await
    }
}

impl fmt::Debug for Anthropic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Anthropic")
            .field("host", &self.asker.url().host_str())
            .field("model", &self.config.model)
            .finish_non_exhaustive()
    }
}
