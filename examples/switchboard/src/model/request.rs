//! What the requests of several interfaces have in common.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;
use snek_proto::llm::chat::Role;
use snek_proto::llm::tool::ToolDefinition;

use super::{ChatRequest, ModelError};

/// Writes the body of a request for a streamed answer. The parameters of the tools stay in order.
pub(super) fn write(
    model: &str,
    messages: Vec<Value>,
    tools: &[impl Serialize],
    more: Value,
) -> Result<Vec<u8>, ModelError> {
    #[derive(Serialize)]
    struct Body<'a, T> {
        model: &'a str,
        messages: Vec<Value>,
        #[serde(skip_serializing_if = "<[T]>::is_empty")]
        tools: &'a [T],
        stream: bool,
        #[serde(flatten)]
        more: Value,
    }
    let body = Body {
        model,
        messages,
        tools,
        stream: true,
        more,
    };
    serde_json::to_vec(&body).map_err(ModelError::bad)
}

/// Returns all system messages, in order, for an interface that has one place for them.
pub(super) fn instructions(request: &ChatRequest<'_>) -> Option<String> {
    let systems = request.messages.iter().filter(|it| it.role == Role::System);
    let texts: Vec<_> = systems.map(|message| message.content.text()).collect();
    let texts: Vec<&str> = texts.iter().map(AsRef::as_ref).collect();
    let filled = texts.into_iter().filter(|text| !text.trim().is_empty());
    let joined = filled.collect::<Vec<_>>().join("\n\n");
    Some(joined).filter(|text| !text.is_empty())
}

/// Returns the schema of a tool's parameters, in the order of its definition.
pub(super) fn parameters(definition: &ToolDefinition) -> Result<Box<RawValue>, ModelError> {
    #[derive(Deserialize)]
    struct Outer {
        function: Inner,
    }
    #[derive(Deserialize)]
    struct Inner {
        parameters: Box<RawValue>,
    }
    let json = serde_json::to_string(definition).map_err(ModelError::bad)?;
    let outer: Outer = serde_json::from_str(&json).map_err(ModelError::bad)?;
    Ok(outer.function.parameters)
}

/// Returns the arguments if they are a JSON object, otherwise an empty object.
pub(super) fn object(arguments: &str) -> Value {
    let read = serde_json::from_str(arguments).ok();
    read.filter(Value::is_object)
        .unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}

/// Returns whether the arguments are a JSON object.
pub(crate) fn is_object(arguments: &str) -> bool {
    serde_json::from_str::<Value>(arguments).is_ok_and(|it| it.is_object())
}

/// Returns whether OpenAI's model reasons before it answers: it refuses `max_tokens` and a
/// temperature.
pub(super) fn is_reasoning(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or(model);
    let numbered = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
    let is_gpt = name.starts_with("gpt-5") && !name.starts_with("gpt-5-chat");
    is_gpt || name.strip_prefix('o').is_some_and(numbered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasoning_models_are_known_by_their_names() {
        for name in ["o3", "o4-mini", "gpt-5", "gpt-5.1-mini", "openai/o3"] {
            assert!(is_reasoning(name), "{name}");
        }
        for name in ["gpt-4o", "gpt-5-chat-latest", "olmo", "llama3.2"] {
            assert!(!is_reasoning(name), "{name}");
        }
    }
}
