//! The history of a chat, for models.

use acolyte_proto::frame::ChatRequest;
use serde::Deserialize;
use snek_proto::llm::chat::ChatMessage;

/// The relevant members of an item.
#[derive(Deserialize)]
struct Item {
    role: String,
    content: String,
    #[serde(default)]
    kind: Option<String>,
}

/// Returns the history of a request, without invalid items, items that were only shown, and the
/// message itself, which known clients put at the end.
pub(in crate::daemon) fn messages(request: &ChatRequest) -> Vec<ChatMessage> {
    let read = |item: &str| serde_json::from_str::<Item>(item).ok();
    let items = request.history.iter().filter_map(|item| read(item.get()));
    let is_text = |item: &Item| item.kind.as_deref().is_none_or(|kind| kind == "text");
    let mut items: Vec<_> = items.filter(is_text).collect();
    let is_message = |item: &Item| item.role == "user" && *request.message == *item.content;
    items.pop_if(|item| is_message(item));
    let items = items.into_iter();
    items
        .filter_map(|item| match item.role.as_str() {
            "user" => Some(ChatMessage::user(item.content)),
            "assistant" => Some(ChatMessage::assistant(item.content)),
            "system" => Some(ChatMessage::system(item.content)),
            _ => None,
        })
        .collect()
}
