//! What a configuration sets up, in words.

use super::super::config::{Config, DataDir};
use crate::model::provider::Provider;

/// Describes a configuration in a few lines for people.
pub fn describe(config: &Config) -> String {
    let gateway = &config.gateway;
    let data = match &gateway.data {
        DataDir::Memory => "in memory only".to_owned(),
        DataDir::Folder(folder) => folder.display().to_string(),
    };
    let model = &config.agent.model;
    let model = match model.provider() {
        Provider::Scripted => Provider::Scripted.title().to_owned(),
        provider => format!("{provider} {}", model.model_name()),
    };
    let limit = |limit: Option<u64>| limit.map_or("none".to_owned(), |limit| limit.to_string());
    format!(
        "listens on {}:{}\nremembers: {data}\nagent {:?}: {}\n{} plugins, {} bindings\n\
         token budgets: session {}, day {}, month {}",
        gateway.bind,
        gateway.port,
        config.agent.id,
        model,
        config.plugins.len(),
        config.bindings.len(),
        limit(config.budgets.session),
        limit(config.budgets.daily),
        limit(config.budgets.monthly),
    )
}
