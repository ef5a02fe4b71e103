//! [`Provider`]: the providers by name, with keys and addresses from the environment.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use rpc_core::Secret;

use super::http::{HttpClient, RequestPolicy};
use super::scripted::Scripted;
use super::{ChatModel, ModelError};

/// The address of Anthropic's interface.
pub const ANTHROPIC_ENDPOINT: &str = "https://api.anthropic.com/v1/messages";
/// The address of OpenAI's interface.
pub const OPENAI_ENDPOINT: &str = "https://api.openai.com/v1/chat/completions";

/// The largest file of a key.
const MAX_KEY_FILE: u64 = 16 * 1024;

/// A provider of models.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Provider {
    /// A few rules, no network, no key: [`Scripted`], with its commands.
    #[default]
    Scripted,
    /// Anthropic, or a server with its interface.
    Anthropic,
    /// OpenAI, or a server with its interface.
    OpenAi,
}

/// The error for an unknown name of a provider.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown provider '{name}': write one of scripted, anthropic, openai")]
pub struct UnknownProvider {
    /// The name.
    pub name: String,
}

impl Provider {
    /// All providers.
    pub const ALL: [Self; 3] = [Self::Scripted, Self::Anthropic, Self::OpenAi];

    /// Returns its name in configurations and in the names of key files.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::Anthropic => "anthropic",
            Self::OpenAi => "openai",
        }
    }

    /// Returns the environment variable for its key, or `None` if it requires none.
    #[must_use]
    pub const fn key_variable(self) -> Option<&'static str> {
        match self {
            Self::Scripted => None,
            Self::Anthropic => Some("ANTHROPIC_API_KEY"),
            Self::OpenAi => Some("OPENAI_API_KEY"),
        }
    }

    /// Returns the environment variable for another address.
    #[must_use]
    pub const fn endpoint_variable(self) -> Option<&'static str> {
        match self {
            Self::Scripted => None,
            Self::Anthropic => Some("EXOCLAW_ANTHROPIC_ENDPOINT"),
            Self::OpenAi => Some("EXOCLAW_OPENAI_ENDPOINT"),
        }
    }

    /// Returns its address.
    #[must_use]
    pub const fn default_endpoint(self) -> Option<&'static str> {
        match self {
            Self::Scripted => None,
            Self::Anthropic => Some(ANTHROPIC_ENDPOINT),
            Self::OpenAi => Some(OPENAI_ENDPOINT),
        }
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Provider {
    type Err = UnknownProvider;

    fn from_str(name: &str) -> Result<Self, UnknownProvider> {
        let mut all = Self::ALL.into_iter();
        let name = name.trim();
        let known = all.find(|known| known.as_str().eq_ignore_ascii_case(name));
        known.ok_or_else(|| UnknownProvider {
            name: super::error::excerpt(name),
        })
    }
}

rpc_core::config! {
    /// The configuration of a model.
    #[derive(Clone, Debug)]
    pub struct ProviderConfig {
        /// The provider.
        pub provider: Provider = provider,
        /// The provider's name of the model. The scripted one ignores it.
        pub model: String = model.into(),
        /// The key. Default `None`: from the environment, or from a file.
        pub key: Option<Secret> = None => with_key(Option<Secret>),
        /// The folder of the configuration, whose `credentials/<provider>.key` may have the key.
        /// Default none.
        pub folder: Option<PathBuf> = None => with_folder(Option<PathBuf>),
        /// The longest answer in tokens. Default 4,096.
        pub max_tokens: u32 = 4096 => with_max_tokens,
        /// The timeouts and attempts of requests.
        pub policy: RequestPolicy = RequestPolicy::default() => with_policy,
    }
    /// Creates the configuration of a model of this provider.
    pub fn new(provider: Provider, model: impl Into<String>);
}

