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
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub content: Str,
    /// What it is.
    #[serde(default)]
    pub kind: HistoryKind,
    /// When it was said.
    #[serde(with = "super::time")]
    pub timestamp: SystemTime,
}

words! {
    /// Who said something. Exhaustive: the protocol has no other.
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
    /// What a message of a history is.
    #[derive(Default)]
    #[non_exhaustive]
    pub enum HistoryKind {
        /// Something that was said.
        #[default]
        "text" => Text,
        /// Something about a tool.
        "tool_payload" => ToolPayload,
        /// Something that the program showed.
        "status" => Status,
    }
}

impl HistoryItem {
    /// Something that was said.
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
