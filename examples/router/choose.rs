//! Who chooses: the options for it, and the router that is made of them.

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use examples::cli::{self, Failure};
use examples::model::http::HttpClient;
use examples::model::provider::{Provider, ProviderConfig, build};
use examples::router::{ModelRouter, model::policy};
use smarthole_proto::router::{Keywords, Router};

/// The longest answer of a model: some tool calls.
const MAX_TOKENS: u32 = 1024;

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Who chooses")]
pub(crate) struct ModelArgs {
    /// Who chooses the client: 'keywords' are a few rules and need nothing; the others are language models
    /// (build with '--features llm'), with the key in ANTHROPIC_API_KEY or OPENAI_API_KEY.
    #[arg(long, value_enum, default_value_t = Kind::Keywords)]
    model: Kind,
    /// Where the model's interface is. Default: its provider's.
    #[arg(long, value_name = "URL")]
    model_url: Option<String>,
    /// The model's name, as its provider has it.
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// How long a choice may take, with all attempts.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = cli::duration)]
    pub(crate) model_timeout: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    /// The words of names, capabilities and descriptions. No network.
    Keywords,
    /// Anthropic, or a server with its interface.
    Anthropic,
    /// OpenAI, or a server with its interface.
    Openai,
    /// A model that does as the text says, for tests.
    #[value(hide = true)]
    Scripted,
}

/// The router of these options.
pub(crate) fn router(args: &ModelArgs) -> Result<Arc<dyn Router>, Failure> {
    let provider = match args.model {
        Kind::Keywords => return Ok(Arc::new(Keywords::new())),
        Kind::Anthropic => Provider::Anthropic,
        Kind::Openai => Provider::OpenAi,
        Kind::Scripted => Provider::Scripted,
    };
    let name = args.model_name.as_deref().unwrap_or_default();
    if name.is_empty() && provider != Provider::Scripted {
        return Err(Failure::usage(
            "no model: give --model-name NAME, as the provider calls it",
        ));
    }
    let policy = policy()
        .with_head_timeout(args.model_timeout)
        .with_idle_timeout(args.model_timeout);
    let config = ProviderConfig::new(provider, name)
        .with_max_tokens(MAX_TOKENS)
        .with_policy(policy);
    // The option stands for the variable that holds another address.
    let env = |name: &str| match &args.model_url {
        Some(url) if provider.endpoint_variable() == Some(name) => Some(url.clone()),
        _ => cli::variable(name),
    };
    let model = build(&config, &env, &HttpClient::default()).map_err(Failure::usage)?;
    Ok(Arc::new(ModelRouter::new(model)))
}
