//! What a configuration sets up, in words.

use super::super::config::{Config, DataDir};

/// Describes a configuration in a few lines for people.
#[must_use]
pub fn describe(config: &Config) -> String {
    let gateway = &config.gateway;
    let data = match &gateway.data {
        DataDir::Memory => "in memory only".to_owned(),
        DataDir::Folder(folder) => folder.display().to_string(),
    };
    let limit = |limit: Option<u64>| limit.map_or("none".to_owned(), |limit| limit.to_string());
    format!(
        "listens on {}:{}\nremembers: {data}\nagent {:?}: {} {}\n{} plugins, {} bindings\n\
         token budgets: session {}, day {}, month {}",
        gateway.bind,
        gateway.port,
        config.agent.id,
        config.agent.model.provider(),
        config.agent.model.model_name(),
        config.plugins.len(),
        config.bindings.len(),
        limit(config.budgets.session),
        limit(config.budgets.daily),
        limit(config.budgets.monthly),
    )
}
