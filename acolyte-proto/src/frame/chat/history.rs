//! [`HistoryItem`]: a message of a conversation.

use std::borrow::Cow;
use std::time::SystemTime;

use rpc_core::timestamp;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::id::MessageId;

/// A message of a conversation, as the known client sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistoryItem<'a> {
    /// Its id.
    pub id: MessageId,
    /// Who said it.
    pub role: Role,
    /// What was said.
    pub content: Cow<'a, str>,
    /// What it is.
    pub kind: HistoryKind,
    /// When it was said.
    pub timestamp: SystemTime,
}

/// Who said something. Exhaustive: the protocol has no other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The program.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// What a message of a history is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HistoryKind {
    /// Something that was said.
    #[default]
    Text,
    /// Something about a tool.
    ToolPayload,
    /// Something that the program showed.
    Status,
}

impl<'a> HistoryItem<'a> {
    /// Something that was said.
    pub fn new(
        id: MessageId,
        role: Role,
        content: impl Into<Cow<'a, str>>,
        timestamp: SystemTime,
    ) -> Self {
        Self {
            id,
            role,
            content: content.into(),
            kind: HistoryKind::Text,
            timestamp,
        }
    }

    /// Sets [`kind`](Self::kind).
    #[must_use]
    pub const fn with_kind(mut self, kind: HistoryKind) -> Self {
        self.kind = kind;
        self
    }
}

impl Role {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }

    /// The role of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::System, Self::User, Self::Assistant]
            .into_iter()
            .find(|it| it.name() == name)
    }
}

impl HistoryKind {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::ToolPayload => "tool_payload",
            Self::Status => "status",
        }
    }

    /// The kind of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Text, Self::ToolPayload, Self::Status]
            .into_iter()
            .find(|it| it.name() == name)
    }
}

impl Serialize for HistoryItem<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_struct("HistoryItem", 5)?;
        to.serialize_field("id", &self.id)?;
        to.serialize_field("role", self.role.name())?;
        to.serialize_field("content", &self.content)?;
        to.serialize_field("kind", self.kind.name())?;
        to.serialize_field("timestamp", &timestamp::format(self.timestamp))?;
        to.end()
    }
}
