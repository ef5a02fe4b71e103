//! [`ModelArgs`]: the settings of a model as options and in files, and how they become one
//! [`ModelConfig`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rpc_core::Secret;

use super::config::ModelConfig;
use super::http::RequestPolicy;
use super::provider::Provider;
use super::scripted::Scripted;
use super::{ChatModel, ModelError};
use crate::cli::{self, Failure, secret_file, secret_text};

/// The settings of a model that a user has made. What is left out comes from the environment, or
/// has a default.
#[allow(
    clippy::doc_markdown,
    rustdoc::bare_urls,
    reason = "comments on options are help texts, not Markdown"
)]
#[derive(Clone, Debug, Default, PartialEq, clap::Args)]
#[command(next_help_heading = "Language model")]
pub struct ModelArgs {
    /// The provider of the model. Default: scripted
    #[arg(long, value_enum)]
    pub provider: Option<Provider>,
    /// The model, by its provider's name for it. 'anthropic' has a default; the others need one.
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// The address of the provider, such as https://api.openai.com/v1. Default: OPENAI_BASE_URL,
    /// ANTHROPIC_BASE_URL, OLLAMA_HOST or VLLM_BASE_URL, else the provider's own
    #[arg(long, value_name = "URL")]
    pub base_url: Option<String>,
    /// A file with the key. Default: the key in OPENAI_API_KEY,
    /// ANTHROPIC_API_KEY, OLLAMA_API_KEY or VLLM_API_KEY
    #[arg(long, value_name = "FILE")]
    pub key_file: Option<PathBuf>,
    /// The key itself, in a file only: other users can see command lines.
    #[arg(skip)]
    pub key: Option<Secret>,
    /// A header for the provider, such as 'api-key: KEY', or @FILE with one a line; may be repeated. Prefer the file:
    /// other users can see command lines
    #[arg(long, value_name = "NAME: VALUE")]
    pub model_header: Vec<Secret>,
    /// The longest answer, in tokens. Default: 4096
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_tokens: Option<u32>,
    /// How freely the model chooses its words, from 0 to 2. Default: the provider's
    #[arg(long, value_name = "NUMBER", value_parser = temperature)]
    pub temperature: Option<f64>,
    /// Most tokens of a conversation to send; the oldest messages are left out beyond it.
    /// Default: 120000; 8192 for 'ollama'
    #[arg(long, value_name = "TOKENS")]
    pub context_tokens: Option<usize>,
    /// How long the model may be silent. Default: 190s
    #[arg(long, value_name = "TIME", value_parser = cli::timeout)]
    pub model_timeout: Option<Duration>,
    /// The instructions for the model.
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// How long the scripted model waits before each word, to see how a slow one works.
    #[arg(long, value_name = "TIME", value_parser = cli::duration)]
    pub pace: Option<Duration>,
}

/// Parses a temperature.
///
/// # Errors
/// A description of the mistake.
pub fn temperature(text: &str) -> Result<f64, String> {
    let number = text.trim().parse().ok();
    number
        .filter(|number| (0.0..=2.0).contains(number))
        .ok_or_else(|| "write a number from 0 to 2, like 0.7".to_owned())
}

impl ModelArgs {
    /// Returns the provider.
    pub fn provider(&self) -> Provider {
        self.provider.unwrap_or_default()
    }

    /// Returns the name of the model, or an empty one if a name is missing.
    pub fn model_name(&self) -> &str {
        let given = self.model.as_deref().unwrap_or_default().trim();
        if given.is_empty() {
            return self.provider().default_model();
        }
        given
    }

    /// Returns the settings of a file for this provider: the address, the key and the model of another one are none.
    pub fn of(&self, provider: Provider) -> Self {
        let mut settings = self.clone();
        if self.provider() != provider {
            settings.provider = None;
            settings.model = None;
            settings.base_url = None;
            settings.key_file = None;
            settings.key = None;
            settings.model_header.clear();
        }
        settings
    }

    /// Returns the model of these options and the environment, and its settings; `scripted` is the one without a provider,
    /// and `policy` that of a program where the options do not name another timeout.
    ///
    /// # Errors
    /// [`Failure`] if an option is missing or wrong, or this build does not support it.
    pub fn build(
        &self,
        scripted: Scripted,
        policy: RequestPolicy,
    ) -> Result<(Arc<dyn ChatModel>, ModelConfig), Failure> {
        let config = self.resolve(&Self::default(), &cli::variable, policy);
        let config = config.map_err(Failure::usage)?;
        let scripted = match self.pace {
            Some(pace) => scripted.with_pace(pace),
            None => scripted,
        };
        let model = config.build(scripted).map_err(Failure::usage)?;
        Ok((model, config))
    }

