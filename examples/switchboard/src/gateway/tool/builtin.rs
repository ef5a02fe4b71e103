//! Tools that need no plugin: [`Echo`] and [`Clock`].

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use serde_json::{Map, Value};
use snek_proto::llm::tool::{Param, ParamType, ToolDefinition};

use super::{PluginError, Tool, ToolOutput};
use crate::replies;

/// Returns the built-in tool of a path like `builtin:echo`, without the prefix.
///
/// # Errors
/// [`PluginError::UnknownBuiltin`].
pub fn builtin(which: &str, name: &str) -> Result<Arc<dyn Tool>, PluginError> {
    match which {
        "echo" => Ok(Arc::new(Echo::new(name))),
        "clock" => Ok(Arc::new(Clock::new(name))),
        _ => Err(PluginError::UnknownBuiltin(which.to_owned())),
    }
}

/// A tool that repeats its message.
#[derive(Clone, Debug)]
pub struct Echo {
    definition: ToolDefinition,
}

impl Echo {
    /// Creates the tool with this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let definition = ToolDefinition::new(name, "Repeats a message.")
            .param(Param::new("message", ParamType::String));
        Self { definition }
    }
}

#[async_trait]
impl Tool for Echo {
    fn name(&self) -> &str {
        self.definition.name()
    }

    fn definition(&self) -> Option<&ToolDefinition> {
        Some(&self.definition)
    }

    async fn call(&self, input: &str) -> ToolOutput {
        match serde_json::from_str::<Map<String, Value>>(input) {
            Ok(arguments) => match arguments.get("message") {
                Some(Value::String(text)) => ToolOutput::new(text),
                _ => ToolOutput::new(input),
            },
            Err(_) => ToolOutput::error("the input has to be a JSON object"),
        }
    }
}

/// A tool that returns the time of day.
#[derive(Clone, Debug)]
pub struct Clock {
    definition: ToolDefinition,
}

impl Clock {
    /// Creates the tool with this name.
    #[must_use]
    pub fn new(name: &str) -> Self {
        let definition = ToolDefinition::new(name, "Tells the time of day, in UTC.");
        Self { definition }
    }
}

#[async_trait]
impl Tool for Clock {
    fn name(&self) -> &str {
        self.definition.name()
    }

    fn definition(&self) -> Option<&ToolDefinition> {
        Some(&self.definition)
    }

    async fn call(&self, _input: &str) -> ToolOutput {
        ToolOutput::new(replies::time(SystemTime::now()))
    }
}
