//! [`StreamEvent`]: one step of a streamed answer.

use rpc_core::json::lenient;
use rpc_core::{Json, Str, tagged};
use serde::{Deserialize, Serialize};

use crate::id::ToolCallId;

tagged! {
    /// One step of a streamed answer. Exoclaw specification, *Streaming Response*.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum StreamEvent by "event" in "data" {
        /// A chunk of the model's text, as the provider sent it; may be empty.
        "text" => Text(Str),
        /// A tool call of the model.
        "tool_use" => ToolUse(ToolUse),
        /// The result of a tool call.
        "tool_result" => ToolResult(ToolResult),
        /// The usage of one call of the model. A chat may have several: add them up.
        "usage" => Usage(Usage),
        /// The stream is complete; nothing follows.
        "done" => Done,
        /// The chat has failed. A gateway sends [`Done`](Self::Done) after it, or nothing.
        "error" => Error(Str),
    }
}

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolUse {
    /// The id of the call, which the result repeats.
    pub id: ToolCallId,
    /// The tool's name.
    pub name: Str,
    /// The input of the tool: any JSON value, usually an object.
    pub input: Json,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolResult {
    /// The id of the [`ToolUse`].
    pub tool_use_id: ToolCallId,
    /// The output of the tool.
    pub content: Str,
    /// Whether the tool failed. The model learns of it, and continues. Always encoded, as in the
    /// known gateway.
    #[serde(default, deserialize_with = "lenient::or_default")]
    pub is_error: bool,
}

/// The usage of a model, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
}

impl StreamEvent {
    /// Returns whether the event ends the stream: `done` or `error`.
    #[must_use]
    pub const fn is_terminal(&self) -> bool {
        matches!(self, Self::Done | Self::Error(_))
    }
}

impl ToolUse {
    /// Creates a call of the tool `name`.
    pub fn new(id: impl Into<ToolCallId>, name: impl Into<Str>, input: impl Into<Json>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            input: input.into(),
        }
    }
}

impl ToolResult {
    /// Creates the result of the call `tool_use_id`.
    pub fn new(
        tool_use_id: impl Into<ToolCallId>,
        content: impl Into<Str>,
        is_error: bool,
    ) -> Self {
        Self {
            tool_use_id: tool_use_id.into(),
            content: content.into(),
            is_error,
        }
    }
}

impl Usage {
    /// Creates a usage of these numbers of tokens.
    #[must_use]
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
        }
    }

    /// Returns the sum of both. Saturates.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// Adds the usage of another call. Saturates.
    pub const fn add(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
    }
}
