//! The options of what chooses the receiver of a message: keywords, or a language model.

use std::time::Duration;

use smarthole_proto::router::{DynRouter, Keywords};

use crate::cli::Failure;
use crate::model::options::ModelArgs;
use crate::model::scripted::Scripted;
use crate::router::model::{ModelRouter, policy};

/// The longest answer of a model, unless the user says otherwise: some tool calls.
const MAX_TOKENS: u32 = 1024;
/// How long a choice may take, with all attempts, unless the user says otherwise.
const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug, clap::Args)]
#[command(mut_arg("provider", |arg| arg.help(
    "The provider of the model that chooses the client. \
     Default: none, the words of the clients' descriptions decide"
)))]
#[command(mut_arg("max_tokens", |arg| arg.help("The longest answer, in tokens. Default: 1024")))]
#[command(mut_arg("model_timeout", |arg| arg.help("How long a choice may take. Default: 30s")))]
pub(crate) struct ChooserArgs {
    #[command(flatten)]
    model: ModelArgs,
}

impl ChooserArgs {
    /// How long a choice may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.model.model_timeout.unwrap_or(TIMEOUT)
    }
}

/// The router of these options, and what decides in it.
pub(crate) fn router(args: &ChooserArgs) -> Result<(DynRouter, String), Failure> {
    let args = &args.model;
    if args.provider.is_none() {
        // Complains about options that are of no use.
        args.build(Scripted::default(), policy())?;
        let words = "the words of the descriptions".to_owned();
        return Ok((DynRouter::new(Keywords::new()), words));
    }
    let policy = policy().with_silence(TIMEOUT);
    let mut args = args.clone();
    args.max_tokens.get_or_insert(MAX_TOKENS);
    let scripted = Scripted::default().with_commands(true);
    let (model, config) = args.build(scripted, policy)?;
    let mut router = ModelRouter::new(model);
    if let Some(system) = &args.system {
        router.system.clone_from(system);
    }
    Ok((DynRouter::new(router), config.place()))
}
