//! [`ModelConfig`]: a model with all its settings, and the client that is made of them.

use std::path::PathBuf;
use std::sync::Arc;

use rpc_core::Secret;

use super::http::{HttpModel, RequestPolicy};
use super::provider::Provider;
use super::scripted::Scripted;
use super::{ChatModel, ModelError};

/// The longest answer in tokens, unless configured otherwise.
pub const MAX_TOKENS: u32 = 4096;

rpc_core::config! {
    /// A model with all its settings.
    #[derive(Clone, Debug)]
    pub struct ModelConfig {
        /// The provider.
        pub provider: Provider = provider,
        /// The provider's name of the model. The scripted one ignores it.
        pub model: String = model.into(),
        /// The address of the provider, with or without the end of the path. Default: the provider's own.
        pub base_url: String = provider.default_base().to_owned() => with_base_url(impl Into<String>),
        /// The key. Default none.
        pub key: Option<Secret> = None => with_key(Option<Secret>),
        /// The file with the key, which may change. Default none.
        pub key_file: Option<PathBuf> = None => with_key_file(Option<PathBuf>),
        /// More headers, each as `NAME: VALUE` or as `@FILE` with one a line. Default none.
        pub headers: Vec<Secret> = Vec::new() => with_headers(Vec<Secret>),
        /// The longest answer in tokens. Default [`MAX_TOKENS`].
        pub max_tokens: u32 = MAX_TOKENS => with_max_tokens,
        /// How freely the model chooses its words. Default `None`: the provider's.
        pub temperature: Option<f64> = None => with_temperature,
        /// Most tokens of a conversation to send, by [estimate](crate::assistant::conversation::estimate).
        /// Default: the provider's.
        pub context_tokens: usize = provider.default_context() => with_context_tokens,
        /// Whether the settings are in a file, so that errors name its keys and not the options.
        pub in_file: bool = false => with_in_file,
        /// The timeouts and attempts of requests.
        pub policy: RequestPolicy = RequestPolicy::default() => with_policy,
    }
    /// Creates the configuration of a model of this provider.
    pub fn new(provider: Provider, model: impl Into<String>);
}

impl ModelConfig {
    /// Returns the model; `scripted` is the one of that provider. Opens no connection.
    ///
    /// # Errors
    /// [`ModelError::Setup`] for an invalid address or key, and for TLS that cannot be set up.
    pub fn build(&self, scripted: Scripted) -> Result<Arc<dyn ChatModel>, ModelError> {
        if self.provider == Provider::Scripted {
            return Ok(Arc::new(scripted));
        }
        let model = HttpModel::new(self.clone())?;
        if model.goes_unencrypted() {
            let key = if self.key.is_some() {
                "the key and "
            } else {
                ""
            };
            tracing::warn!(
                provider = %self.provider,
                "{key}all questions go over the network unencrypted: use https://"
            );
        }
        if let Some(absence) = model.absence() {
            tracing::warn!("{absence}");
        }
        Ok(Arc::new(model))
    }

    /// Returns the model and where it is, for a log: the address has neither a path nor a password.
    pub fn place(&self) -> String {
        let title = self.provider.title();
        match self.provider {
            Provider::Scripted => title.to_owned(),
            _ => format!("{} of {title} at {}", self.model, self.address().0),
        }
    }

    /// Returns the address without a user, a password and a query: the server and the path.
    pub(super) fn address(&self) -> (String, &str) {
        let (scheme, rest) = self
            .base_url
            .split_once("://")
            .unwrap_or(("http", &self.base_url));
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        let host = host.rsplit('@').next().unwrap_or_default();
        (format!("{scheme}://{host}"), path.trim_end_matches('/'))
    }

    /// Returns the name of a setting where the user has it.
    pub fn setting(&self, name: &str) -> String {
        match self.in_file {
            true => format!("[agent] {}", name.replace('-', "_")),
            false => format!("--{name}"),
        }
    }
}
