//! Models behind Ollama's own interface.

#[cfg(test)]
mod tests;

use serde_json::{Value, json};
use snek_proto::llm::chat::{Block, ChatMessage, Content, Role, ToolCall};

use super::answer::Pieces;
use super::config::ModelConfig;
use super::openai::read_message;
use super::request::{object, write};
use super::{ChatRequest, ModelError};

/// Returns the JSON of a request for a streamed answer.
///
/// Names the size of the context: Ollama's own is small, and it forgets what does not fit without a
/// word. Images must be `data:` URLs; an address of one stays in the text.
///
/// # Errors
/// [`ModelError::BadAnswer`] if it cannot be written, which never happens.
pub fn request_body(
    config: &ModelConfig,
    request: &ChatRequest<'_>,
) -> Result<Vec<u8>, ModelError> {
    let most = usize::try_from(config.max_tokens).unwrap_or(usize::MAX);
    let mut options = json!({
        "num_ctx": config.context_tokens.saturating_add(most),
        "num_predict": config.max_tokens,
    });
    if let Some(temperature) = config.temperature {
        options["temperature"] = temperature.into();
    }
    let calls = request.messages.iter().flat_map(|it| &it.tool_calls);
    let calls: Vec<&ToolCall> = calls.collect();
    let messages = request.messages.iter().map(|it| message(it, &calls));
    let model = request.model.unwrap_or(&config.model);
    let more = json!({ "options": options });
    write(model, messages.collect(), request.tools, more)
}

fn message(message: &ChatMessage, calls: &[&ToolCall]) -> Value {
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
    let role = match message.role {
        Role::System => "system",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        _ => "user",
    };
    let mut sent = json!({ "role": role, "content": content });
    if !images.is_empty() {
        sent["images"] = json!(images);
    }
    if !message.tool_calls.is_empty() {
        let made = message.tool_calls.iter();
        let made = made.map(|call| {
            json!({ "function": { "name": call.name, "arguments": object(&call.arguments) } })
        });
        sent["tool_calls"] = made.collect();
    }
    // A result names its tool. The ids of calls may be used again, so the last one counts.
    let of = message.tool_call_id.as_deref();
    if let Some(call) = of.and_then(|id| calls.iter().rev().find(|call| call.id == id)) {
        sent["tool_name"] = json!(call.name);
    }
    sent
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
        out.usage(line, ["prompt_eval_count", "", "", "eval_count"]);
        out.finish(reason);
        out.end();
    }
    Ok(())
}
