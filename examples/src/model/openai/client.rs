//! [`OpenAi`]: a client for providers with OpenAI's interface.

use std::borrow::Cow;
use std::fmt;

use async_trait::async_trait;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap};
use rpc_core::Secret;
use serde::Serialize;
use snek_proto::limits::DEFAULT_OPENAI_URL;
use snek_proto::llm::chat::ChatMessage;
use snek_proto::llm::tool::ToolDefinition;

use super::Chunks;
use crate::model::http::{Asker, HttpClient, RequestPolicy, endpoint, sensitive};
use crate::model::{ChatModel, ChatRequest, Deltas, ModelError};

rpc_core::config! {
    /// The model, and the settings of requests.
    #[derive(Clone, Debug)]
    pub struct OpenAiConfig {
        /// The address of the interface. The default path is `/v1/chat/completions`;
        /// `/chat/completions` is appended to any other path that does not end with it. Default
        /// [`DEFAULT_OPENAI_URL`].
        pub base_url: String = DEFAULT_OPENAI_URL.to_owned() => with_base_url(impl Into<String>),
        /// The model's name.
        pub model: String = model.into(),
        /// The key, if the provider requires one. Default none.
        pub key: Option<Secret> = None => with_key(Option<Secret>),
        /// The longest answer in tokens. Default `None`: that of the provider.
        pub max_tokens: Option<u32> = None => with_max_tokens,
        /// Whether to request the usage of a streamed answer. Not every server supports it. Default
        /// no.
        pub usage: bool = false => with_usage,
        /// The timeouts and attempts of requests.
        pub policy: RequestPolicy = RequestPolicy::default() => with_policy,
    }
    /// Creates the configuration of a model, without a key.
    pub fn new(model: impl Into<String>);
}

/// A model behind the OpenAI interface.
pub struct OpenAi {
    asker: Asker,
    config: OpenAiConfig,
}

impl OpenAi {
    /// Creates a model with its own connections. Sends nothing yet.
    ///
    /// # Errors
    /// [`ModelError::Setup`] for an invalid address or key, or if TLS cannot be set up.
    pub fn new(config: OpenAiConfig) -> Result<Self, ModelError> {
        Self::with_http(config, &HttpClient::default())
    }

    /// Creates a model with these connections. Sends nothing yet.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn with_http(config: OpenAiConfig, http: &HttpClient) -> Result<Self, ModelError> {
        let url = completions(&config.base_url)?;
        let mut headers = HeaderMap::new();
        if let Some(key) = &config.key {
            headers.insert(AUTHORIZATION, sensitive("Bearer ", key)?);
        }
        let asker = Asker::new(http, url, headers, config.key.as_ref(), config.policy)?;
        Ok(Self { asker, config })
    }

    /// Returns whether the key and the conversation leave this machine unencrypted.
    #[must_use]
    pub fn goes_unencrypted(&self) -> bool {
        self.asker.goes_unencrypted()
    }

    #[cfg(test)]
    pub(super) const fn url(&self) -> &Url {
        self.asker.url()
    }
}

#[async_trait]
impl ChatModel for OpenAi {
    async fn stream(&self, request: ChatRequest<'_>) -> Result<Deltas, ModelError> {
        let OpenAiConfig {
            model, max_tokens, ..
        } = &self.config;
        let model = request.model.unwrap_or(model);
        let thinks = wants_completion_tokens(model);
        let body = serde_json::to_vec(&Body {
            model,
            messages: request.messages.into_iter().map(as_sent).collect(),
            tools: request.tools,
            max_tokens: max_tokens.filter(|_| !thinks),
            max_completion_tokens: max_tokens.filter(|_| thinks),
            stream: true,
            stream_options: self.config.usage.then_some(StreamOptions {
                include_usage: true,
            }),
        })
        .map_err(ModelError::setup)?;
        self.asker.ask::<Chunks>(body.into()).await
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAi")
            .field("host", &self.asker.url().host_str())
            .field("model", &self.config.model)
            .finish_non_exhaustive()
    }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Cow<'a, ChatMessage>>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tools: &'a [ToolDefinition],
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

/// Returns the message to send: a call without arguments gets an empty object, because some servers
/// parse the text.
fn as_sent(message: &ChatMessage) -> Cow<'_, ChatMessage> {
    let blank = |text: &str| text.trim().is_empty();
    if !message.tool_calls.iter().any(|call| blank(&call.arguments)) {
        return Cow::Borrowed(message);
    }
    let mut message = message.clone();
    for call in &mut message.tool_calls {
        if blank(&call.arguments) {
            "{}".clone_into(&mut call.arguments);
        }
    }
    Cow::Owned(message)
}

/// Returns whether OpenAI's model refuses `max_tokens`, as reasoning models do.
fn wants_completion_tokens(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let numbered = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    name.starts_with("gpt-5") || name.strip_prefix('o').is_some_and(numbered)
}

/// Returns the whole address; `base` may omit its end.
fn completions(base: &str) -> Result<Url, ModelError> {
    const END: &str = "/chat/completions";
    let mut url = endpoint(base, DEFAULT_OPENAI_URL)?;
    let path = url.path().trim_end_matches('/');
    let path = match path {
        "" => format!("/v1{END}"),
        path if path.ends_with(END) => path.to_owned(),
        path => format!("{path}{END}"),
    };
    url.set_path(&path);
    Ok(url)
}
