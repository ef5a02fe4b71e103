//! What a model gives beside what this program reads: kept with its message, and given back to that provider alone.

use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use snek_proto::llm::chat::{ChatMessage, ToolCall, ToolCallId};

use super::answer::place;
use super::config::ModelConfig;

/// The member of a message with the [origin] of the others.
pub(super) const FROM: &str = "switchboard_from";
/// The member of a call with the model's own id.
pub(super) const ID: &str = "switchboard_id";
/// The member of a message with blocks of its content, and where each stands: behind how many bytes of text and
/// how many calls.
pub(super) const BLOCKS: &str = "switchboard_blocks";
/// Most bytes of one message's members.
pub(super) const MAX_BYTES: usize = 1024 * 1024;
/// Among how many of the last items of a list a piece finds its own.
const MAX_OPEN: usize = 64;

/// Returns whose members these are: a hash of the provider and its address, which may be private; another password is
/// the same address.
pub fn origin(config: &ModelConfig) -> String {
    let (server, path) = config.address();
    let hash = Sha256::digest(format!("{} {server}{path}", config.provider));
    let mut origin = rpc_core::text::hex(&hash);
    origin.truncate(16);
    origin
}

/// Returns a message, or a call, without the members of this program, which no provider gets.
pub(super) fn sent(message: impl Into<Value>) -> Value {
    let mut message = message.into();
    if let Some(members) = message.as_object_mut() {
        members.retain(|name, _| ![FROM, ID, BLOCKS].contains(&name.as_str()));
        if let Some(calls) = members.get_mut("tool_calls").and_then(Value::as_array_mut) {
            calls.iter_mut().for_each(|it| *it = sent(it.take()));
        }
    }
    message
}

/// Gives a call another id. Its provider gets the old one back.
pub(crate) fn rename(call: &mut ToolCall, id: ToolCallId) {
    let old = std::mem::replace(&mut call.id, id);
    if !old.is_empty() {
        call.extra.insert(ID.to_owned(), old.as_str().into());
    }
}

/// Notes whose members these are. Without an origin nobody can get them back.
pub(crate) fn sign(message: &mut ChatMessage, origin: &str) {
    if origin.is_empty() {
        clear(message);
    } else if size(message) > 0 {
        message.extra.insert(FROM.to_owned(), origin.into());
    }
}

/// Returns whether a message has no calls, or something beside them that this origin has given.
pub(super) fn is_given(message: &ChatMessage, origin: &str) -> bool {
    let members = message.tool_calls.iter().flat_map(|it| it.extra.keys());
    let mut members = members.chain(message.extra.keys());
    let is_own = message.extra.get(FROM) == Some(&origin.into());
    message.tool_calls.is_empty() || is_own && members.any(|it| it != FROM && it != ID)
}

/// Forgets them.
pub(crate) fn clear(message: &mut ChatMessage) {
    message.extra.clear();
    for call in &mut message.tool_calls {
        call.extra.clear();
    }
}

/// Returns how many bytes they have.
pub(crate) fn size(message: &ChatMessage) -> usize {
    let of_calls = message.tool_calls.iter().map(|it| &it.extra);
    let all = of_calls.chain([&message.extra]).filter(|it| !it.is_empty());
    let bytes = all.map(|it| serde_json::to_string(it).map_or(0, |json| json.len()));
    bytes.sum()
}

