//! [`StreamEvent`]: one step of an agent's work, as the user may see it.

mod ask;
mod model;
mod other;
mod said;
mod tool;

use std::borrow::Cow;

use rpc_core::decode::{DecodeError, FrameCopy, RawJson, SharedJson, SharedStr};
use serde::{Serialize, Serializer};

pub use ask::{
    ApprovalNeeded, AskField, AskUser, BatchItem, ModeChanged, PlanReview, UlwTurnsReached,
};
pub use model::{Compact, Complete, LlmCall, LlmResult, SessionSync, Usage};
pub use other::OtherEvent;
pub use said::{Assistant, Eval, Intent, Thinking, UserInput};
pub use tool::{
    AgentImage, DiffPreview, FilesReceived, ReceivedFile, ToolBlocked, ToolCall, ToolResult,
};

use super::body::Body;
use super::json::Json;
use super::keep::{Keep, Owned};
use super::number::Number;

/// One step of an agent's work. ConnectOnion specification, *Stream Events*.
///
/// `S` is a text and `J` a raw JSON value: borrowed from the frame ([`BorrowedEvent`]) or owned.
/// Hosts send all three common members with every event, and so does this crate's server; in what
/// is read each may be absent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StreamEvent<S = SharedStr, J = SharedJson> {
    /// The event's id, where a client can go on from. Not unique: a start and its end may share one.
    pub id: Option<S>,
    /// When it was, in seconds since 1970.
    pub ts: Option<Number>,
    /// The session.
    pub session_id: Option<S>,
    /// What it is.
    pub kind: EventKind<S, J>,
}

/// A [`StreamEvent`] that borrows from the frame.
pub type BorrowedEvent<'a> = StreamEvent<Cow<'a, str>, RawJson<'a>>;

/// What a [`StreamEvent`] is. The specification names seven of them; agents may send any others.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum EventKind<S = SharedStr, J = SharedJson> {
    /// `user_input`: a prompt was taken in.
    UserInput(UserInput<S>),
    /// `assistant`: the agent says something.
    Assistant(Assistant<S>),
    /// `llm_call`: a model is asked.
    LlmCall(LlmCall<S>),
    /// `llm_result`: a model has answered.
    LlmResult(LlmResult<S, J>),
    /// `thinking`: what the agent thinks.
    Thinking(Thinking<S>),
    /// `tool_call`: a tool starts.
    ToolCall(ToolCall<S, J>),
    /// `tool_result`: a tool has ended.
    ToolResult(ToolResult<S, J>),
    /// `ask_user`: the agent waits for the user's answer.
    AskUser(AskUser<S, J>),
    /// `approval_needed`: a tool waits for the user's leave.
    ApprovalNeeded(ApprovalNeeded<S, J>),
    /// `plan_review`: a plan waits for the user's word.
    PlanReview(PlanReview<S>),
    /// `compact`: the conversation is made shorter.
    Compact(Compact<S>),
    /// `mode_changed`: the agent works in another mode.
    ModeChanged(ModeChanged<S>),
    /// `ulw_turns_reached`: the turns of the mode `ulw` are used up; the agent waits.
    UlwTurnsReached(UlwTurnsReached),
    /// `files_received`: files were saved.
    FilesReceived(FilesReceived<J>),
    /// `intent`: what the agent takes the prompt for.
    Intent(Intent<S>),
    /// `eval`: how the agent judges what it has done.
    Eval(Eval<S>),
    /// `tool_blocked`: a tool may not run.
    ToolBlocked(ToolBlocked<S>),
    /// `agent_image`: an image of the agent.
    AgentImage(AgentImage<S>),
    /// `diff_preview`: what a tool would change.
    DiffPreview(DiffPreview<S>),
    /// `complete`: what a run has used.
    Complete(Complete<J>),
    /// `session_sync`: the conversation as it is now.
    SessionSync(SessionSync<J>),
    /// Any other.
    Other(OtherEvent<S, J>),
}

impl<S, J> EventKind<S, J> {
    /// Whether the agent waits for the user's answer, and the type of the frame that answers.
    #[must_use]
    pub const fn awaits(&self) -> Option<&'static str> {
        match self {
            Self::AskUser(_) => Some("ASK_USER_RESPONSE"),
            Self::ApprovalNeeded(_) => Some("APPROVAL_RESPONSE"),
            Self::PlanReview(_) => Some("PLAN_REVIEW_RESPONSE"),
            Self::UlwTurnsReached(_) => Some("ULW_RESPONSE"),
            _ => None,
        }
    }
}

