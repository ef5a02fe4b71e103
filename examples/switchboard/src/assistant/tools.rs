//! [`Tools`]: the tools that a model can call.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::{Map, Value, json};
use snek_proto::llm::chat::{ChatMessage, Role};
use snek_proto::llm::tool::{Param, ParamType, ToolDefinition};
use snek_proto::llm::toolloop::ToolFailure;

use crate::assistant::replies;
use crate::text::shortened;

/// Most messages that a search returns, and their length in characters.
const MAX_FOUND: usize = 10;
const MAX_LINE: usize = 300;

/// The input of tools besides arguments. Time is a value, so that a test can choose it.
#[derive(Clone, Debug)]
pub struct ToolContext {
    /// The earlier messages of the channel, oldest first.
    pub past: Vec<Arc<ChatMessage>>,
    /// The time of the call.
    pub now: SystemTime,
}

/// The function of a tool. All required arguments are present. The result and the error are for the
/// model.
pub type Function =
    Arc<dyn Fn(&Map<String, Value>, &ToolContext) -> Result<Value, String> + Send + Sync>;

/// A set of tools.
#[derive(Clone)]
pub struct Tools {
    definitions: Vec<ToolDefinition>,
    functions: Vec<Function>,
}

rpc_core::debug_fields!([] Tools, this => { definitions: this.definitions });

impl Default for Tools {
    fn default() -> Self {
        Self::new()
    }
}

impl Tools {
    /// Creates the tools `search` and `time`.
    pub fn new() -> Self {
        let none = Self {
            definitions: Vec::new(),
            functions: Vec::new(),
        };
        let search_definition = ToolDefinition::new(
            "search",
            "Finds messages in the recent history of this channel that hold a text.",
        )
        .param(Param::new("query", ParamType::String));
        let time = ToolDefinition::new("time", "Tells the time of day, in UTC.");
        none.with(
            search_definition,
            Arc::new(|arguments, cx| match text(arguments, "query")?.trim() {
                "" => Err("the text to be searched is empty".to_owned()),
                query => Ok(search(query, &cx.past)),
            }),
        )
        .with(time, Arc::new(|_, cx| Ok(replies::time(cx.now).into())))
    }

    /// Adds a tool, unless its name is one that the protocol excludes.
    pub fn with(mut self, definition: ToolDefinition, function: Function) -> Self {
        if !ToolDefinition::is_excluded(definition.name()) {
            self.definitions.push(definition);
            self.functions.push(function);
        }
        self
    }

    /// Returns the definitions for the model.
    pub fn definitions(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    /// Runs a tool.
    ///
    /// # Errors
    /// [`ToolFailure`].
    pub fn run(
        &self,
        name: &str,
        arguments: &Map<String, Value>,
        cx: &ToolContext,
    ) -> Result<Value, ToolFailure> {
        let mut all = self.definitions.iter().zip(&self.functions);
        let found = all.find(|(definition, _)| definition.name() == name);
        let Some((definition, function)) = found else {
            return Err(ToolFailure::Call(format!("there is no tool {name:?}")));
        };
        let mut required = definition
            .params()
            .iter()
            .filter(|param| param.is_required());
        if let Some(missing) = required.find(|param| !arguments.contains_key(param.name())) {
            let why = format!("the argument {:?} is missing", missing.name());
            return Err(ToolFailure::Call(why));
        }
        function(arguments, cx).map_err(ToolFailure::Tool)
    }
}

/// Returns a text argument; empty if it is missing.
pub(crate) fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    match arguments.get(name) {
        Some(Value::String(text)) => Ok(text),
        None | Some(Value::Null) => Ok(""),
        Some(_) => Err(format!("the argument {name:?} has to be a string")),
    }
}

/// Returns the newest messages that contain the text, oldest first.
fn search(query: &str, past: &[Arc<ChatMessage>]) -> Value {
    let query = query.to_lowercase();
    let spoken = past
        .iter()
        .filter(|message| matches!(message.role, Role::User | Role::Assistant));
    let mut texts = spoken
        .rev()
        .map(|message| message.content.text())
        .filter(|text| text.to_lowercase().contains(&query));
    let found = texts.by_ref().take(MAX_FOUND);
    let mut found: Vec<_> = found
        .map(|text| shortened(&text, MAX_LINE).into_owned())
        .collect();
    found.reverse();
    match texts.count() {
        0 => json!({ "found": found }),
        older => json!({ "found": found, "older": older }),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn run(name: &str, arguments: &Value) -> Result<Value, ToolFailure> {
        let lines = ["Ann: Tea?", "Bo: coffee", "Ann: no tea then"];
        let mut past: Vec<_> = lines
            .into_iter()
            .map(|text| Arc::new(ChatMessage::user(text)))
            .collect();
        past.push(Arc::new(ChatMessage::tool("x", "tea")));
        let cx = ToolContext {
            past,
            now: UNIX_EPOCH + Duration::from_secs(3723),
        };
        let arguments = arguments.as_object().unwrap();
        Tools::new().run(name, arguments, &cx)
    }

    #[test]
    fn tools_do_what_their_descriptions_say() {
        assert_eq!(run("time", &json!({})), Ok(json!("it is 01:02:03 UTC")));
        assert_eq!(
            run("search", &json!({"query": "TEA"})),
            Ok(json!({"found": ["Ann: Tea?", "Ann: no tea then"]}))
        );
        assert_eq!(
            run("search", &json!({"query": "beer"})),
            Ok(json!({"found": []}))
        );
    }

    #[test]
    fn a_wrong_call_is_explained() {
        for (name, arguments, why) in [
            ("fly", json!({}), "no tool"),
            ("search", json!({}), "missing"),
            ("search", json!({"query": 7}), "string"),
            ("search", json!({"query": " "}), "empty"),
        ] {
            let error = run(name, &arguments).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
