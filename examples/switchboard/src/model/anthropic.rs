//! Models behind the Anthropic Messages API.

#[cfg(test)]
mod answer_tests;
#[cfg(test)]
mod request_tests;

use std::borrow::Cow;
use std::collections::BTreeSet;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use snek_proto::llm::chat::{Block, ChatMessage, Content, Role};
use snek_proto::llm::tool::ToolDefinition;

use super::answer::{Pieces, filled, place, text_of};
use super::config::ModelConfig;
use super::extra::{in_order, origin, sent, unknown};
use super::request::{acceptable, body, object, parameters};
use super::{CallPiece, ChatRequest, ModelError};
use crate::assistant::FAILED;

/// The version of the interface.
pub const VERSION: &str = "2023-06-01";

/// Returns a request for a streamed answer.
///
/// Asks the provider to keep what the next request repeats. The instructions become `system`. Results come before the
/// rest of the user's message. Empty text is left out, because the interface refuses it.
///
/// # Errors
/// [`ModelError::BadAnswer`] if it cannot be written, which never happens.
pub fn request_body(config: &ModelConfig, request: &ChatRequest<'_>) -> Result<Bytes, ModelError> {
    let messages_sent = acceptable(request, &origin(config));
    let mut more = json!({ "max_tokens": config.max_tokens, "temperature": config.temperature });
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for message in &messages_sent {
        let side = match message.role {
            Role::System => {
                more["system"] = json!([text(&message.content.text())]);
                more["system"][0]["cache_control"] = kept();
                continue;
            }
            Role::Assistant => "assistant",
            _ => "user",
        };
        let parts = parts(message);
        match messages.last_mut() {
            Some((last, content)) if *last == side => content.extend(parts),
            _ => messages.push((side, parts)),
        }
    }
    // A conversation with calls is refused without the tools that were called.
    let calls = messages_sent.iter().flat_map(|it| &it.tool_calls);
    let mut offered = Cow::Borrowed(request.tools);
    if offered.is_empty() {
        let names: BTreeSet<&str> = calls.map(|call| call.name.as_str()).collect();
        let any = |name| ToolDefinition::new(name, "");
        offered = names.into_iter().map(any).collect();
        if !offered.is_empty() {
            more["tool_choice"] = json!({ "type": "none" });
        }
    }
    let tools = offered.iter().map(|tool| {
        Ok(Tool {
            name: tool.name(),
            description: tool.description(),
            input_schema: parameters(tool)?,
            cache_control: None,
        })
    });
    let mut tools = tools.collect::<Result<Vec<_>, ModelError>>()?;
    if let Some(tool) = tools.last_mut() {
        tool.cache_control = Some(kept());
    }
    // The last but one finds what the request before has stored; the last one stores this one. With the tools
    // and the instructions these are the four marks that the interface allows.
    let of_user = messages
        .iter_mut()
        .rev()
        .filter(|(side, _)| *side == "user");
    for (_, content) in of_user.take(2) {
        if let Some(part) = content.last_mut() {
            part["cache_control"] = kept();
        }
    }
    let messages = messages.into_iter();
    let messages = messages.map(|(role, content)| json!({ "role": role, "content": content }));
    let model = request.model.unwrap_or(&config.model);
    body(model, messages.collect(), &tools, more)
}

/// The mark of what the provider keeps, together with all before it, for five minutes after its last use.
fn kept() -> Value {
    json!({ "type": "ephemeral" })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn parts(message: &ChatMessage) -> Vec<Value> {
    let content = message.content.text();
    if message.role == Role::Tool {
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        let mut part = json!({ "type": "tool_result", "tool_use_id": id, "content": content });
        if content.starts_with(FAILED) {
            part["is_error"] = true.into();
        }
        return vec![part];
    }
    let calls = message.tool_calls.iter().map(|call| {
        let mut part = sent(call.extra.clone());
        part["type"] = "tool_use".into();
        part["id"] = json!(call.id);
        part["name"] = json!(call.name);
        part["input"] = object(&call.arguments);
        part
    });
    let Content::Blocks(blocks) = &message.content else {
        return in_order(message, calls);
    };
    let parts = blocks.iter().filter_map(|block| match block {
        Block::Text(part) => (!part.trim().is_empty()).then(|| text(part)),
        Block::ImageUrl(url) => Some(json!({ "type": "image", "source": source(url) })),
        Block::Other(value) => Some(value.clone()),
        _ => None,
    });
    parts.chain(calls).collect()
}

fn source(url: &str) -> Value {
    let data = url.strip_prefix("data:");
    match data.and_then(|data| data.split_once(";base64,")) {
        Some((kind, data)) => json!({ "type": "base64", "media_type": kind, "data": data }),
        None => json!({ "type": "url", "url": url }),
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

/// Reads an event, or a whole answer. The reason of the end completes an answer, and so does `message_stop`.
/// Citations and unknown events are ignored.
pub(super) fn read(name: Option<&str>, event: &Value, out: &mut Pieces) {
    match event["type"].as_str().or(name).unwrap_or_default() {
        "message_start" => usage(&event["message"]["usage"], out),
        "content_block_start" => {
            read_block(
                place(&event["index"]).unwrap_or_default(),
                &event["content_block"],
                out,
            );
        }
        "content_block_delta" => {
            let index = place(&event["index"]).unwrap_or_default();
            let delta = &event["delta"];
            out.text(&text_of(&delta["text"]));
            out.thought(text_of(&delta["thinking"]));
            if !out.calls.contains(&index) {
                out.extra(Some(index), unknown(delta, "type text"));
            }
            let arguments = filled(&delta["partial_json"]).filter(|_| out.calls.contains(&index));
            if let Some(arguments) = arguments {
                out.call(CallPiece {
                    index: Some(index),
                    arguments,
                    ..CallPiece::default()
                });
            }
        }
        "content_block_stop" => {
            let index = place(&event["index"]).unwrap_or_default();
            out.calls.retain(|known| *known != index);
        }
        "message_delta" => {
            out.end_text(&event["delta"]["stop_reason"]);
            usage(&event["usage"], out);
            out.finish(&event["delta"]["stop_reason"]);
        }
        "message_stop" => out.end(),
        _ => {
            let blocks = event["content"].as_array();
            for (index, block) in blocks.into_iter().flatten().enumerate() {
                read_block(index, block, out);
            }
            out.end_text(&event["stop_reason"]);
            usage(&event["usage"], out);
            out.finish(&event["stop_reason"]);
        }
    }
}

fn read_block(index: usize, block: &Value, out: &mut Pieces) {
    match block["type"].as_str().unwrap_or_default() {
        "text" => out.text(&text_of(&block["text"])),
        "tool_use" => {
            out.calls.push(index);
            // As a rule empty, and followed by pieces.
            let input = filled(&block["input"]).filter(|input| input != "{}");
            out.call(CallPiece {
                index: Some(index),
                id: filled(&block["id"]),
                name: filled(&block["name"]),
                arguments: input.unwrap_or_default(),
                extra: unknown(block, "type id name input"),
            });
        }
        _ => {
            out.thought(text_of(&block["thinking"]));
            out.extra(Some(index), block.as_object().cloned().unwrap_or_default());
        }
    }
}

fn usage(usage: &Value, out: &mut Pieces) {
    let names = [
        "input_tokens",
        "cache_creation_input_tokens",
        "cache_read_input_tokens",
        "output_tokens",
    ];
    out.usage(usage, names);
}
