//! Models behind Ollama's own interface.

#[cfg(test)]
mod tests;

use bytes::Bytes;
use serde_json::{Value, json};
use snek_proto::llm::chat::{Block, ChatMessage, Content, Role, ToolCall};

use super::answer::Pieces;
use super::config::ModelConfig;
use super::extra::{origin, sent};
use super::openai::read_message;
use super::request::{acceptable, body, object};
use super::{ChatRequest, ModelError};

/// Returns a request for a streamed answer.
///
/// Names the size of the context: Ollama's own is small, and it forgets what does not fit without a
/// word. Images must be `data:` URLs; an address of one stays in the text.
///
/// # Errors
/// [`ModelError::BadAnswer`] if it cannot be written, which never happens.
pub fn request_body(config: &ModelConfig, request: &ChatRequest<'_>) -> Result<Bytes, ModelError> {
    let most = usize::try_from(config.max_tokens).unwrap_or(usize::MAX);
    let mut options = json!({
        "num_ctx": config.context_tokens.saturating_add(most),
        "num_predict": config.max_tokens,
    });
    if let Some(temperature) = config.temperature {
        options["temperature"] = temperature.into();
    }
    let mut calls = &[][..];
    let acceptable_messages = acceptable(request, &origin(config));
    let messages = acceptable_messages.iter().map(|it| {
        if it.role == Role::Assistant {
            calls = &it.tool_calls;
        }
        message(it, calls)
    });
    let messages = messages.collect();
    let model = request.model.unwrap_or(&config.model);
    let more = json!({ "options": options });
    body(model, messages, request.tools, more)
}

/// Returns a message; `calls` are those that a result may answer.
fn message(message: &ChatMessage, calls: &[ToolCall]) -> Value {
    let mut content = message.content.text().into_owned();
    let mut images = Vec::new();
    if let Content::Blocks(blocks) = &message.content {
        for block in blocks {
            let Block::ImageUrl(url) = block else {
                continue;
            };
            match url.split_once(";base64,") {
                Some((_, data)) => images.push(data),
                None => content = content + "\n" + url,
            }
        }
    }
    let mut out = sent(message.extra.clone());
    out["role"] = json!(message.role);
    out["content"] = content.into();
    if !images.is_empty() {
        out["images"] = json!(images);
    }
    if !message.tool_calls.is_empty() {
        let made = message.tool_calls.iter();
        let made = made.map(|call| {
            let mut made = sent(call.extra.clone());
            made["function"]["name"] = json!(call.name);
            made["function"]["arguments"] = object(&call.arguments);
            made
        });
        out["tool_calls"] = made.collect();
    }
    // A result names its tool.
    let of = message.tool_call_id.as_deref();
    if let Some(call) = of.and_then(|id| calls.iter().find(|call| call.id == id)) {
        out["tool_name"] = json!(call.name);
    }
    out
}

/// Reads a line. The one that gives a reason of the end, or says that it is done, completes an answer. An
/// error may come in the middle, after status 200.
pub(super) fn read(line: &Value, out: &mut Pieces) -> Result<(), ModelError> {
    match &line["message"] {
        Value::Null => {}
        message @ Value::Object(_) => read_message(message, true, out),
        _ => return Err(ModelError::bad("its message is not an object")),
    }
    let reason = &line["done_reason"];
    if line["done"] == true || reason.as_str().is_some_and(|it| !it.is_empty()) {
        out.end_text(reason);
        out.usage(line, ["prompt_eval_count", "", "", "eval_count"]);
        out.finish(reason);
        out.end();
    }
    Ok(())
}
