//! [`request_body`]: a conversation in Anthropic's format.

use std::borrow::Cow;

use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use snek_proto::llm::chat::{Block, ChatMessage, Content, Role, ToolCall};
use snek_proto::llm::tool::ToolDefinition;

use crate::model::config::ModelConfig;
use crate::model::{ChatRequest, ModelError};

/// The placeholder for a missing message of the user.
const NOTHING: &str = "(no text)";

/// Returns the JSON of a request for a streamed answer.
///
/// All system messages become `system`, in order. Consecutive messages of one side are joined;
/// results come before the rest of their message. Empty text is left out, because the interface
/// refuses it. Arguments that are not a JSON object become `{}`. The conversation must be complete:
/// the results of all calls of a message follow it.
///
/// # Errors
/// [`ModelError::BadAnswer`] if a tool's definition cannot be written, which never happens.
pub fn request_body(
    config: &ModelConfig,
    request: &ChatRequest<'_>,
) -> Result<Vec<u8>, ModelError> {
    let mut system = String::new();
    let mut messages: Vec<Message<'_>> = Vec::new();
    for (place, message) in request.messages.iter().enumerate() {
        let side = match message.role {
            Role::System => {
                let text = message.content.text();
                if !text.trim().is_empty() {
                    if !system.is_empty() {
                        system.push_str("\n\n");
                    }
                    system.push_str(&text);
                }
                continue;
            }
            Role::Assistant => "assistant",
            _ => "user",
        };
        let parts = parts(message, request.failed.contains(&place));
        match messages.last_mut() {
            Some(last) if last.role == side => last.content.extend(parts),
            _ if parts.is_empty() && side == "assistant" => {}
            _ => messages.push(Message {
                role: side,
                content: parts,
            }),
        }
    }
    // It is the user who begins.
    if messages.first().is_none_or(|first| first.role != "user") {
        let content = Vec::new();
        messages.insert(
            0,
            Message {
                role: "user",
                content,
            },
        );
    }
    for message in &mut messages {
        if message.content.is_empty() {
            message.content.push(Part::Text {
                text: NOTHING.into(),
            });
        }
        // Stable, so results stay in order.
        message
            .content
            .sort_by_key(|part| !matches!(part, Part::ToolResult { .. }));
    }
    // A conversation with calls is refused without the tools that were called.
    let called = request
        .messages
        .iter()
        .flat_map(|message| &message.tool_calls);
    let (tools, tool_choice) = match request.tools {
        [] => {
            let tools = called_tools(called)?;
            let choice = (!tools.is_empty()).then_some(Choice { kind: "none" });
            (tools, choice)
        }
        tools => (tools.iter().map(tool).collect::<Result<_, _>>()?, None),
    };
    serde_json::to_vec(&Body {
        model: request.model.unwrap_or(&config.model),
        max_tokens: config.max_tokens,
        temperature: config.temperature,
        system: Some(system).filter(|system| !system.is_empty()),
        messages,
        tools,
        tool_choice,
        stream: true,
    })
    .map_err(ModelError::bad)
}

/// Returns the parts of a message. `failed` applies to the result of a tool.
fn parts(message: &ChatMessage, failed: bool) -> Vec<Part<'_>> {
    if message.role == Role::Tool {
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        return vec![Part::ToolResult {
            tool_use_id: id,
            content: message.content.text(),
            is_error: failed,
        }];
    }
    let mut parts = Vec::new();
    fn text(text: &str) -> Option<Part<'_>> {
        (!text.trim().is_empty()).then_some(Part::Text { text: text.into() })
    }
    match &message.content {
        Content::Text(whole) => parts.extend(text(whole)),
        Content::Blocks(blocks) => parts.extend(blocks.iter().filter_map(|block| match block {
            Block::Text(part) => text(part),
            Block::ImageUrl(url) => Some(Part::Image {
                source: source(url),
            }),
            Block::Other(value) => Some(Part::Other(value)),
            _ => None,
        })),
        _ => {}
    }
    parts.extend(message.tool_calls.iter().map(|call| Part::ToolUse {
        id: &call.id,
        name: &call.name,
        input: object(&call.arguments),
    }));
    parts
}

/// Returns the arguments if they are a JSON object, otherwise an empty object.
fn object(arguments: &str) -> &RawValue {
    let read = |text| serde_json::from_str::<&RawValue>(text).ok();
    read(arguments)
        .filter(|value| value.get().starts_with('{'))
        .or_else(|| read("{}"))
        .unwrap_or(RawValue::NULL)
}

fn source(url: &str) -> Source<'_> {
    let data = url.strip_prefix("data:");
    match data.and_then(|data| data.split_once(";base64,")) {
        Some((media_type, data)) => Source::Base64 { media_type, data },
        None => Source::Url { url },
    }
}

/// Converts a definition, with the parameters of its schema in order.
fn tool(definition: &ToolDefinition) -> Result<Tool<'_>, ModelError> {
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
    Ok(Tool {
        name: definition.name(),
        description: definition.description(),
        input_schema: outer.function.parameters,
    })
}

/// Returns the tools of these calls, as far as the calls show them.
fn called_tools<'a>(
    calls: impl Iterator<Item = &'a ToolCall>,
) -> Result<Vec<Tool<'a>>, ModelError> {
    let mut names: Vec<&str> = calls.map(|call| call.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let schema = RawValue::from_string(r#"{"type":"object"}"#.to_owned());
    let schema = schema.map_err(ModelError::bad)?;
    let tools = names.into_iter().map(|name| Tool {
        name,
        description: "",
        input_schema: schema.clone(),
    });
    Ok(tools.collect())
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    messages: Vec<Message<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Choice>,
    stream: bool,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    #[serde(serialize_with = "plain_or_parts")]
    content: Vec<Part<'a>>,
}

/// Writes a single text as a string, which is shorter.
fn plain_or_parts<S: Serializer>(parts: &[Part<'_>], serializer: S) -> Result<S::Ok, S::Error> {
    match parts {
        [Part::Text { text }] => serializer.serialize_str(text),
        parts => parts.serialize(serializer),
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text {
        text: Cow<'a, str>,
    },
    Image {
        source: Source<'a>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: &'a RawValue,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        content: Cow<'a, str>,
        #[serde(skip_serializing_if = "is_false")]
        is_error: bool,
    },
    #[serde(untagged)]
    Other(&'a Value),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Box<RawValue>,
}

#[derive(Serialize)]
struct Choice {
    #[serde(rename = "type")]
    kind: &'static str,
}

fn is_false(value: &bool) -> bool {
    !value
}

#[cfg(test)]
mod tests;
