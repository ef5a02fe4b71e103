//! The bot's language model: its options, and the assistant that is made of them.

use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use examples::assistant::{Assistant, Step};
use examples::cli::{self, Failure};
use examples::model::ChatModel;
use examples::model::scripted::Scripted;
use examples::pictures::Pictures;
use snek_proto::limits::DEFAULT_OPENAI_URL;
use snek_proto::llm::image::ImageFormat;

/// The pause of the scripted model before each piece: its answers can be seen to grow.
const PACE: Duration = Duration::from_millis(40);

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Language model")]
pub(crate) struct ModelArgs {
    /// Who answers: 'scripted' knows a few rules and needs nothing; 'openai' is any server with
    /// OpenAI's interface, with the key in OPENAI_API_KEY (build with '--features llm').
    #[arg(long, value_enum, default_value_t = Kind::Scripted)]
    pub(crate) model: Kind,
    /// Where the interface is.
    #[arg(long, value_name = "URL", env = "OPENAI_BASE_URL", default_value = DEFAULT_OPENAI_URL)]
    model_url: String,
    /// The model's name, as its provider has it.
    #[arg(long, value_name = "NAME")]
    model_name: Option<String>,
    /// What the model is told of its part.
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// How long the model may be silent.
    #[arg(long, value_name = "TIME", default_value = "190s", value_parser = cli::duration)]
    model_timeout: Duration,
    /// How images are shown to the model (they are fetched if built with '--features fetch').
    #[arg(long, value_enum, default_value_t = Format::Openai)]
    image_format: Format,
    /// Fetch images from this machine and from private networks too, whoever names them.
    #[arg(long)]
    allow_private_images: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    /// A few rules, no network.
    Scripted,
    /// A server with OpenAI's interface.
    Openai,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// Blocks of their own.
    Openai,
    /// References within the text.
    Deepseek,
}

impl From<Format> for ImageFormat {
    fn from(format: Format) -> Self {
        match format {
            Format::Openai => Self::OpenAi,
            Format::Deepseek => Self::DeepSeek,
        }
    }
}

/// The assistant, and who fetches images for it.
pub(crate) fn assistant(
    args: &ModelArgs,
) -> Result<(Assistant, Option<Box<dyn Pictures>>), Failure> {
    let model: Arc<dyn ChatModel> = match args.model {
        Kind::Scripted => Arc::new(Scripted::default().with_pace(PACE)),
        Kind::Openai => openai(args)?,
    };
    let mut assistant = Assistant::new(model)
        .with_format(args.image_format.into())
        .with_watcher(Arc::new(log));
    if let Some(system) = &args.system {
        assistant = assistant.with_system(system);
    }
    Ok((assistant, pictures(args)?))
}

fn log(step: &Step<'_>) {
    match step {
        Step::Called { tool, arguments } => {
            // The arguments may hold what people said.
            tracing::info!(%tool, arguments = arguments.len(), "tool call");
        }
        Step::Returned { tool, result } => {
            tracing::info!(%tool, ok = result.is_ok(), "tool result");
        }
        other => tracing::debug!(step = ?other, "answering"),
    }
}

#[cfg(feature = "llm")]
fn openai(args: &ModelArgs) -> Result<Arc<dyn ChatModel>, Failure> {
    use examples::model::http::{HttpClient, RequestPolicy};
    use examples::model::openai::{OpenAi, OpenAiConfig};
    use snek_proto::limits::HTTP_CONNECT_TIMEOUT;
    let name = args.model_name.as_deref().ok_or_else(|| {
        Failure::usage("no model: give --model-name NAME, as the provider calls it")
    })?;
    let key = cli::variable("OPENAI_API_KEY");
    let key = key.filter(|key| !key.trim().is_empty());
    // Servers of one's own often want none.
    if key.is_none() && args.model_url == DEFAULT_OPENAI_URL {
        return Err(Failure::usage(
            "no key: set the environment variable OPENAI_API_KEY, or give --model-url for a \
             server that needs none",
        ));
    }
    let has_key = key.is_some();
    let policy = RequestPolicy::default()
        .with_head_timeout(HTTP_CONNECT_TIMEOUT.saturating_add(args.model_timeout))
        .with_idle_timeout(args.model_timeout)
        .with_total_timeout(Some(Duration::from_secs(600)));
    let config = OpenAiConfig::new(name)
        .with_base_url(&args.model_url)
        .with_key(key.map(Into::into))
        .with_policy(policy);
    let model = OpenAi::with_http(config, &HttpClient::new(HTTP_CONNECT_TIMEOUT))
        .map_err(|error| Failure::usage(format_args!("--model-url: {error}")))?;
    if model.goes_unencrypted() {
        let key = if has_key { "the key and " } else { "" };
        cli::complain(format_args!(
            "warning: {key}all questions go over the network unencrypted: use https://"
        ));
    }
    Ok(Arc::new(model))
}

#[cfg(not(feature = "llm"))]
fn openai(args: &ModelArgs) -> Result<Arc<dyn ChatModel>, Failure> {
    let _ = (&args.model_url, &args.model_name, args.model_timeout);
    Err(Failure::usage(
        "this build has no HTTP client for --model openai: build it with '--features llm,fetch', \
         as in 'cargo run -p examples --features llm,fetch -- bot --model openai'",
    ))
}

#[cfg(feature = "fetch")]
fn pictures(args: &ModelArgs) -> Result<Option<Box<dyn Pictures>>, Failure> {
    use snek_proto::llm::image::fetch::{FetchConfig, ImageFetcher};
    let config = FetchConfig::default().with_allow_private(args.allow_private_images);
    let fetcher = ImageFetcher::new(config).map_err(Failure::new)?;
    Ok(Some(Box::new(fetcher)))
}

#[cfg(not(feature = "fetch"))]
fn pictures(args: &ModelArgs) -> Result<Option<Box<dyn Pictures>>, Failure> {
    if args.allow_private_images {
        return Err(Failure::usage(
            "--allow-private-images: this build fetches no images; build it with '--features fetch'",
        ));
    }
    Ok(None)
}
