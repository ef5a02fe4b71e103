//! [`HttpModel`]: a model behind any of the interfaces over HTTP.

use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use reqwest::Url;
use serde_json::Value;

use super::ask::{Asker, Query};
use super::client::{endpoint, is_loopback};
use super::failure_message::unreachable;
use crate::model::config::ModelConfig;
use crate::model::provider::Provider;
use crate::model::request::in_words;
use crate::model::{ChatModel, ChatRequest, Deltas, ModelError, anthropic, extra, ollama, openai};

/// How long a connection to this machine may take.
const NEAR: Duration = Duration::from_millis(200);

/// A model behind an interface over HTTP. Cheap to clone; clones share their connections.
///
/// The provider is asked when the answer is first polled.
#[derive(Clone)]
pub struct HttpModel(Arc<Asker>);

impl HttpModel {
    /// Creates a model. Sends nothing yet.
    ///
    /// # Errors
    /// [`ModelError::Setup`] for an invalid address or key, or if TLS cannot be set up.
    pub fn new(config: ModelConfig) -> Result<Self, ModelError> {
        let asker = Asker::new(address(&config)?, config)?;
        Ok(Self(Arc::new(asker)))
    }

    /// Returns whether the key and the conversation leave this machine unencrypted.
    pub fn goes_unencrypted(&self) -> bool {
        self.0.url.scheme() == "http" && !is_loopback(&self.0.url)
    }

    #[cfg(test)]
    pub(in crate::model) fn url(&self) -> &Url {
        &self.0.url
    }

    /// Returns what to do if the provider should be on this machine and nothing listens there.
    pub fn absence(&self) -> Option<ModelError> {
        let Asker { config, url, .. } = &*self.0;
        let is_local = matches!(config.provider, Provider::Ollama | Provider::Vllm);
        if !is_local || !is_loopback(url) {
            return None;
        }
        let mut addresses = url.socket_addrs(|| None).ok()?.into_iter();
        let is_there = addresses.any(|at| TcpStream::connect_timeout(&at, NEAR).is_ok());
        (!is_there).then(|| unreachable(config, url, "connection refused", true))
    }
}

#[async_trait]
impl ChatModel for HttpModel {
    async fn stream(&self, request: ChatRequest<'_>) -> Result<Deltas, ModelError> {
        let config = &self.0.config;
        let body = match config.provider {
            Provider::Anthropic => anthropic::request_body,
            Provider::Ollama => ollama::request_body,
            _ => openai::request_body,
        };
        let in_words = in_words(&request, &self.origin());
        let in_words = in_words.as_ref().map(|messages| {
            let mut request = request.clone();
            request.messages = messages.iter().collect();
            body(config, &request)
        });
        let tools = request.tools.iter().map(|it| it.name().to_owned());
        Ok(self.0.ask(Query {
            body: body(config, &request)?,
            in_words: in_words.transpose()?,
            model: request.model.unwrap_or(&config.model).to_owned(),
            tools: tools.collect(),
        }))
    }

    fn origin(&self) -> String {
        extra::origin(&self.0.config)
    }

    async fn models(&self) -> Vec<String> {
        let list = self.0.get(list_of(&self.0.url)).await;
        list.map_or_else(Vec::new, |list| names(&list))
    }
}

rpc_core::debug_fields!([] HttpModel, this => {
    provider: this.0.config.provider,
    host: this.0.url.host_str(),
    model: this.0.config.model,
});

/// Returns where a server lists its models, beside the interface at this address.
fn list_of(url: &Url) -> Url {
    let mut list = url.clone();
    let root = |end| url.path().strip_suffix(end);
    let (root, end) = match root("/api/chat") {
        Some(root) => (Some(root), "/api/tags"),
        None => (
            root("/chat/completions").or_else(|| root("/messages")),
            "/models",
        ),
    };
    list.set_path(&format!("{}{end}", root.unwrap_or_default()));
    list
}

/// Returns the names in a list of models: of the first member that is a list, by `id` or `name`.
fn names(list: &[u8]) -> Vec<String> {
    let Ok(Value::Object(members)) = serde_json::from_slice(list) else {
        return Vec::new();
    };
    let models = members.values().find_map(Value::as_array);
    let name = |model: &Value| {
        let name = model["id"].as_str().or(model["name"].as_str());
        name.map(str::to_owned)
    };
    models.into_iter().flatten().filter_map(name).collect()
}

/// Returns the whole address of an interface. `base` is its root, and may also be the whole.
fn address(config: &ModelConfig) -> Result<Url, ModelError> {
    let (provider, base) = (config.provider, config.base_url.as_str());
    // Ollama takes a host alone, or a port.
    let base = match provider {
        Provider::Ollama if base.starts_with(':') => format!("http://127.0.0.1{base}"),
        Provider::Ollama if !base.contains("://") => {
            let port = base.rsplit(']').next().is_some_and(|end| end.contains(':'));
            format!("http://{base}{}", if port { "" } else { ":11434" })
        }
        _ => base.to_owned(),
    };
    let mut url = endpoint(&base, provider.default_base(), &config.setting("base-url"))?;
    // Where a server listens is not where it is reached.
    if provider == Provider::Ollama && matches!(url.host_str(), Some("0.0.0.0" | "[::]")) {
        let _ = url.set_host(Some("127.0.0.1"));
    }
    // The address of one interface of a server is as good as the server's.
    let ends = "/v1/messages /api/chat /api/generate /api /chat/completions /completions /responses /models /messages";
    let path = url.path().trim_end_matches('/');
    let root = ends
        .split(' ')
        .find_map(|end| path.strip_suffix(end))
        .unwrap_or(path);
    let path = match provider {
        Provider::Anthropic => root.trim_end_matches("/v1").to_owned() + "/v1/messages",
        Provider::Ollama => root.trim_end_matches("/v1").to_owned() + "/api/chat",
        _ if root.is_empty() => "/v1/chat/completions".to_owned(),
        _ => format!("{root}/chat/completions"),
    };
    url.set_path(&path);
    Ok(url)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use super::*;

    #[test]
    fn a_list_of_models_is_beside_the_interface() {
        for (interface, list) in [
            ("http://h/v1/chat/completions", "http://h/v1/models"),
            ("https://h/a/chat/completions", "https://h/a/models"),
            ("https://h/v1/messages", "https://h/v1/models"),
            ("http://h:11434/api/chat", "http://h:11434/api/tags"),
        ] {
            assert_eq!(list_of(&interface.parse().unwrap()).as_str(), list);
        }
    }

    #[test]
    fn models_are_listed_by_id_or_name() {
        for (list, expected) in [
            (
                r#"{"object":"list","data":[{"id":"a"},{"id":7},{"id":"b"}]}"#,
                &["a", "b"][..],
            ),
            (
                r#"{"models":[{"name":"llama3.2:latest","size":1}]}"#,
                &["llama3.2:latest"],
            ),
            (r#"{"data":{}}"#, &[]),
            ("<html>", &[]),
        ] {
            assert_eq!(names(list.as_bytes()), expected, "{list}");
        }
    }
}
