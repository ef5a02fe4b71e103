//! [`Event`]: one step of a chat, the same over WebSockets and over HTTP.

mod checklist;
mod notice;
mod part;
mod tool;

use rpc_core::{DecodeError, Limits, Str, json, tagged, words};
use serde::{Deserialize, Serialize};

pub use checklist::{Checklist, ChecklistItem, ChecklistTag, ItemStatus};
pub use notice::{Notice, NoticeLevel};
pub use part::{
    Diff, DiffMarker, EditHeader, FileHeader, Part, ScopeHeader, ShellOutput, ShellStream,
    ToolHeader, Truncated,
};
pub use tool::{ToolCall, ToolOutput, ToolResult};

use crate::error::AppError;
use crate::frame::Skill;
use crate::loose;

tagged! {
    /// One step of a chat. Acolyte specification, *Event model*.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Event by "type" {
        /// The activity of the chat. Servers send [`RunState::new(RunKind::Running)`] once, when it starts.
        "status" => Status(RunState) in "state" or Unknown,
        /// The model's reasoning.
        "reasoning" => Reasoning(Str) in "text",
        /// More of the model's text. Together, these are not the reply's output: they include what
        /// the model says beside tool calls.
        "text-delta" => TextDelta(Str) in "text",
        /// The model calls a tool.
        "tool-call" => ToolCall(ToolCall),
        /// A tool has output.
        "tool-output" => ToolOutput(ToolOutput),
        /// A tool has run.
        "tool-result" => ToolResult(ToolResult),
        /// The cost of the model's current step. Known servers send an estimate of it, again and
        /// again: keep the last, never add them up, and trust the reply's.
        "usage" => Usage(Usage),
        /// A whole checklist, which replaces the one of its group. The name in the specification
        /// and in all releases.
        "checklist" => Checklist(Checklist),
        /// The same under the name that servers after 0.22 use: [`checklist`](Self::checklist)
        /// returns either.
        "tasklist" => Tasklist(Checklist),
        /// The chat has failed. This ends a chat over HTTP; on a WebSocket, `chat.error` does.
        "error" => Error(AppError),
        /// A message that does not end the chat.
        "notice" => Notice(Notice),
        /// A skill was switched on.
        "skill-activated" => SkillActivated(Skill) in "skill",
        /// The skill of this name was switched off.
        "skill-deactivated" => SkillDeactivated(Str) in "name",
    }
}

/// The activity of a chat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "made of all its members")]
pub struct RunState {
    /// The kind of activity.
    pub kind: RunKind,
    /// How many tools the chat has called.
    #[serde(default, deserialize_with = "loose::count")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Its place in the queue, from 1.
    #[serde(default, deserialize_with = "loose::count")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
}

words! {
    /// The activity of a chat. Known servers send `running` only.
    #[non_exhaustive]
    pub enum RunKind {
        /// It runs.
        "running" => Running,
        /// It waits for its turn.
        "queued" => Queued,
        /// It was accepted.
        "accepted" => Accepted,
        /// It waits for the user. Servers up to 0.21 only.
        "awaiting-input" => AwaitingInput,
    }
}

/// The cost of a chat's current step, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Usage {
    /// Input tokens.
    #[serde(deserialize_with = "loose::count")]
    pub input_tokens: u64,
    /// Output tokens.
    #[serde(deserialize_with = "loose::count")]
    pub output_tokens: u64,
}

impl RunState {
    /// Creates a state of this kind, without further members.
    #[must_use]
    pub const fn new(kind: RunKind) -> Self {
        Self {
            kind,
            tool_calls: None,
            position: None,
        }
    }
}

impl Usage {
    /// Creates a usage of this many input and output tokens.
    #[must_use]
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
        }
    }
}

impl Event {
    /// Creates a [`TextDelta`](Self::TextDelta).
    pub fn text(text: impl Into<Str>) -> Self {
        Self::TextDelta(text.into())
    }

    /// Returns the checklist, under either name.
    #[must_use]
    pub const fn checklist(&self) -> Option<&Checklist> {
        match self {
            Self::Checklist(list) | Self::Tasklist(list) => Some(list),
            _ => None,
        }
    }

    /// Decodes an event on its own, as in a stream over HTTP. An event of an unknown type is
    /// [`Event::Unknown`].
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not an object with a `type`, or if a known event lacks a
    /// required member. Decoding it again fails again.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        json::decode_js(text, limits)
    }
}
