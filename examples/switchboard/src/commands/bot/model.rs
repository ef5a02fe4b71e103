//! The options of the bot's language model, and the assistant that is made of them.

use std::time::Duration;

use snek_proto::limits::HTTP_CONNECT_TIMEOUT;
use snek_proto::llm::image::ImageFormat;

use crate::assistant::Assistant;
use crate::assistant::conversation::{ConversationLimits, Conversations};
use crate::assistant::pictures::Pictures;
use crate::cli::Failure;
use crate::commands::choice;
use crate::model::http::RequestPolicy;
use crate::model::options::ModelArgs;
use crate::model::scripted::Scripted;

/// The pause of the scripted model before each piece: its answers can be seen to grow.
const PACE: Duration = Duration::from_millis(40);
/// How long the model may be silent, unless the user says otherwise.
const SILENCE: Duration = Duration::from_secs(190);
/// How long an answer may take.
const TOTAL: Duration = Duration::from_secs(600);

#[derive(Debug, clap::Args)]
pub(crate) struct BotModelArgs {
    #[command(flatten)]
    pub(crate) model: ModelArgs,
    #[command(flatten)]
    images: ImageArgs,
}

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Images")]
struct ImageArgs {
    /// How images are shown to the model (they are fetched if built with '--features fetch').
    #[arg(long, default_value = "openai", value_parser = choice([
        ("openai", "Blocks of their own, in the format of each provider", ImageFormat::OpenAi),
        ("deepseek", "References within the text", ImageFormat::DeepSeek),
    ]))]
    image_format: ImageFormat,
    /// Fetch images from this machine and from private networks too.
    #[arg(long)]
    allow_private_images: bool,
}

/// What answers, what fetches the images that messages name, and the model in words.
type Thinker = (Assistant, Option<Box<dyn Pictures>>, String);

/// The assistant, who fetches images for it, and where its model is.
pub(crate) fn assistant(args: &BotModelArgs) -> Result<Thinker, Failure> {
    let policy = RequestPolicy::default()
        .with_head_timeout(HTTP_CONNECT_TIMEOUT.saturating_add(SILENCE))
        .with_idle_timeout(SILENCE)
        .with_total_timeout(Some(TOTAL));
    let scripted = Scripted::default().with_pace(PACE);
    let (model, config) = args.model.build(scripted, policy)?;
    let limits = ConversationLimits::default().with_tokens(config.context_tokens);
    let mut assistant = Assistant::new(model);
    assistant.format = args.images.image_format;
    assistant.conversations = Conversations::new(limits);
    if let Some(system) = &args.model.system {
        assistant.system.clone_from(system);
    }
    Ok((assistant, pictures(&args.images)?, config.place()))
}

#[cfg(feature = "fetch")]
fn pictures(args: &ImageArgs) -> Result<Option<Box<dyn Pictures>>, Failure> {
    use snek_proto::llm::image::fetch::{FetchConfig, ImageFetcher};
    let config = FetchConfig {
        allow_private: args.allow_private_images,
        ..FetchConfig::default()
    };
    let fetcher = ImageFetcher::new(config).map_err(Failure::new)?;
    Ok(Some(Box::new(fetcher)))
}

#[cfg(not(feature = "fetch"))]
fn pictures(args: &ImageArgs) -> Result<Option<Box<dyn Pictures>>, Failure> {
    if args.allow_private_images {
        return Err(Failure::usage(
            "--allow-private-images: this build fetches no images; build it with '--features fetch'",
        ));
    }
    Ok(None)
}
