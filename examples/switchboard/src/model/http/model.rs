//! [`HttpModel`]: a model behind any of the interfaces over HTTP.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;

use super::HttpClient;
use super::ask::{Asker, Query};
use super::client::{endpoint, is_loopback};
use super::failure_message::unreachable;
use crate::model::config::ModelConfig;
use crate::model::provider::Provider;
use crate::model::{ChatModel, ChatRequest, Deltas, ModelError, anthropic, extra, ollama, openai};

/// How long a connection to this machine may take.
const NEAR: Duration = Duration::from_millis(200);

/// A model behind an interface over HTTP.
///
/// The provider is asked when the answer is first polled.
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
        Ok(Self {
            asker: Arc::new(Asker::new(http, address(&config)?, &config)?),
            config,
        })
    }

    /// Returns whether the key and the conversation leave this machine unencrypted.
    pub fn goes_unencrypted(&self) -> bool {
        self.asker.goes_unencrypted()
    }

    #[cfg(test)]
    pub(in crate::model) fn url(&self) -> &Url {
        self.asker.url()
    }

    /// Returns what to do if the provider should be on this machine and nothing listens there.
    pub fn absence(&self) -> Option<ModelError> {
        let (config, url) = (&self.config, self.asker.url());
        let is_local = matches!(config.provider, Provider::Ollama | Provider::Vllm);
        if !is_local || !is_loopback(url) {
            return None;
        }
        let mut addresses = url.socket_addrs(|| None).ok()?.into_iter();
        let is_there = addresses.any(|at| TcpStream::connect_timeout(&at, NEAR).is_ok());
        (!is_there).then(|| unreachable(config, url, "connection refused", true))
    }

    fn query(&self, request: &ChatRequest<'_>) -> Result<Query, ModelError> {
        let model = request.model.unwrap_or(&self.config.model);
        let body = match self.config.provider {
            Provider::Anthropic => anthropic::request_body,
            Provider::Ollama => ollama::request_body,
            _ => openai::request_body,
        };
        Ok(Query {
            body: body(&self.config, request)?,
            model: model.to_owned(),
        })
    }
}

#[async_trait]
impl ChatModel for HttpModel {
    async fn stream(&self, request: ChatRequest<'_>) -> Result<Deltas, ModelError> {
        Ok(self.asker.ask(self.query(&request)?))
    }

    fn origin(&self) -> String {
        extra::origin(&self.config)
    }
}

rpc_core::debug_fields!([] HttpModel, this => {
    provider: this.config.provider,
    host: this.asker.url().host_str(),
    model: this.config.model,
});

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
    // The address of one interface of a server is as good as the server's.
    let (root, end, others): (_, _, &[&str]) = match provider {
        Provider::Anthropic => ("/v1", "/messages", &["/v1"]),
        Provider::Ollama => (
            "/api",
            "/chat",
            &["/v1/chat/completions", "/api/generate", "/api", "/v1"],
        ),
        _ => (
            "",
            "/chat/completions",
            &["/completions", "/responses", "/models"],
        ),
    };
    let path = url.path().trim_end_matches('/');
    let path = match others.iter().find_map(|other| path.strip_suffix(other)) {
        _ if path.ends_with(&format!("{root}{end}")) => path.to_owned(),
        None | Some("") if path.is_empty() && root.is_empty() => format!("/v1{end}"),
        base => format!("{}{root}{end}", base.unwrap_or(path)),
    };
    url.set_path(&path);
    Ok(url)
}
