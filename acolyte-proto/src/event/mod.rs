//! [`Event`]: one step of a chat, the same over WebSockets and over HTTP.

mod body;
mod checklist;
mod notice;
mod part;
mod part_body;
mod tool;
mod write;

use std::borrow::Cow;

pub use checklist::{Checklist, ChecklistItem, ChecklistTag, ItemStatus};
pub use notice::{Notice, NoticeLevel};
pub use part::{DiffMarker, Part, ShellStream};
pub use tool::{ToolCall, ToolFailure, ToolOutput, ToolResult};

use crate::error::ChatError;
use crate::frame::{Skill, Unknown, owned};

/// One step of a chat. Acolyte specification, *Event model*.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// What the chat does now. Servers send [`RunState::Running`] once, when it starts.
    Status(RunState),
    /// What the model thinks aloud.
    Reasoning(Cow<'a, str>),
    /// More of the model's text. All of it together is not the reply's output: there is also what
    /// the model says beside calls of tools.
    TextDelta(Cow<'a, str>),
    /// The model calls a tool.
    ToolCall(ToolCall<'a>),
    /// A tool puts something out.
    ToolOutput(ToolOutput<'a>),
    /// A tool has run.
    ToolResult(ToolResult<'a>),
    /// What the chat costs, estimated while it runs. It goes up and down: keep the last, never add
    /// them up, and trust the reply's.
    Usage(Usage),
    /// A list of what is to be done, whole each time. Replace the one of the same group.
    Checklist(Checklist<'a>),
    /// The chat has failed. Over HTTP it is the end; on a WebSocket it is not, `chat.error` is.
    Error(ChatError<'a>),
    /// Something that does not end the chat.
    Notice(Notice<'a>),
    /// A skill was switched on.
    SkillActivated(Skill<'a>),
    /// The skill of this name was switched off.
    SkillDeactivated(Cow<'a, str>),
    /// An event that this crate does not know.
    Unknown(Unknown<'a>),
}

/// What a chat does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RunState {
    /// It runs.
    Running {
        /// How many tools it has called.
        tool_calls: Option<u64>,
    },
    /// It waits for its turn.
    Queued {
        /// Its place, from 1.
        position: Option<u64>,
    },
    /// It was accepted.
    Accepted,
    /// It waits for the user. Servers up to 0.21 only.
    AwaitingInput,
}

impl RunState {
    /// It runs.
    pub const RUNNING: Self = Self::Running { tool_calls: None };
}

/// What a chat costs, in tokens: an estimate while it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
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

impl<'a> Event<'a> {
    /// More of the model's text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::TextDelta(text.into())
    }

    /// The `type` on the wire.
    #[must_use]
    pub fn tag(&self) -> &str {
        match self {
            Self::Status(_) => "status",
            Self::Reasoning(_) => "reasoning",
            Self::TextDelta(_) => "text-delta",
            Self::ToolCall(_) => "tool-call",
            Self::ToolOutput(_) => "tool-output",
            Self::ToolResult(_) => "tool-result",
            Self::Usage(_) => "usage",
            Self::Checklist(list) => list.tag.name(),
            Self::Error(_) => "error",
            Self::Notice(_) => "notice",
            Self::SkillActivated(_) => "skill-activated",
            Self::SkillDeactivated(_) => "skill-deactivated",
            Self::Unknown(unknown) => &unknown.tag,
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Event<'static> {
        match self {
            Self::Status(state) => Event::Status(state),
            Self::Reasoning(text) => Event::Reasoning(owned(text)),
            Self::TextDelta(text) => Event::TextDelta(owned(text)),
            Self::ToolCall(call) => Event::ToolCall(call.into_owned()),
            Self::ToolOutput(output) => Event::ToolOutput(output.into_owned()),
            Self::ToolResult(result) => Event::ToolResult(result.into_owned()),
            Self::Usage(usage) => Event::Usage(usage),
            Self::Checklist(list) => Event::Checklist(list.into_owned()),
            Self::Error(error) => Event::Error(error.into_owned()),
            Self::Notice(notice) => Event::Notice(notice.into_owned()),
            Self::SkillActivated(skill) => Event::SkillActivated(skill.into_owned()),
            Self::SkillDeactivated(name) => Event::SkillDeactivated(owned(name)),
            Self::Unknown(unknown) => Event::Unknown(unknown.into_owned()),
        }
    }
}
