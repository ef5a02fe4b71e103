//! The tools of the gateway's models: [`Tool`] and [`Tools`].

mod adapter;
mod builtin;
mod load;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use snek_proto::llm::tool::ToolDefinition;

use crate::text::{is_control, shortened};

pub use self::adapter::{ChannelAdapter, Incoming, Outgoing, PostError};
pub use self::builtin::builtin;
pub use self::load::{LoadWarning, PluginEntry, PluginError, PluginLimits, load};

/// The prefix of every failure of a tool.
const FAILED: &str = "tool execution failed: ";
/// Most characters of a reason.
const MAX_REASON: usize = 300;
/// The longest name of a tool that the model services accept.
const MAX_NAME: usize = 64;

/// The output of a tool, for the model and for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text.
    pub content: String,
    /// Whether it is a failure.
    pub is_error: bool,
}

impl ToolOutput {
    /// Creates a result.
    pub fn new(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            is_error: false,
        }
    }

    /// Creates a failure that the tool itself explains.
    pub fn error(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            is_error: true,
        }
    }

    /// Creates the failure `tool execution failed: REASON`. Strangers see it, so it has only the
    /// reason's first line, without control characters and at most 300 characters long.
    pub fn failed(reason: &str) -> Self {
        Self::error(format!("{FAILED}{}", short(reason)))
    }
}

/// Returns the first line of a text, shortened and without control characters.
pub(crate) fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let shown: String = line.chars().filter(|c| !is_control(*c)).collect();
    shortened(&shown, MAX_REASON).into_owned()
}

/// A tool or another kind of plugin.
#[async_trait]
pub trait Tool: Send + Sync {
    /// Returns the name in the configuration.
    fn name(&self) -> &str;

    /// Returns the channel adapter, which the model cannot call, if this is one. Default: none.
    fn adapter(&self) -> Option<&dyn ChannelAdapter> {
        None
    }

    /// Returns the definition for the model, including the tool's own name. With `None` the model
    /// does not learn of the tool.
    fn definition(&self) -> Option<&ToolDefinition>;

    /// Runs the tool. `input` is the text of a JSON object. A failure is an output too.
    ///
    /// # Cancel safety
    /// Dropping the future ends the call; its effects remain.
    async fn call(&self, input: &str) -> ToolOutput;
}

/// The tools and channel adapters of a gateway, in the order of its configuration. Cheap to clone.
#[derive(Clone, Default)]
pub struct Tools {
    all: Vec<Arc<dyn Tool>>,
    definitions: Vec<ToolDefinition>,
    /// The callable tools, by the name that the model uses.
    callable: HashMap<String, Arc<dyn Tool>>,
}

rpc_core::debug_fields!([] Tools, this => { names: this.names().collect::<Vec<_>>() });

impl Tools {
    /// Creates an empty list.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool at the end.
    ///
    /// The model calls a tool by the name in its definition, and one without a definition by its
    /// name in the configuration.
    ///
    /// # Errors
    /// [`PluginError`] if one of its names is taken, or model services refuse the name in its
    /// definition. Nothing was added.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), PluginError> {
        if self.all.iter().any(|other| other.name() == tool.name()) {
            return Err(PluginError::DuplicatePlugin);
        }
        if tool.adapter().is_none() {
            let definition = tool.definition();
            let name = definition.map_or(tool.name(), ToolDefinition::name);
            if definition.is_some() && !is_valid(name) {
                return Err(PluginError::ToolName(name.to_owned()));
            }
            if let Some(owner) = self.callable.get(name) {
                return Err(PluginError::DuplicateTool {
                    tool: name.to_owned(),
                    owner: owner.name().to_owned(),
                });
            }
            self.definitions.extend(definition.cloned());
            self.callable.insert(name.to_owned(), tool.clone());
        }
        self.all.push(tool);
        Ok(())
    }

    /// Returns the names in the configuration, in its order, as the answer to `plugin.list`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|tool| tool.name())
    }

    /// Returns the definitions for the model, in order.
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// Returns the tools that an agent may use, by either of their names, and the unknown names in
    /// the list. An empty list means all tools. Other tools are neither offered nor callable.
    pub fn only(&self, allowed: &[String]) -> (Self, Vec<String>) {
        if allowed.is_empty() {
            return (self.clone(), Vec::new());
        }
        let mut chosen = Self::new();
        let mut unknown = allowed.to_vec();
        for tool in &self.all {
            let offered = tool.definition().map(ToolDefinition::name);
            let is_it = |name: &String| name == tool.name() || offered == Some(name.as_str());
            if allowed.iter().any(is_it) {
                unknown.retain(|name| !is_it(name));
                // The names do not clash: they did not before.
                let _ = chosen.add(tool.clone());
            }
        }
        (chosen, unknown)
    }

    /// Returns the names of the channel adapters.
    pub fn adapters(&self) -> impl Iterator<Item = &str> {
        let adapters = self.all.iter().filter(|tool| tool.adapter().is_some());
        adapters.map(|tool| tool.name())
    }

    /// Returns the channel adapter of this name.
    pub fn adapter(&self, name: &str) -> Option<&dyn ChannelAdapter> {
        let named = self.all.iter().find(|tool| tool.name() == name)?;
        named.adapter()
    }

    /// Runs a tool by the name that the model uses. An unknown name and a panic are outputs too:
    /// `unknown tool: NAME` and `tool execution failed: panic`.
    ///
    /// # Cancel safety
    /// As for [`Tool::call`].
    pub async fn call(&self, name: &str, input: &str) -> ToolOutput {
        let Some(tool) = self.callable.get(name) else {
            return ToolOutput::error(format!("unknown tool: {}", short(name)));
        };
        let call = AssertUnwindSafe(async { tool.call(input).await });
        match call.catch_unwind().await {
            Ok(output) => output,
            Err(_) => ToolOutput::failed("panic"),
        }
    }
}

/// Returns whether the model services accept a tool of this name.
fn is_valid(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(fits)
}
