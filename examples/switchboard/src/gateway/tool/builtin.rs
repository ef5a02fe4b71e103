//! Tools that need no plugin: `echo` and `clock`.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use serde_json::{Map, Value};
use snek_proto::llm::tool::{Param, ParamType, ToolDefinition};

use super::{PluginError, Tool, ToolOutput};
use crate::assistant::replies;

/// Returns the built-in tool of a path like `builtin:echo`, without the prefix.
///
/// # Errors
/// [`PluginError::UnknownBuiltin`].
pub fn builtin(which: &str, name: &str) -> Result<Arc<dyn Tool>, PluginError> {
    let (definition, run): (_, fn(&str) -> ToolOutput) = match which {
        "echo" => {
            let message = Param::new("message", ParamType::String);
            let definition = ToolDefinition::new(name, "Repeats a message.").param(message);
            (definition, echo)
        }
        "clock" => (
            ToolDefinition::new(name, "Tells the time of day, in UTC."),
            |_| ToolOutput::new(replies::time(SystemTime::now())),
        ),
        _ => return Err(PluginError::UnknownBuiltin(which.to_owned())),
    };
    Ok(Arc::new(Builtin { definition, run }))
}

fn echo(input: &str) -> ToolOutput {
    match serde_json::from_str::<Map<String, Value>>(input) {
        Ok(arguments) => match arguments.get("message") {
            Some(Value::String(text)) => ToolOutput::new(text),
            _ => ToolOutput::new(input),
        },
        Err(_) => ToolOutput::error("the input has to be a JSON object"),
    }
}

#[derive(Debug)]
struct Builtin {
    definition: ToolDefinition,
    run: fn(&str) -> ToolOutput,
}

#[async_trait]
impl Tool for Builtin {
    fn name(&self) -> &str {
        self.definition.name()
    }

    fn definition(&self) -> Option<&ToolDefinition> {
        Some(&self.definition)
    }

    async fn call(&self, input: &str) -> ToolOutput {
        (self.run)(input)
    }
}
