//! [`StreamEvent`]: one step of a streamed answer.

use rpc_core::json::lenient;
use rpc_core::{Json, Str, tagged};
use serde::{Deserialize, Serialize};

tagged! {
    /// One step of a streamed answer. Exoclaw specification, *Streaming Response*.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum StreamEvent by "event" in "data" {
        /// More of the model's text, as the provider cut it; may be empty.
        "text" => Text(Str),
        /// The model asks for a tool.
        "tool_use" => ToolUse(ToolUse),
        /// A tool has run.
        "tool_result" => ToolResult(ToolResult),
        /// What one call of the model cost. There may be several in one chat: add them up.
        "usage" => Usage(Usage),
        /// The stream is complete; nothing follows.
        "done" => Done,
        /// The chat has failed. A gateway sends [`Done`](Self::Done) after it, or nothing.
        "error" => Error(Str),
    }
}

/// The model asks for a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolUse {
    /// The id that the result will carry.
    pub id: Str,
    /// The tool's name.
    pub name: Str,
    /// What the tool gets: any JSON value, as a rule an object.
    pub input: Json,
}

/// A tool has run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the [`ToolUse`].
    pub tool_use_id: Str,
    /// What the tool says.
    pub content: Str,
    /// Whether the tool failed. The model is told, and goes on. Always written, as the known gateway does.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub is_error: bool,
}

/// What a model was paid for, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
}

impl StreamEvent {
    /// Whether the stream ends with it: `done` and `error`.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Done | Self::Error(_))
    }

    /// About how many bytes it holds.
    pub(crate) fn weight(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Text(text) | Self::Error(text) => text.len(),
                Self::ToolUse(tool) => tool.id.len() + tool.name.len() + tool.input.get().len(),
                Self::ToolResult(result) => result.tool_use_id.len() + result.content.len(),
                Self::Usage(_) | Self::Done => 0,
                Self::Unknown { tag, content } => {
                    tag.len() + content.as_ref().map_or(0, |content| content.get().len())
                }
            }
    }
}

impl ToolUse {
    /// A call of the tool `name`.
    pub fn new(id: impl Into<Str>, name: impl Into<Str>, input: impl Into<Json>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            input: input.into(),
        }
    }
}

impl ToolResult {
    /// The result of the call `tool_use_id`.
    pub fn new(tool_use_id: impl Into<Str>, content: impl Into<Str>, is_error: bool) -> Self {
        Self {
            tool_use_id: tool_use_id.into(),
            content: content.into(),
            is_error,
        }
    }
}

impl Usage {
    /// So many tokens read and written.
    #[must_use]
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
        }
    }

    /// Tokens of both kinds. Huge numbers stop at the largest one.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds what another call cost. Huge numbers stop at the largest one.
    pub const fn add(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
    }
}