/// Returns whether a word is one of these.
pub(super) fn is_one(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

/// Returns the members of an object that are not of these names, and neither null nor empty.
pub(super) fn unknown(object: &Value, known: &str) -> Map<String, Value> {
    let empty = [json!(null), json!(""), json!([]), json!({})];
    let mut members = object.as_object().cloned().unwrap_or_default();
    members.retain(|name, value| !is_one(known, name) && !empty.contains(value));
    members
}

/// Returns the texts of an answer, the blocks between them, and its calls, in order.
pub(super) fn in_order(message: &ChatMessage, calls: impl Iterator<Item = Value>) -> Vec<Value> {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let filled = |part: &str| (!part.trim().is_empty()).then(|| text(part));
    let content = message.content.text();
    let (mut parts, mut rest, mut calls) = (Vec::new(), &*content, calls);
    let (mut bytes, mut count) = (0, 0);
    let blocks = message.extra.get(BLOCKS).and_then(Value::as_array);
    for kept in blocks.into_iter().flatten() {
        let [before, made] = [0, 1].map(|at| place(&kept["at"][at]).unwrap_or_default());
        if let Some((text, behind)) = rest.split_at_checked(before.saturating_sub(bytes)) {
            (bytes, rest) = (bytes + text.len(), behind);
            parts.extend(filled(text));
        }
        parts.extend(calls.by_ref().take(made.saturating_sub(count)));
        count = count.max(made);
        parts.push(kept["block"].clone());
    }
    parts.extend(filled(rest));
    parts.extend(calls);
    parts
}

/// Adds a piece to the members that have come: texts go on, and lists by the `index` of their items.
pub(super) fn merge(known: &mut Map<String, Value>, piece: &Map<String, Value>) {
    for (name, value) in piece {
        // A type is whole.
        if name == "type" && known.contains_key(name) {
            continue;
        }
        let known = known.entry(name.as_str()).or_insert(Value::Null);
        merge_value(known, value, true);
    }
}

fn merge_value(known: &mut Value, piece: &Value, is_text: bool) {
    match (known, piece) {
        // A word that is the same in all pieces is no text: a type, a format, an id.
        (Value::String(text), Value::String(more)) if is_text || text != more => {
            text.push_str(more);
        }
        (Value::Object(known), Value::Object(piece)) => {
            for (name, value) in piece {
                let known = known.entry(name.as_str()).or_insert(Value::Null);
                merge_value(known, value, false);
            }
        }
        (Value::Array(items), Value::Array(piece)) => {
            for item in piece {
                let is_same = |known: &&mut Value| {
                    let kinds = [&known["type"], &item["type"]];
                    known["index"] == item["index"]
                        && !item["index"].is_null()
                        && (kinds[0] == kinds[1] || kinds.iter().any(|it| it.is_null()))
                };
                match items.iter_mut().rev().take(MAX_OPEN).find(is_same) {
                    Some(known) => merge_value(known, item, false),
                    None => items.push(item.clone()),
                }
            }
        }
        (_, Value::Null) => {}
        (known, piece) => known.clone_from(piece),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::provider::Provider;

    #[test]
    fn pieces_become_what_they_are_pieces_of() {
        let details = |index: u64, text: &str| json!({"index": index, "type": "reasoning.text", "format": "f", "text": text});
        for (pieces, whole) in [
            (
                vec![json!({"r": "a"}), json!({"r": "a"}), json!({"r": " b"})],
                json!({"r": "aa b"}),
            ),
            (
                vec![
                    json!({"d": [details(0, "one ")]}),
                    json!({"d": [details(0, "two")]}),
                    json!({"d": [details(1, "three")]}),
                    json!({"d": [{"index": 0, "type": "reasoning.encrypted", "data": "x"}]}),
                    json!({"d": [{"index": 1, "signature": "S"}]}),
                ],
                json!({"d": [
                    details(0, "one two"),
                    {"index": 1, "type": "reasoning.text", "format": "f", "text": "three", "signature": "S"},
                    {"index": 0, "type": "reasoning.encrypted", "data": "x"},
                ]}),
            ),
            (
                vec![json!({"l": [1]}), json!({"l": [2, {"a": 1}]})],
                json!({"l": [1, 2, {"a": 1}]}),
            ),
            (
                vec![
                    json!({"g": {"sig": "S"}}),
                    json!({"g": {"sig": "S", "n": 1}}),
                    json!({"g": {"n": null}}),
                ],
                json!({"g": {"sig": "S", "n": 1}}),
            ),
        ] {
            let mut known = Map::new();
            for piece in pieces {
                merge(&mut known, piece.as_object().unwrap());
            }
            assert_eq!(Value::from(known), whole);
        }
    }

    #[test]
    fn an_origin_is_a_provider_at_an_address() {
        let of = |provider, url: &str| origin(&ModelConfig::new(provider, "m").with_base_url(url));
        let one = of(Provider::OpenAi, "https://user:hunter2@h/v1");
        assert_eq!(one, of(Provider::OpenAi, "https://user:hunter2@h/v1/"));
        assert_ne!(one, of(Provider::Vllm, "https://user:hunter2@h/v1"));
        // Who asks there is no part of it, nor is a query, which may hold a key.
        assert_eq!(one, of(Provider::OpenAi, "https://user:new@h/v1"));
        assert_eq!(one, of(Provider::OpenAi, "https://h/v1?key=k"));
        assert_ne!(one, of(Provider::OpenAi, "https://h:1/v1"));
        assert_eq!(one.len(), 16);
    }
}
