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

use crate::error::ChatError;
use crate::frame::Skill;
use crate::loose;

tagged! {
    /// One step of a chat. Acolyte specification, *Event model*.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Event by "type" {
        /// What the chat does now. Servers send [`RunState::RUNNING`] once, when it starts.
        "status" => Status(RunState) in "state" or Unknown,
        /// What the model thinks aloud.
        "reasoning" => Reasoning(Str) in "text",
        /// More of the model's text. All of it together is not the reply's output: there is also
        /// what the model says beside calls of tools.
        "text-delta" => TextDelta(Str) in "text",
        /// The model calls a tool.
        "tool-call" => ToolCall(ToolCall),
        /// A tool puts something out.
        "tool-output" => ToolOutput(ToolOutput),
        /// A tool has run.
        "tool-result" => ToolResult(ToolResult),
        /// What the current step of the model costs. Known servers send an estimate of it, again and
        /// again: keep the last, never add them up, and trust the reply's.
        "usage" => Usage(Usage),
        /// A list of what is to be done, whole each time. Replace the one of the same group. The
        /// name of the specification, and of all releases.
        "checklist" => Checklist(Checklist),
        /// The same by the name that servers after 0.22 have for it:
        /// [`checklist`](Self::checklist) is either.
        "tasklist" => Tasklist(Checklist),
        /// The chat has failed. Over HTTP it is the end; on a WebSocket it is not, `chat.error` is.
        "error" => Error(ChatError),
        /// Something that does not end the chat.
        "notice" => Notice(Notice),
        /// A skill was switched on.
        "skill-activated" => SkillActivated(Skill) in "skill",
        /// The skill of this name was switched off.
        "skill-deactivated" => SkillDeactivated(Str) in "name",
    }
}

/// What a chat does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::exhaustive_structs, reason = "made of all its members")]
pub struct RunState {
    /// What.
    pub kind: RunKind,
    /// How many tools it has called.
    #[serde(default, deserialize_with = "loose::count")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Its place in the queue, from 1.
    #[serde(default, deserialize_with = "loose::count")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
}

words! {
    /// What a chat does. Known servers send `running` only.
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

/// What the current step of a chat costs, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens that were read.
    #[serde(deserialize_with = "loose::count")]
    pub input_tokens: u64,
    /// Tokens that were written.
    #[serde(deserialize_with = "loose::count")]
    pub output_tokens: u64,
}

impl RunState {
    /// It runs.
    pub const RUNNING: Self = Self::new(RunKind::Running);

    /// Nothing more than this.
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
    /// So many tokens read and written.
    #[must_use]
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
        }
    }
}

impl Event {
    /// More of the model's text.
    pub fn text(text: impl Into<Str>) -> Self {
        Self::TextDelta(text.into())
    }

    /// A list of what is to be done, by either name.
    #[must_use]
    pub const fn checklist(&self) -> Option<&Checklist> {
        match self {
            Self::Checklist(list) | Self::Tasklist(list) => Some(list),
            _ => None,
        }
    }

    /// Decodes an event that stands for itself, as in a stream over HTTP. One that this crate does
    /// not know is [`Event::Unknown`].
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object with a `type`, or a known event without what makes
    /// it one. Decoding it again fails again.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        json::decode_js(text, limits)
    }
}
