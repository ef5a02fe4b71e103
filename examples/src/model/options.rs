//! [`ModelArgs`]: the options of a program with a language model, and [`model`], which creates it.

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;

use super::ChatModel;
use super::http::{HttpClient, RequestPolicy};
use super::provider::{Provider, ProviderConfig, build};
use super::scripted::Scripted;
use crate::cli::{self, Failure};

/// How long a model may be silent, unless the user or the program says otherwise.
const MODEL_TIMEOUT: Duration = Duration::from_secs(190);

/// Which model, and where.
#[allow(
    clippy::doc_markdown,
    reason = "comments on options are help texts, not Markdown"
)]
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Language model")]
pub struct ModelArgs {
    /// Who thinks: 'scripted' knows a few rules and needs nothing; the others are language models (build
    /// with '--features llm'), with the key in ANTHROPIC_API_KEY or OPENAI_API_KEY.
    #[arg(long, value_enum, default_value_t = Kind::Scripted)]
    model: Kind,
    /// Where the model's interface is. Default: its provider's.
    #[arg(long, value_name = "URL")]
    model_url: Option<String>,
    /// The model's name, as its provider has it. The scripted one may have any. Default: scripted
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// How long the model may be silent. Default: 120s for a coding agent, else 190s
    #[arg(long, value_name = "TIME", value_parser = cli::duration)]
    pub model_timeout: Option<Duration>,
    /// What the model is told of its part.
    #[arg(long, value_name = "TEXT")]
    pub system: Option<String>,
    /// How long the scripted model waits before each word, to see how a slow one works.
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = cli::duration)]
    pace: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// A few rules, no network.
    Scripted,
    /// Anthropic, or a server with its interface.
    Anthropic,
    /// OpenAI, or a server with its interface.
    Openai,
}

impl ModelArgs {
    /// Returns the provider of the model.
    #[must_use]
    pub const fn provider(&self) -> Provider {
        match self.model {
            Kind::Scripted => Provider::Scripted,
            Kind::Anthropic => Provider::Anthropic,
            Kind::Openai => Provider::OpenAi,
        }
    }
}

/// Returns the model of these options, and its name. `scripted` is the default.
///
/// # Errors
/// [`Failure`] if an option is missing, or this build does not support it.
pub fn model(
    args: &ModelArgs,
    scripted: Scripted,
) -> Result<(Arc<dyn ChatModel>, String), Failure> {
    let provider = args.provider();
    let name = args.model_name.as_deref().map(str::trim);
    let name = name.filter(|name| !name.is_empty());
    if provider == Provider::Scripted {
        let model = scripted.with_pace(args.pace);
        let name = name.unwrap_or(Provider::Scripted.as_str());
        return Ok((Arc::new(model), name.to_owned()));
    }
    let Some(name) = name else {
        return Err(Failure::usage(
            "no model: give --model-name NAME, as the provider calls it",
        ));
    };
    let timeout = args.model_timeout.unwrap_or(MODEL_TIMEOUT);
    let policy = RequestPolicy::default()
        .with_head_timeout(timeout)
        .with_idle_timeout(timeout);
    let config = ProviderConfig::new(provider, name).with_policy(policy);
    // The option stands for the variable that holds another address.
    let env = |name: &str| match &args.model_url {
        Some(url) if provider.endpoint_variable() == Some(name) => Some(url.clone()),
        _ => cli::variable(name),
    };
    let model = build(&config, &env, &HttpClient::default()).map_err(Failure::usage)?;
    Ok((model, name.to_owned()))
}