    /// Joins these options with the settings of a file: each comes from an option, else from the environment, else from
    /// the file, else it has a default. Reads the file of the key.
    ///
    /// # Errors
    /// [`ModelError::NoKey`]; [`ModelError::Setup`] for a missing name or a file that cannot be read.
    pub fn resolve(
        &self,
        file: &Self,
        env: &dyn Fn(&str) -> Option<String>,
        policy: RequestPolicy,
    ) -> Result<ModelConfig, ModelError> {
        let options = self;
        let provider = options.provider.or(file.provider).unwrap_or_default();
        let file = &file.of(provider);
        let is_given = options.provider.or(file.provider).is_some();
        if !is_given && options.model.is_none() && file.model.is_some() {
            let message = "model needs provider, such as provider = \"openai\"";
            return Err(ModelError::setup(message));
        }
        let stray = [
            ("model", options.model.is_some() && !is_given),
            ("base-url", options.base_url.is_some()),
            ("key-file", options.key_file.is_some()),
            ("model-header", !options.model_header.is_empty()),
        ];
        let stray = stray.iter().find(|(_, is_set)| *is_set);
        if let Some((name, _)) = stray.filter(|_| provider == Provider::Scripted) {
            return Err(ModelError::setup(format_args!(
                "--{name} needs --provider, such as --provider openai"
            )));
        }
        let named = Self {
            provider: Some(provider),
            model: options.model.clone().or_else(|| file.model.clone()),
            ..Self::default()
        };
        let mut config = ModelConfig::new(provider, named.model_name())
            .with_in_file(options.provider.is_none() && file.provider.is_some());
        if config.model.is_empty() {
            let setting = config.setting("model");
            return Err(ModelError::setup(format_args!(
                "{provider} needs the name of a model: give {setting}"
            )));
        }
        let from_env = |name: &str| env(name).filter(|text| !text.trim().is_empty());
        let base = options.base_url.clone();
        let base = base
            .or_else(|| from_env(&provider.base_variable()))
            .or_else(|| file.base_url.clone());
        config
            .headers
            .clone_from(match options.model_header.is_empty() {
                true => &file.model_header,
                false => &options.model_header,
            });
        (config.key, config.key_file) = key(provider, options, file, &from_env)?;
        let is_open = base.is_some() || config.key.is_some() || !config.headers.is_empty();
        if provider.needs_key() && !is_open {
            return Err(ModelError::NoKey {
                provider: provider.as_str(),
                variable: provider.key_variable(),
                setting: config.setting("key-file"),
            });
        }
        if let Some(base) = base {
            base.trim().clone_into(&mut config.base_url);
        }
        let tokens = options.max_tokens.or(file.max_tokens);
        config.max_tokens = tokens.unwrap_or(config.max_tokens);
        let tokens = options.context_tokens.or(file.context_tokens);
        config.context_tokens = tokens.unwrap_or(config.context_tokens);
        config.temperature = options.temperature.or(file.temperature);
        config.policy = match options.model_timeout.or(file.model_timeout) {
            Some(timeout) => policy.with_silence(timeout),
            None => policy,
        };
        Ok(config)
    }
}

impl ModelConfig {
    /// Returns these settings with the key that is in its file now, which may be one of a service manager.
    pub(super) fn renewed(&self) -> Result<Self, ModelError> {
        let key = match &self.key_file {
            Some(file) => read(file)?,
            None => {
                let variable = self.provider.key_variable();
                let given = cli::variable(&variable).unwrap_or_default();
                text(&variable, &given)?.or_else(|| self.key.clone())
            }
        };
        Ok(self.clone().with_key(key))
    }
}

/// Finds the key, and the file that it is in. A blank one counts as none.
fn key(
    provider: Provider,
    options: &ModelArgs,
    file: &ModelArgs,
    from_env: &dyn Fn(&str) -> Option<String>,
) -> Result<(Option<Secret>, Option<PathBuf>), ModelError> {
    if provider == Provider::Scripted {
        return Ok((None, None));
    }
    let in_file = |path: &Option<PathBuf>| path.as_deref().map_or(Ok(None), read);
    if let key @ Some(_) = in_file(&options.key_file)? {
        return Ok((key, options.key_file.clone()));
    }
    let variable = provider.key_variable();
    let in_env = from_env(&variable).unwrap_or_default();
    let given = file.key.as_ref().map_or("", |key| key.expose());
    for (place, given) in [(&*variable, &*in_env), ("key", given)] {
        if let key @ Some(_) = text(place, given)? {
            return Ok((key, None));
        }
    }
    let key = in_file(&file.key_file)?;
    let path = file.key_file.clone().filter(|_| key.is_some());
    Ok((key, path))
}

fn text(place: &str, text: &str) -> Result<Option<Secret>, ModelError> {
    let key = secret_text(place, text).map_err(ModelError::setup)?;
    Ok(key.map(|key| unquoted(place, key)))
}

/// Drops the quotes around a key, which some programs take from a file of variables as they are there.
fn unquoted(place: &str, key: Secret) -> Secret {
    let text = key.expose();
    let inner = ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    let Some(inner) = inner.map(Secret::from) else {
        return key;
    };
    tracing::warn!("the quotes around the key in {place} are left out");
    inner
}

/// Reads a key from its file, whose folder is in no error: clients may see it.
fn read(path: &Path) -> Result<Option<Secret>, ModelError> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let key = secret_file("", path).map_err(|error| {
        let why = error.why;
        ModelError::setup(format_args!("the key file {name} cannot be read: {why}"))
    })?;
    Ok(key.map(|key| unquoted(&name, key)))
}

#[cfg(test)]
mod tests;
