//! [`HttpModel`]: a model behind any of the interfaces over HTTP.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderValue};

use super::HttpClient;
use super::ask::{Asker, Query, Shorter};
use super::client::{endpoint, sensitive};
use super::explain::Subject;
use crate::conversation::estimate;
use crate::model::config::ModelConfig;
use crate::model::cut::Cut;
use crate::model::provider::Provider;
use crate::model::{ChatModel, ChatRequest, Deltas, ModelError, anthropic, ollama, openai};

/// A model behind an interface over HTTP.
///
/// The provider is asked when the answer is first polled. It gets the end of a conversation that is
/// longer than configured; if it says that even this is too long for the model, it is asked once more
/// with half of it: [`Notice::Shortened`](crate::model::Notice::Shortened).
pub struct HttpModel {
    asker: Arc<Asker>,
    config: ModelConfig,
}

impl HttpModel {
    /// Creates a model with these connections. Sends nothing yet.
    ///
    /// # Errors
    /// [`ModelError::Setup`] for an invalid address or key, or if TLS cannot be set up.
    pub fn new(config: ModelConfig, http: &HttpClient) -> Result<Self, ModelError> {
        let url = address(&config)?;
        let mut headers = HeaderMap::new();
        let is_anthropic = config.provider == Provider::Anthropic;
        if is_anthropic {
            let version = HeaderValue::from_static(anthropic::VERSION);
            headers.insert("anthropic-version", version);
        }
        if let Some(key) = &config.key {
            match is_anthropic {
                true => headers.insert("x-api-key", sensitive("", key)?),
                false => headers.insert(AUTHORIZATION, sensitive("Bearer ", key)?),
            };
        }
        let asker = Asker::new(http, url, headers, config.key.as_ref(), config.policy)?;
        Ok(Self {
            asker: Arc::new(asker),
            config,
        })
    }

    /// Returns whether the key and the conversation leave this machine unencrypted.
    #[must_use]
    pub fn goes_unencrypted(&self) -> bool {
        self.asker.goes_unencrypted()
    }

    #[cfg(test)]
    pub(in crate::model) fn url(&self) -> &Url {
        self.asker.url()
    }

    fn body(&self, request: &ChatRequest<'_>) -> Result<Bytes, ModelError> {
        let config = &self.config;
        let body = match config.provider {
            Provider::Anthropic => anthropic::request_body(config, request),
            Provider::Ollama => ollama::request_body(config, request),
            _ => openai::request_body(config, request),
        };
        Ok(body?.into())
    }

    fn query(&self, request: &ChatRequest<'_>) -> Result<Query, ModelError> {
        let model = request.model.unwrap_or(&self.config.model);
        let most = self.config.context_tokens;
        let total: usize = request.messages.iter().map(|it| estimate(it)).sum();
        let cut = Cut::to(request, most);
        let shorter = Cut::to(request, total.min(most) / 2).map(|cut| {
            Ok::<_, ModelError>(Shorter {
                body: self.body(&cut.request(request))?,
                notice: cut.notice(),
            })
        });
        Ok(Query {
            body: match &cut {
                Some(cut) => self.body(&cut.request(request))?,
                None => self.body(request)?,
            },
            subject: Subject::new(&self.config, model, self.asker.url()),
            notice: cut.as_ref().map(Cut::notice),
            shorter: shorter.transpose()?,
        })
    }
}

#[async_trait]
impl ChatModel for HttpModel {
    async fn stream(&self, request: ChatRequest<'_>) -> Result<Deltas, ModelError> {
        let query = self.query(&request)?;
        Ok(match self.config.provider {
            Provider::Anthropic => self.asker.ask::<anthropic::Events>(query),
            Provider::Ollama => self.asker.ask::<ollama::Lines>(query),
            _ => self.asker.ask::<openai::Chunks>(query),
        })
    }
}

impl fmt::Debug for HttpModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpModel")
            .field("provider", &self.config.provider)
            .field("host", &self.asker.url().host_str())
            .field("model", &self.config.model)
            .finish_non_exhaustive()
    }
}

/// Returns the whole address of an interface. `base` is its root, and may also be the whole.
fn address(config: &ModelConfig) -> Result<Url, ModelError> {
    let (provider, base) = (config.provider, config.base_url.as_str());
    // Ollama takes a host alone.
    let base = match provider {
        Provider::Ollama if !base.contains("://") => {
            let port = base.rsplit(']').next().is_some_and(|end| end.contains(':'));
            format!("http://{base}{}", if port { "" } else { ":11434" })
        }
        _ => base.to_owned(),
    };
    let mut url = endpoint(&base, provider.default_base(), &config.setting("base-url"))?;
    // Where a server listens is not where it is reached.
    if provider == Provider::Ollama && url.host_str() == Some("0.0.0.0") {
        let _ = url.set_host(Some("127.0.0.1"));
    }
    let (root, end) = match provider {
        Provider::Anthropic => ("", "/v1/messages"),
        Provider::Ollama => ("", "/api/chat"),
        _ => ("/v1", "/chat/completions"),
    };
    let path = url.path().trim_end_matches('/');
    let path = match path {
        whole if whole.ends_with(end) => whole.to_owned(),
        "" => format!("{root}{end}"),
        path if root.is_empty() => format!("{}{end}", path.strip_suffix("/v1").unwrap_or(path)),
        path => format!("{path}{end}"),
    };
    url.set_path(&path);
    Ok(url)
}
