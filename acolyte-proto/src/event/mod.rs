//! [`Event`]: one step of a chat, the same over WebSockets and over HTTP.

mod part;
mod tool;

use std::borrow::Cow;

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

/// A list of what is to be done, named `checklist` by releases and `tasklist` by later servers.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checklist<'a> {
    /// By which name it was sent, or is to be sent.
    pub tag: ChecklistTag,
    /// Which list.
    pub group_id: Cow<'a, str>,
    /// What the list is called.
    pub group_title: Cow<'a, str>,
    /// Its items, as they were sent; see [`ChecklistItem::order`].
    pub items: Vec<ChecklistItem<'a>>,
}

/// The two names of a checklist. Exhaustive: an event of another name is another event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ChecklistTag {
    /// `checklist`: the specification, and all releases.
    #[default]
    Checklist,
    /// `tasklist`: servers after 0.22.
    Tasklist,
}

/// An item of a [`Checklist`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChecklistItem<'a> {
    /// Which item.
    pub id: Cow<'a, str>,
    /// What is to be done.
    pub label: Cow<'a, str>,
    /// How far it is.
    pub status: ItemStatus<'a>,
    /// Where it stands in the list.
    pub order: u64,
}

/// How far an item is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ItemStatus<'a> {
    /// Nothing was done yet.
    Pending,
    /// It is being done.
    InProgress,
    /// It is done.
    Done,
    /// It could not be done.
    Failed,
    /// A word that this crate does not know.
    Other(Cow<'a, str>),
}

/// Something that people should know and that does not end the chat. Servers from 0.22.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Notice<'a> {
    /// How bad it is.
    pub level: NoticeLevel<'a>,
    /// What to show.
    pub message: Cow<'a, str>,
    /// Where it comes from.
    pub source: Option<Cow<'a, str>>,
}

/// How bad a notice is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoticeLevel<'a> {
    /// Something may be wrong.
    Warn,
    /// Something is wrong.
    Error,
    /// A word that this crate does not know.
    Other(Cow<'a, str>),
}

impl<'a> Checklist<'a> {
    /// A list without items, sent as `checklist`.
    pub fn new(group_id: impl Into<Cow<'a, str>>, group_title: impl Into<Cow<'a, str>>) -> Self {
        Self {
            tag: ChecklistTag::default(),
            group_id: group_id.into(),
            group_title: group_title.into(),
            items: Vec::new(),
        }
    }

    /// Sets [`tag`](Self::tag).
    #[must_use]
    pub const fn with_tag(mut self, tag: ChecklistTag) -> Self {
        self.tag = tag;
        self
    }

    /// Adds an item behind the others.
    #[must_use]
    pub fn with_item(mut self, item: ChecklistItem<'a>) -> Self {
        self.items.push(item);
        self
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Checklist<'static> {
        Checklist {
            tag: self.tag,
            group_id: owned(self.group_id),
            group_title: owned(self.group_title),
            items: self
                .items
                .into_iter()
                .map(ChecklistItem::into_owned)
                .collect(),
        }
    }
}

impl ChecklistTag {
    /// The name on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Checklist => "checklist",
            Self::Tasklist => "tasklist",
        }
    }
}

impl<'a> ChecklistItem<'a> {
    /// An item that nothing was done for yet.
    pub fn new(id: impl Into<Cow<'a, str>>, label: impl Into<Cow<'a, str>>, order: u64) -> Self {
        Self {
            id: id.into(),
            label: label.into(),
            status: ItemStatus::Pending,
            order,
        }
    }

    /// Sets [`status`](Self::status).
    #[must_use]
    pub fn with_status(mut self, status: ItemStatus<'a>) -> Self {
        self.status = status;
        self
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ChecklistItem<'static> {
        ChecklistItem {
            id: owned(self.id),
            label: owned(self.label),
            status: self.status.into_owned(),
            order: self.order,
        }
    }
}

impl<'a> ItemStatus<'a> {
    /// The word on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Other(name) => name,
        }
    }

    /// The status of this name.
    #[must_use]
    pub fn parse(name: Cow<'a, str>) -> Self {
        match &*name {
            "pending" => Self::Pending,
            "in_progress" => Self::InProgress,
            "done" => Self::Done,
            "failed" => Self::Failed,
            _ => Self::Other(name),
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ItemStatus<'static> {
        match self {
            Self::Pending => ItemStatus::Pending,
            Self::InProgress => ItemStatus::InProgress,
            Self::Done => ItemStatus::Done,
            Self::Failed => ItemStatus::Failed,
            Self::Other(name) => ItemStatus::Other(owned(name)),
        }
    }
}

impl<'a> Notice<'a> {
    /// A warning with these words.
    pub fn warn(message: impl Into<Cow<'a, str>>) -> Self {
        Self {
            level: NoticeLevel::Warn,
            message: message.into(),
            source: None,
        }
    }

    /// An error with these words, which does not end the chat.
    pub fn error(message: impl Into<Cow<'a, str>>) -> Self {
        Self {
            level: NoticeLevel::Error,
            ..Self::warn(message)
        }
    }

    /// Sets [`source`](Self::source).
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Cow<'a, str>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Notice<'static> {
        Notice {
            level: self.level.into_owned(),
            message: owned(self.message),
            source: self.source.map(owned),
        }
    }
}

impl<'a> NoticeLevel<'a> {
    /// The word on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Warn => "warn",
            Self::Error => "error",
            Self::Other(name) => name,
        }
    }

    /// The level of this name.
    #[must_use]
    pub fn parse(name: Cow<'a, str>) -> Self {
        match &*name {
            "warn" => Self::Warn,
            "error" => Self::Error,
            _ => Self::Other(name),
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> NoticeLevel<'static> {
        match self {
            Self::Warn => NoticeLevel::Warn,
            Self::Error => NoticeLevel::Error,
            Self::Other(name) => NoticeLevel::Other(owned(name)),
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
