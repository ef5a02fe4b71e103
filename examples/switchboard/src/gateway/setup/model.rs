//! The model of a gateway, by its configuration and the options.

use std::sync::Arc;

use exoclaw_proto::limits::PROVIDER_IDLE_TIMEOUT;

use super::Overrides;
use crate::assistant::conversation::ConversationLimits;
use crate::cli::Failure;
use crate::gateway::config::Config;
use crate::model::http::RequestPolicy;
use crate::model::options::ModelArgs;
use crate::model::scripted::Scripted;
use crate::model::{ChatModel, ModelError};

pub(super) struct GatewayModel {
    /// The model, or the reason why there is none.
    pub(super) model: Result<Arc<dyn ChatModel>, String>,
    /// The model and where it is.
    pub(super) place: String,
    /// How much of a conversation it gets.
    pub(super) limits: ConversationLimits,
}

/// Puts settings of the model in place of the file's.
pub(super) fn with_model(config: &mut Config, own: &ModelArgs) {
    let agent = &mut config.agent;
    let provider = own.provider.unwrap_or(agent.model.provider());
    agent.model = agent.model.of(provider);
    agent.model.provider = own.provider.or(agent.model.provider);
    agent.model.model = own.model.clone().or(agent.model.model.take());
    agent.system_prompt = own.system.clone().or(agent.system_prompt.take());
}

/// Returns the model. A missing key prevents no start.
pub(super) fn model(
    config: &Config,
    overrides: &Overrides,
    env: &(dyn Fn(&str) -> Option<String> + Sync),
) -> Result<GatewayModel, Failure> {
    let policy = RequestPolicy::default().with_silence(PROVIDER_IDLE_TIMEOUT);
    let mut file = config.agent.model.clone();
    if let (None, Some(folder)) = (&file.key_file, &overrides.folder) {
        let name = format!("credentials/{}.key", file.provider());
        file.key_file = Some(folder.join(name)).filter(|path| path.exists());
    }
    let pace = overrides.model.pace.unwrap_or_default();
    let scripted = Scripted::default().with_commands(true).with_pace(pace);
    let mut limits = ConversationLimits::default().with_sent(usize::MAX);
    let mut place = "none".to_owned();
    let model = overrides.model.resolve(&file, &|name| env(name), policy);
    let model = model.and_then(|model| {
        limits.tokens = model.context_tokens;
        place = model.place();
        model.build(scripted)
    });
    let model = match model {
        Ok(model) => Ok(model),
        Err(error @ ModelError::NoKey { .. }) => Err(error.to_string()),
        Err(error) => {
            let why = error.to_string();
            // It may name a key with its table.
            let why = why.strip_prefix("[agent] ").unwrap_or(&why);
            return Err(Failure::usage(format_args!("[agent] {why}")));
        }
    };
    Ok(GatewayModel {
        model,
        place,
        limits,
    })
}