impl<S: AsRef<str>, J> EventKind<S, J> {
    /// The type on the wire.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::UserInput(_) => "user_input",
            Self::Assistant(_) => "assistant",
            Self::LlmCall(_) => "llm_call",
            Self::LlmResult(_) => "llm_result",
            Self::Thinking(_) => "thinking",
            Self::ToolCall(_) => "tool_call",
            Self::ToolResult(_) => "tool_result",
            Self::AskUser(_) => "ask_user",
            Self::ApprovalNeeded(_) => "approval_needed",
            Self::PlanReview(_) => "plan_review",
            Self::Compact(_) => "compact",
            Self::ModeChanged(_) => "mode_changed",
            Self::UlwTurnsReached(_) => "ulw_turns_reached",
            Self::FilesReceived(_) => "files_received",
            Self::Intent(_) => "intent",
            Self::Eval(_) => "eval",
            Self::ToolBlocked(_) => "tool_blocked",
            Self::AgentImage(_) => "agent_image",
            Self::DiffPreview(_) => "diff_preview",
            Self::Complete(_) => "complete",
            Self::SessionSync(_) => "session_sync",
            Self::Other(other) => other.name.as_ref(),
        }
    }
}

impl StreamEvent {
    /// An event of a session, in seconds since 1970.
    pub fn new(
        kind: EventKind,
        id: impl Into<SharedStr>,
        ts: impl Into<Number>,
        session_id: impl Into<SharedStr>,
    ) -> Self {
        Self {
            id: Some(id.into()),
            ts: Some(ts.into()),
            session_id: Some(session_id.into()),
            kind,
        }
    }
}

impl<'a> BorrowedEvent<'a> {
    /// Reads an event of a type that this crate knows. `None` for another.
    pub(super) fn read(tag: &str, body: &Body<'a>) -> Option<Result<Self, DecodeError>> {
        let (name, kind) = BorrowedKind::read(tag, body)?;
        let event = kind.and_then(|kind| Self::with_kind(body, kind));
        Some(event.map_err(|error| error.in_frame(name)))
    }

    /// Reads an event of an agent's own type: a frame with an id and a time.
    pub(super) fn read_other(tag: &Cow<'a, str>, body: &Body<'a>) -> Option<Self> {
        let id = body.text_of("id").ok()??;
        let ts = body.number("ts").ok()??;
        Some(Self {
            id: Some(id),
            ts: Some(ts),
            session_id: body.id("session_id").ok()?,
            kind: EventKind::Other(OtherEvent {
                name: tag.clone(),
                body: RawJson::new(body.text()).ok()?,
            }),
        })
    }

