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