impl ProviderConfig {
    /// Returns the key: that of the environment, otherwise the configured one, otherwise that of
    /// the file. An empty one counts as none. `None` for a provider that requires none. Reads a
    /// small file.
    ///
    /// # Errors
    /// [`ModelError::NoKey`] if there is none; [`ModelError::Setup`] if the file cannot be read.
    pub fn find_key(
        &self,
        env: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Option<Secret>, ModelError> {
        let Some(variable) = self.provider.key_variable() else {
            return Ok(None);
        };
        let given = self.key.as_ref().map(|key| key.expose().to_owned());
        let filled = |key: &String| !key.trim().is_empty();
        let key = env(variable)
            .filter(filled)
            .or_else(|| given.filter(filled));
        let key = match (key, &self.folder) {
            (Some(key), _) => Some(key),
            (None, Some(folder)) => from_file(self.provider, folder)?.filter(filled),
            (None, None) => None,
        };
        match key {
            Some(key) => Ok(Some(Secret::from(key.trim()))),
            None => Err(ModelError::NoKey {
                provider: self.provider.as_str(),
                variable,
            }),
        }
    }
}

fn from_file(provider: Provider, folder: &Path) -> Result<Option<String>, ModelError> {
    let name = format!("{provider}.key");
    let read = |path: &Path| {
        let mut text = String::new();
        let file = std::fs::File::open(path)?;
        file.take(MAX_KEY_FILE).read_to_string(&mut text)?;
        Ok::<_, std::io::Error>(text)
    };
    match read(&folder.join("credentials").join(&name)) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(ModelError::Setup {
            message: format!("credentials/{name} cannot be read: {}", error.kind()),
        }),
    }
}

/// Returns the model of this configuration. `env` reads the environment: `&|name|
/// std::env::var(name).ok()`. Reads a small file, but opens no connection.
///
/// # Errors
/// [`ModelError::NoKey`]; [`ModelError::Setup`] for an invalid address, key or file, for TLS that
/// cannot be set up, and for a provider on the network in a build without the feature `llm`.
pub fn build(
    config: &ProviderConfig,
    env: &dyn Fn(&str) -> Option<String>,
    http: &HttpClient,
) -> Result<Arc<dyn ChatModel>, ModelError> {
    match config.provider {
        Provider::Scripted => Ok(Arc::new(Scripted::default().with_commands(true))),
        provider => on_the_network(provider, config, env, http),
    }
}

#[cfg(not(feature = "llm"))]
fn on_the_network(
    provider: Provider,
    _config: &ProviderConfig,
    _env: &dyn Fn(&str) -> Option<String>,
    _http: &HttpClient,
) -> Result<Arc<dyn ChatModel>, ModelError> {
    Err(ModelError::Setup {
        message: format!(
            "this build has no HTTP client for provider '{provider}': build it with \
             '--features llm'"
        ),
    })
}

#[cfg(feature = "llm")]
fn on_the_network(
    provider: Provider,
    config: &ProviderConfig,
    env: &dyn Fn(&str) -> Option<String>,
    http: &HttpClient,
) -> Result<Arc<dyn ChatModel>, ModelError> {
    use super::anthropic::{Anthropic, AnthropicConfig};
    use super::openai::{OpenAi, OpenAiConfig};

    let key = config.find_key(env)?;
    let given = provider.endpoint_variable().and_then(env);
    let given = given.filter(|url| !url.trim().is_empty());
    let url = given
        .as_deref()
        .map(str::trim)
        .or_else(|| provider.default_endpoint())
        .unwrap_or_default();
    let (model, unencrypted): (Arc<dyn ChatModel>, bool) = match provider {
        Provider::OpenAi => {
            let config = OpenAiConfig::new(&config.model)
                .with_base_url(url)
                .with_key(key)
                .with_max_tokens(Some(config.max_tokens))
                .with_usage(true)
                .with_policy(config.policy);
            let model = OpenAi::with_http(config, http)?;
            let unencrypted = model.goes_unencrypted();
            (Arc::new(model), unencrypted)
        }
        _ => {
            let config = AnthropicConfig::new(&config.model)
                .with_url(url)
                .with_key(key)
                .with_max_tokens(config.max_tokens)
                .with_policy(config.policy);
            let model = Anthropic::with_http(config, http)?;
            let unencrypted = model.goes_unencrypted();
            (Arc::new(model), unencrypted)
        }
    };
    if unencrypted {
        tracing::warn!(%provider, "the key and all questions go over the network unencrypted");
    }
    Ok(model)
}

#[cfg(test)]
mod tests;
