//! [`ChatItem`]: an item of a session for display.

use rpc_core::json::parse;
use rpc_core::{DecodeError, Id, Json, Limits, Str, tagged};
use serde::Deserialize;

use super::event::{Eval, FilesReceived, Intent, Thinking, ToolResult};

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
        "tool_call" => ToolCall(ToolResult),
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

impl ChatItem {
    /// Creates an item with this id.
    pub fn new(id: impl Into<Id<Self>>, kind: ChatItemKind) -> Self {
        Self {
            id: Some(id.into()),
            kind,
        }
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
        let items = items.into_iter();
        items.map(|item| Self::read(item, limits)).collect()
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
