//! Models behind the OpenAI chat-completion interface, of any provider.

#[cfg(test)]
mod answer_tests;
#[cfg(test)]
mod end_tests;
#[cfg(test)]
mod thought_tests;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::answer::{Pieces, filled, is_thought, place, text_of};
use super::config::ModelConfig;
use super::extra::{BLOCKS, in_order, origin, sent, unknown};
use super::request::{acceptable, body};
use super::{CallPiece, ChatRequest, ModelError};

/// The members of a message, and of a call and its function, in the interfaces that have calls in messages.
pub(super) const MESSAGE: &str =
    "role content refusal tool_calls function_call tool_call_id tool_name";
pub(super) const CALL: &str = "id index type function name arguments";

/// Returns a request for a streamed answer.
///
/// # Errors
/// [`ModelError::BadAnswer`] if it cannot be written, which never happens.
pub fn request_body(config: &ModelConfig, request: &ChatRequest<'_>) -> Result<Bytes, ModelError> {
    let more = json!({
        "max_tokens": config.max_tokens,
        "temperature": config.temperature,
        "stream_options": { "include_usage": true },
    });
    let messages = acceptable(request, &origin(config));
    let messages = messages.iter().map(|it| {
        let mut message = sent(json!(it));
        if it.extra.contains_key(BLOCKS) {
            message["content"] = in_order(it, std::iter::empty()).into();
        }
        message
    });
    let messages = messages.collect();
    let model = request.model.unwrap_or(&config.model);
    body(model, messages, request.tools, more)
}

/// Reads a chunk, or a whole answer. The reason of the end completes an answer; the end mark `[DONE]` may be
/// missing then, and replaces a missing reason. Calls are passed on whatever the reason is.
pub(super) fn read(chunk: &Value, out: &mut Pieces) -> Result<(), ModelError> {
    let choices = match &chunk["choices"] {
        Value::Array(choices) => choices.as_slice(),
        Value::Null => &[],
        _ => return Err(ModelError::bad("its choices are not a list")),
    };
    // Only one was asked for.
    let mut choices = choices.iter();
    if let Some(choice) = choices.find(|it| place(&it["index"]).unwrap_or_default() == 0) {
        // Some servers repeat the whole message with each of its pieces, or at the end.
        let delta = &choice["delta"];
        match delta.as_object().filter(|it| !it.is_empty()) {
            Some(members) => {
                let in_pieces = members.iter().filter(|(_, it)| filled(it).is_some());
                out.in_pieces
                    .extend(in_pieces.map(|(name, _)| name.clone()));
                read_message(delta, false, out);
            }
            None => {
                // As completions were before chats.
                let older = json!({ "content": choice["text"] });
                let mut message = choice.get("message").unwrap_or(&older).clone();
                for name in &out.in_pieces {
                    message.get_mut(name).map(Value::take);
                }
                read_message(&message, true, out);
            }
        }
        out.finish(&choice["finish_reason"]);
    }
    let names = ["prompt_tokens", "", "", "completion_tokens"];
    out.usage(&chunk["usage"], names);
    Ok(())
}

/// Reads a message, or a piece of one. The calls of a whole one need no index.
pub(super) fn read_message(message: &Value, is_whole: bool, out: &mut Pieces) {
    // What OpenAI itself does not tell has several names.
    let names = ["reasoning_content", "reasoning", "thinking"];
    let thought = names.into_iter().find_map(|name| filled(&message[name]));
    out.thought(thought.unwrap_or_default());
    let content = match &message["content"] {
        one @ Value::Object(_) => &json!([one]),
        content => content,
    };
    for block in content.as_array().into_iter().flatten() {
        out.thought(text_of(&block["thinking"]));
        if is_thought(block) {
            out.thought(text_of(&block["text"]));
        }
        match block.as_object() {
            Some(members) if block["type"] != "text" && block["type"].is_string() => {
                out.extra(Some(out.texts), members.clone());
            }
            _ => out.texts += 1,
        }
    }
    out.text(&text_of(content));
    out.text(&text_of(&message["refusal"]));
    out.extra(None, unknown(message, MESSAGE));
    let calls = match &message["tool_calls"] {
        Value::Array(calls) => calls,
        one => std::slice::from_ref(one),
    };
    let calls = calls.iter().filter(|call| call.is_object());
    let calls = calls.map(|call| match call["function"].is_object() {
        true => (call, &call["function"]),
        false => (call, call),
    });
    let mut calls = calls.peekable();
    // The older form, for a single call. Some servers send both.
    let old = Some((message, &message["function_call"])).filter(|(_, it)| {
        it.is_object() && calls.peek().is_none() && !out.in_pieces.contains("tool_calls")
    });
    for (call, function) in calls.chain(old) {
        let mut extra = match std::ptr::eq(call, message) {
            true => Map::new(),
            false => unknown(call, CALL),
        };
        let of_function = unknown(&call["function"], CALL);
        if !of_function.is_empty() {
            extra.insert("function".to_owned(), of_function.into());
        }
        let next = out.calls.len();
        if is_whole {
            out.calls.push(next);
        }
        out.call(CallPiece {
            index: match is_whole {
                true => Some(next),
                false => place(&call["index"]),
            },
            id: filled(&call["id"]),
            name: filled(&function["name"]),
            arguments: text_of(&function["arguments"]),
            extra,
        });
    }
}
