//! [`HistoryItem`]: a message of a conversation.

use std::time::SystemTime;

use rpc_core::{Str, words};
use serde::{Deserialize, Serialize};

use crate::id::MessageId;

/// A message of a conversation, as the known client sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HistoryItem {
    /// Its id.
    pub id: MessageId,
    /// The author.
    pub role: Role,
    /// The text.
    pub content: Str,
    /// The kind of message.
    #[serde(default)]
    pub kind: HistoryKind,
    /// The time of the message.
    #[serde(with = "super::time")]
    pub timestamp: SystemTime,
}

words! {
    /// The author of a message. Exhaustive: the protocol has no other.
    pub enum Role {
        /// The program.
        "system" => System,
        /// The user.
        "user" => User,
        /// The model.
        "assistant" => Assistant,
    }
}

words! {
    /// The kind of a message in a history.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum HistoryKind {
        /// An ordinary message.
        #[default]
        "text" => Text,
        /// A message about a tool.
        "tool_payload" => ToolPayload,
        /// A status that the program showed.
        "status" => Status,
    }
}

impl HistoryItem {
    /// Creates an ordinary message.
    pub fn new(id: MessageId, role: Role, content: impl Into<Str>, timestamp: SystemTime) -> Self {
        Self {
            id,
            role,
            content: content.into(),
            kind: HistoryKind::Text,
            timestamp,
        }
    }
}
