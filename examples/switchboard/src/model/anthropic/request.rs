//! [`request_body`]: a conversation in Anthropic's format.

use std::borrow::Cow;

use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use snek_proto::llm::chat::{Block, ChatMessage, Content, Role, ToolCall};
use snek_proto::llm::tool::ToolDefinition;

use crate::model::config::ModelConfig;
use crate::model::request::{instructions, object, parameters};
use crate::model::{ChatRequest, ModelError};

/// The placeholder for a missing message of the user.
const NOTHING: &str = "(no text)";

/// Returns the JSON of a request for a streamed answer.
///
/// Asks the provider to keep what the next request repeats. All system messages become `system`, in order. Consecutive messages of one side are joined;
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
    let mut messages: Vec<Message<'_>> = Vec::new();
    for (place, message) in request.messages.iter().enumerate() {
        let side = match message.role {
            Role::System => continue,
            Role::Assistant => "assistant",
            _ => "user",
        };
        let parts = parts(message, request.failed.contains(&place));
        let parts: Vec<_> = parts.into_iter().map(Marked::new).collect();
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
            let text = NOTHING.into();
            message.content.push(Marked::new(Part::Text { text }));
        }
        // Stable, so results stay in order.
        message
            .content
            .sort_by_key(|it| !matches!(it.part, Part::ToolResult { .. }));
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
    let system = instructions(request).map(|text| Marked::new(Part::Text { text: text.into() }));
    let mut system: Vec<_> = system.into_iter().collect();
    let mut tools: Vec<_> = tools;
    cache(&mut tools, &mut system, &mut messages);
    serde_json::to_vec(&Body {
        model: request.model.unwrap_or(&config.model),
        max_tokens: config.max_tokens,
        temperature: config.temperature,
        system,
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

fn source(url: &str) -> Source<'_> {
    let data = url.strip_prefix("data:");
    match data.and_then(|data| data.split_once(";base64,")) {
        Some((media_type, data)) => Source::Base64 { media_type, data },
        None => Source::Url { url },
    }
}

fn tool(definition: &ToolDefinition) -> Result<Tool<'_>, ModelError> {
    Ok(Tool {
        name: definition.name(),
        description: definition.description(),
        input_schema: parameters(definition)?,
        cache_control: None,
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
        cache_control: None,
    });
    Ok(tools.collect())
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Marked<'a>>,
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
    content: Vec<Marked<'a>>,
}

/// Writes a single text as a string, which is shorter.
fn plain_or_parts<S: Serializer>(parts: &[Marked<'_>], serializer: S) -> Result<S::Ok, S::Error> {
    match parts {
        [
            Marked {
                part: Part::Text { text },
                cache_control: None,
            },
        ] => serializer.serialize_str(text),
        parts => parts.serialize(serializer),
    }
}

/// A part, and whether the provider keeps what stands up to it.
#[derive(Serialize)]
struct Marked<'a> {
    #[serde(flatten)]
    part: Part<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

impl<'a> Marked<'a> {
    const fn new(part: Part<'a>) -> Self {
        Self {
            part,
            cache_control: None,
        }
    }
}

#[derive(Clone, Copy, Serialize)]
struct CacheControl {
    #[serde(rename = "type")]
    kind: &'static str,
}

/// What is cached is kept for five minutes after its last use.
const EPHEMERAL: CacheControl = CacheControl { kind: "ephemeral" };

/// Marks what the next requests repeat: the tools, the instructions, and the messages up to the
/// last two of the user. These are the four marks that the interface allows.
///
/// The last but one finds what the request before has stored; the last one stores this one.
fn cache(tools: &mut [Tool<'_>], system: &mut [Marked<'_>], messages: &mut [Message<'_>]) {
    if let Some(tool) = tools.last_mut() {
        tool.cache_control = Some(EPHEMERAL);
    }
    if let Some(text) = system.last_mut() {
        text.cache_control = Some(EPHEMERAL);
    }
    let of_user = messages.iter_mut().rev().filter(|it| it.role == "user");
    for message in of_user.take(2) {
        if let Some(part) = message.content.last_mut() {
            part.cache_control = Some(EPHEMERAL);
        }
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
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
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