    fn with_kind(body: &Body<'a>, kind: BorrowedKind<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            id: body.id("id")?,
            ts: body.number("ts")?,
            session_id: body.id("session_id")?,
            kind,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> StreamEvent<K::Text, K::Json> {
        StreamEvent {
            id: how.texts(&self.id),
            ts: self.ts,
            session_id: how.texts(&self.session_id),
            kind: self.kind.keep(how),
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> StreamEvent {
        self.keep(copy)
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> BorrowedEvent<'static> {
        self.keep(&Owned)
    }
}

type BorrowedKind<'a> = EventKind<Cow<'a, str>, RawJson<'a>>;

impl<'a> BorrowedKind<'a> {
    fn read(tag: &str, body: &Body<'a>) -> Option<(&'static str, Result<Self, DecodeError>)> {
        Some(match tag {
            "thinking" => ("thinking", Thinking::read(body).map(Self::Thinking)),
            "tool_call" => ("tool_call", ToolCall::read(body).map(Self::ToolCall)),
            "tool_result" => ("tool_result", ToolResult::read(body).map(Self::ToolResult)),
            "llm_call" => ("llm_call", LlmCall::read(body).map(Self::LlmCall)),
            "llm_result" => ("llm_result", LlmResult::read(body).map(Self::LlmResult)),
            "session_sync" => (
                "session_sync",
                SessionSync::read(body).map(Self::SessionSync),
            ),
            "user_input" => ("user_input", UserInput::read(body).map(Self::UserInput)),
            "assistant" => ("assistant", Assistant::read(body).map(Self::Assistant)),
            "ask_user" => ("ask_user", AskUser::read(body).map(Self::AskUser)),
            "approval_needed" => {
                let kind = ApprovalNeeded::read(body).map(Self::ApprovalNeeded);
                ("approval_needed", kind)
            }
            "plan_review" => ("plan_review", PlanReview::read(body).map(Self::PlanReview)),
            "compact" => ("compact", Compact::read(body).map(Self::Compact)),
            "mode_changed" => (
                "mode_changed",
                ModeChanged::read(body).map(Self::ModeChanged),
            ),
            "ulw_turns_reached" => {
                let kind = UlwTurnsReached::read(body).map(Self::UlwTurnsReached);
                ("ulw_turns_reached", kind)
            }
            "files_received" => {
                let kind = FilesReceived::read(body).map(Self::FilesReceived);
                ("files_received", kind)
            }
            "intent" => ("intent", Intent::read(body).map(Self::Intent)),
            "eval" => ("eval", Eval::read(body).map(Self::Eval)),
            "tool_blocked" => (
                "tool_blocked",
                ToolBlocked::read(body).map(Self::ToolBlocked),
            ),
            "agent_image" => ("agent_image", AgentImage::read(body).map(Self::AgentImage)),
            "diff_preview" => (
                "diff_preview",
                DiffPreview::read(body).map(Self::DiffPreview),
            ),
            "complete" => ("complete", Complete::read(body).map(Self::Complete)),
            _ => return None,
        })
    }

    fn keep<K: Keep>(&self, how: &K) -> EventKind<K::Text, K::Json> {
        match self {
            Self::UserInput(it) => EventKind::UserInput(it.keep(how)),
            Self::Assistant(it) => EventKind::Assistant(it.keep(how)),
            Self::LlmCall(it) => EventKind::LlmCall(it.keep(how)),
            Self::LlmResult(it) => EventKind::LlmResult(it.keep(how)),
            Self::Thinking(it) => EventKind::Thinking(it.keep(how)),
            Self::ToolCall(it) => EventKind::ToolCall(it.keep(how)),
            Self::ToolResult(it) => EventKind::ToolResult(it.keep(how)),
            Self::AskUser(it) => EventKind::AskUser(it.keep(how)),
            Self::ApprovalNeeded(it) => EventKind::ApprovalNeeded(it.keep(how)),
            Self::PlanReview(it) => EventKind::PlanReview(it.keep(how)),
            Self::Compact(it) => EventKind::Compact(it.keep(how)),
            Self::ModeChanged(it) => EventKind::ModeChanged(it.keep(how)),
            Self::UlwTurnsReached(it) => EventKind::UlwTurnsReached(*it),
            Self::FilesReceived(it) => EventKind::FilesReceived(it.keep(how)),
            Self::Intent(it) => EventKind::Intent(it.keep(how)),
            Self::Eval(it) => EventKind::Eval(it.keep(how)),
            Self::ToolBlocked(it) => EventKind::ToolBlocked(it.keep(how)),
            Self::AgentImage(it) => EventKind::AgentImage(it.keep(how)),
            Self::DiffPreview(it) => EventKind::DiffPreview(it.keep(how)),
            Self::Complete(it) => EventKind::Complete(it.keep(how)),
            Self::SessionSync(it) => EventKind::SessionSync(it.keep(how)),
            Self::Other(it) => EventKind::Other(it.keep(how)),
        }
    }
}

/// Writes the members of the event itself, without its type and the common ones.
impl<S: Serialize, J: Json> Serialize for EventKind<S, J> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        match self {
            Self::UserInput(it) => it.serialize(serializer),
            Self::Assistant(it) => it.serialize(serializer),
            Self::LlmCall(it) => it.serialize(serializer),
            Self::LlmResult(it) => it.serialize(serializer),
            Self::Thinking(it) => it.serialize(serializer),
            Self::ToolCall(it) => it.serialize(serializer),
            Self::ToolResult(it) => it.serialize(serializer),
            Self::AskUser(it) => it.serialize(serializer),
            Self::ApprovalNeeded(it) => it.serialize(serializer),
            Self::PlanReview(it) => it.serialize(serializer),
            Self::Compact(it) => it.serialize(serializer),
            Self::ModeChanged(it) => it.serialize(serializer),
            Self::UlwTurnsReached(it) => it.serialize(serializer),
            Self::FilesReceived(it) => it.serialize(serializer),
            Self::Intent(it) => it.serialize(serializer),
            Self::Eval(it) => it.serialize(serializer),
            Self::ToolBlocked(it) => it.serialize(serializer),
            Self::AgentImage(it) => it.serialize(serializer),
            Self::DiffPreview(it) => it.serialize(serializer),
            Self::Complete(it) => it.serialize(serializer),
            Self::SessionSync(it) => it.serialize(serializer),
            Self::Other(it) => it.serialize(serializer),
        }
    }
}

/// Writes the whole frame.
impl<S: AsRef<str> + Serialize, J: Json> Serialize for StreamEvent<S, J> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        #[derive(Serialize)]
        #[serde(bound(serialize = "S: Serialize, J: Json"))]
        struct Frame<'f, S, J> {
            #[serde(rename = "type")]
            name: &'f str,
            #[serde(flatten)]
            kind: &'f EventKind<S, J>,
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'f S>,
            #[serde(skip_serializing_if = "Option::is_none")]
            ts: Option<Number>,
            #[serde(skip_serializing_if = "Option::is_none")]
            session_id: Option<&'f S>,
        }
        let frame = Frame {
            name: self.kind.name(),
            kind: &self.kind,
            id: self.id.as_ref(),
            ts: self.ts,
            session_id: self.session_id.as_ref(),
        };
        frame.serialize(serializer)
    }
}
