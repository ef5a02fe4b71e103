//! What the gateway's models can ask for: [`Tool`], one of them, and [`Tools`], all of them.

mod adapter;
mod builtin;
mod load;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use snek_proto::llm::tool::ToolDefinition;

pub use self::adapter::{ChannelAdapter, Incoming, Outgoing, PostError};
pub use self::builtin::{Clock, Echo, builtin};
pub use self::load::{LoadWarning, PluginEntry, PluginError, PluginLimits, Problem, load};

/// What every failure of a tool starts with.
const FAILED: &str = "tool execution failed: ";
/// Most characters of a reason that is passed on.
const MAX_REASON: usize = 300;
/// The longest name of a tool that the model services accept.
const MAX_NAME: usize = 64;

/// What a tool has to say, for the model and for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The text.
    pub content: String,
    /// Whether it is about a failure.
    pub is_error: bool,
}

impl ToolOutput {
    /// A result.
    pub fn new(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            is_error: false,
        }
    }

    /// A failure that the tool itself explains.
    pub fn error(content: impl Into<String>) -> Self {
        Self {
            content: content.into(),
            is_error: true,
        }
    }

    /// `tool execution failed: REASON`. Only the reason's first line is kept, without control
    /// characters and at most 300 characters of it: it is shown to strangers.
    #[must_use]
    pub fn failed(reason: &str) -> Self {
        Self::error(format!("{FAILED}{}", short(reason)))
    }
}

/// The first line of a text, short and without control characters.
pub(crate) fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let shown = line.chars().filter(|c| !c.is_control());
    shown.take(MAX_REASON).collect()
}

/// A tool, or what else a plugin can be.
#[async_trait]
pub trait Tool: Send + Sync {
    /// The name in the configuration.
    fn name(&self) -> &str;

    /// What it is instead of a tool: it connects a chat service, and the model cannot call it.
    /// Default: a tool.
    fn adapter(&self) -> Option<&dyn ChannelAdapter> {
        None
    }

    /// What the model is told of it, its own name for the tool included. `None`: nothing, so that
    /// the model does not call it.
    fn definition(&self) -> Option<&ToolDefinition>;

    /// Runs it. `input` is the text of a JSON object. A failure is an output too.
    ///
    /// # Cancel safety
    /// Dropping the future ends the call; what the tool has done until then stays done.
    async fn call(&self, input: &str) -> ToolOutput;
}

/// The tools and channel adapters of a gateway, in the order of its configuration. Cheap to clone.
#[derive(Clone, Default)]
pub struct Tools {
    all: Vec<Arc<dyn Tool>>,
    definitions: Vec<ToolDefinition>,
    /// What is callable, by the name that the model uses.
    callable: HashMap<String, Arc<dyn Tool>>,
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

impl Tools {
    /// No tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one after the others.
    ///
    /// The model calls a tool by the name in its definition, and one without a definition (which
    /// it is not told of) is called by its name in the configuration.
    ///
    /// # Errors
    /// [`PluginError`] if one of its names is taken, or the definition's is one that model services
    /// refuse. Nothing was added.
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

    /// How many there are, channel adapters included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The names in the configuration, in its order: what `plugin.list` answers.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.all.iter().map(|tool| tool.name())
    }

    /// What the model is told, in order.
    #[must_use]
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// Those that an agent may use, by either of their names, and the names in the list that are
    /// none. An empty list stands for all. What is left out is neither offered nor callable.
    #[must_use]
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

    /// The names of the channel adapters.
    pub fn adapters(&self) -> impl Iterator<Item = &str> {
        let adapters = self.all.iter().filter(|tool| tool.adapter().is_some());
        adapters.map(|tool| tool.name())
    }

    /// The channel adapter of this name.
    #[must_use]
    pub fn adapter(&self, name: &str) -> Option<&dyn ChannelAdapter> {
        let named = self.all.iter().find(|tool| tool.name() == name)?;
        named.adapter()
    }

    /// Runs a tool by the name that the model uses. A name that is none, and a panic, are outputs
    /// too: `unknown tool: NAME` and `tool execution failed: panic`.
    ///
    /// # Cancel safety
    /// As [`Tool::call`].
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

/// Whether the model services accept a tool of this name.
fn is_valid(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(fits)
}
