//! [`ChatItem`]: an item of a session for display.

use rpc_core::json::parse;
use rpc_core::{DecodeError, Id, Json, Limits, Str, tagged};
use serde::{Deserialize, Serialize};

use super::event::{Eval, FilesReceived, Intent, Thinking};
use super::json::opt;
use super::number::Number;
use super::words::ToolStatus;

tagged! {
    /// One item of a session for display, in CONNECTED and OUTPUT (`chat_items`).
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct ChatItem {
        /// Its id: `msg-0`, or a tool's id.
        "id" => pub id: Option<Id<ChatItem>>,
        /// Its kind.
        .. => pub kind: ChatItemKind,
    }
}

tagged! {
    /// The kind of a [`ChatItem`].
    #[derive(Clone, Debug, PartialEq)]
    pub enum ChatItemKind by "type" {
        /// The user's words: a text, or a list of parts if there were images.
        "user" => User(Json) in "content",
        /// The agent's words, usually a text.
        "agent" => Agent(Json) in "content",
        /// A tool and its result.
        "tool_call" => ToolCall(ToolItem),
        /// The agent's thoughts.
        "thinking" => Thinking(Thinking),
        /// How the agent understood a prompt.
        "intent" => Intent(Intent),
        /// How the agent judged its work.
        "eval" => Eval(Eval),
        /// Files that came with a prompt.
        "files_received" => FilesReceived(FilesReceived),
    }
}

/// A tool and its result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolItem {
    /// The tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Str>,
    /// Its arguments, as they were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Json>,
    /// Its status: `running`, `done` or `error`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<ToolStatus>,
    /// Its result; a value other than a text as JSON.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub result: Option<Str>,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing_ms: Option<Number>,
}

impl ToolItem {
    /// Creates a tool with this status.
    pub fn new(name: impl Into<Str>, status: ToolStatus) -> Self {
        Self {
            name: Some(name.into()),
            status: Some(status),
            ..Self::default()
        }
    }
}

impl ChatItem {
    /// Creates an item with this id.
    pub fn new(id: impl Into<Id<Self>>, kind: ChatItemKind) -> Self {
        Self {
            id: Some(id.into()),
            kind,
        }
    }

    /// Creates a text of the user.
    pub fn user(id: impl Into<Id<Self>>, text: &str) -> Self {
        Self::new(id, ChatItemKind::User(Json::string(text)))
    }

    /// Creates a text of the agent.
    pub fn agent(id: impl Into<Id<Self>>, text: &str) -> Self {
        Self::new(id, ChatItemKind::Agent(Json::string(text)))
    }

    /// Returns the text of the user or the agent; of a list of parts, the first text.
    #[must_use]
    pub fn text(&self) -> Option<Str> {
        /// A text, or an image.
        #[derive(Deserialize)]
        struct Part {
            text: Option<Str>,
        }
        let (ChatItemKind::User(content) | ChatItemKind::Agent(content)) = &self.kind else {
            return None;
        };
        if let Some(text) = content.as_str() {
            return Some(text.into());
        }
        let parts: Vec<Part> = content.parse().ok()?;
        parts.into_iter().find_map(|part| part.text)
    }

    /// Parses the items of a list. At most [`Limits::max_items`].
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not an array of objects, if there are too many, or if one of
    /// a known type has a member of the wrong type.
    pub fn list(json: &str, limits: &Limits) -> Result<Vec<Self>, DecodeError> {
        let items: Vec<Json> = parse(json, limits)?;
        items
            .into_iter()
            .map(|item| Self::read(item, limits))
            .collect()
    }

    fn read(item: Json, limits: &Limits) -> Result<Self, DecodeError> {
        if item.first_byte() == b'{' && item.member("type").is_none() {
            let id = item.member("id");
            return Ok(Self {
                id: id.and_then(|id| Some(Id::new(id.as_id()?))),
                kind: ChatItemKind::Unknown {
                    tag: Str::EMPTY,
                    raw: item,
                },
            });
        }
        parse(item.get(), limits)
    }
}
