//! [`StreamEvent`]: one step of an agent's work.

mod ask;
mod model;
mod texts;
mod tool;

use rpc_core::json::each_member;
use rpc_core::json::lenient::{loose, object};
use rpc_core::{Json, Refused, Str, tagged};

pub use ask::{
    ApprovalNeeded, AskField, AskUser, BatchItem, ModeChanged, PlanReview, UlwTurnsReached,
};
pub use model::{Compact, Complete, LlmCall, Usage};
pub use texts::{Eval, Intent, TextDelta, Thinking, UserInput};
pub use tool::{DiffPreview, FilesReceived, ReceivedFile, ToolBlocked, ToolCall, ToolResult};

use super::number::Number;
use super::server::HOST_FRAMES;
use super::session::Session;
use crate::id::{EventId, SessionId};

tagged! {
    /// One step of an agent's work. ConnectOnion specification, *Stream Events*.
    ///
    /// Hosts send all three common members with every event, and so does this crate's server; each
    /// may be absent in a received event.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct StreamEvent {
        /// Its kind.
        .. => pub kind: EventKind,
        /// The event's id, from which a client can resume. Not unique: a start and its end may
        /// share one.
        "id" => pub id: Option<EventId>,
        /// Its time, in seconds since 1970.
        "ts" => pub ts: Option<Number>,
        /// The session.
        "session_id" => pub session_id: Option<SessionId>,
    }
    then tool_id
}

tagged! {
    /// The kind of a [`StreamEvent`]. The specification names seven of them; agents may send any
    /// others, which are `Unknown`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum EventKind by "type" {
        /// The agent has read a prompt.
        "user_input" => UserInput(UserInput),
        /// The agent's words.
        "assistant" => Assistant(Str) in #[serde(deserialize_with = "loose")] "content",
        /// More of the agent's words.
        "assistant_delta" => AssistantDelta(TextDelta),
        /// A model is called.
        "llm_call" => LlmCall(LlmCall),
        /// A model has answered.
        "llm_result" => LlmResult(LlmCall),
        /// The agent's thoughts.
        "thinking" => Thinking(Thinking),
        /// More of the agent's thoughts.
        "thinking_delta" => ThinkingDelta(TextDelta),
        /// A tool starts.
        "tool_call" => ToolCall(ToolCall),
        /// A tool has ended.
        "tool_result" => ToolResult(ToolResult),
        /// The agent waits for the user's answer.
        "ask_user" => AskUser(AskUser),
        /// A tool waits for the user's approval.
        "approval_needed" => ApprovalNeeded(ApprovalNeeded),
        /// A plan waits for the user's review.
        "plan_review" => PlanReview(PlanReview),
        /// The conversation is compacted.
        "compact" => Compact(Compact),
        /// The agent's mode has changed.
        "mode_changed" => ModeChanged(ModeChanged),
        /// The turns of the mode `ulw` are used up; the agent waits.
        "ulw_turns_reached" => UlwTurnsReached(UlwTurnsReached),
        /// Files were saved.
        "files_received" => FilesReceived(FilesReceived),
        /// How the agent understands the prompt.
        "intent" => Intent(Intent),
        /// How the agent judges its work.
        "eval" => Eval(Eval),
        /// A tool may not run.
        "tool_blocked" => ToolBlocked(ToolBlocked),
        /// An image of the agent: a data URL.
        "agent_image" => AgentImage(Str) in "image",
        /// The change that a tool would make.
        "diff_preview" => DiffPreview(DiffPreview),
        /// The resources that a run has used.
        "complete" => Complete(Complete),
        /// The whole conversation as it is now: a [`Session`], as it was sent. Hosts send it after every
        /// event, and it may be newer than the event before it.
        "session_sync" => SessionSync(Json) in #[serde(deserialize_with = "object")] "session",
    }
}

/// For hosts that send no `tool_id`: uses the event's own id.
fn tool_id<E: serde::de::Error>(event: &mut StreamEvent) -> Result<(), E> {
    if let EventKind::ToolCall(ToolCall { tool_id, .. })
    | EventKind::ToolResult(ToolResult { tool_id, .. }) = &mut event.kind
        && tool_id.is_none()
    {
        let id = event.id.clone();
        let id = id.ok_or_else(|| E::missing_field("tool_id"))?;
        *tool_id = Some(Str::from(id).into());
    }
    Ok(())
}

/// How a host keeps an event; [`EventKind::kept`] decides it for each kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// How it is replayed to clients that come back.
    pub(crate) replay: Replay,
    /// Whether the session's trace has it: what was done, and not what was asked or shown.
    pub(crate) is_traced: bool,
    /// Whether clients may see it after its host has died. They may not see what is not true any
    /// more: questions that are no longer open, parts of a text that is not written to its end, the
    /// conversation and the mode of the interrupted run, and prompts that are read again.
    pub(crate) outlives_its_host: bool,
    /// The type of the frame that answers it.
    pub(crate) answer: Option<&'static str>,
}

/// How an event is replayed to clients that come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Replay {
    /// As it is.
    Whole,
    /// Until there is a later one.
    Newest,
    /// Until the text that it is a part of is whole.
    Part(EventId),
    /// Not at all: frames of this type are the host's own, and answer one connection or end a run.
    Never,
}

impl EventKind {
    /// Returns what a host keeps of this event.
    pub(crate) fn kept(&self) -> Kept {
        let mut kept = Kept {
            replay: Replay::Whole,
            is_traced: false,
            outlives_its_host: true,
            answer: None,
        };
        match self {
            Self::Assistant(_)
            | Self::LlmCall(_)
            | Self::LlmResult(_)
            | Self::Thinking(_)
            | Self::ToolCall(_)
            | Self::ToolResult(_)
            | Self::ToolBlocked(_)
            | Self::FilesReceived(_)
            | Self::Intent(_)
            | Self::Eval(_)
            | Self::Compact(_) => kept.is_traced = true,
            Self::UserInput(input) => {
                (kept.is_traced, kept.outlives_its_host) = (true, !input.runtime_input);
            }
            Self::ModeChanged(_) => (kept.is_traced, kept.outlives_its_host) = (true, false),
            Self::Unknown { tag, .. } if HOST_FRAMES.contains(&&**tag) => {
                kept.replay = Replay::Never;
            }
            Self::AgentImage(_)
            | Self::DiffPreview(_)
            | Self::Complete(_)
            | Self::Unknown { .. } => {}
            Self::AskUser(_) => kept.answer = Some("ASK_USER_RESPONSE"),
            Self::ApprovalNeeded(_) => kept.answer = Some("APPROVAL_RESPONSE"),
            Self::PlanReview(_) => kept.answer = Some("PLAN_REVIEW_RESPONSE"),
            Self::UlwTurnsReached(_) => kept.answer = Some("ULW_RESPONSE"),
            Self::AssistantDelta(delta) | Self::ThinkingDelta(delta) => {
                kept.replay = Replay::Part(delta.message_id.clone());
            }
            Self::SessionSync(_) => kept.replay = Replay::Newest,
        }
        let is_whole = matches!(kept.replay, Replay::Whole | Replay::Never);
        kept.outlives_its_host &= is_whole && kept.answer.is_none();
        kept
    }

    /// Returns the part of a text that this event has, if it has only a part. A client that shows it
    /// has not shown the text yet, so it is nothing to resume from.
    #[must_use]
    pub fn delta(&self) -> Option<&TextDelta> {
        match self {
            Self::AssistantDelta(delta) | Self::ThinkingDelta(delta) => Some(delta),
            _ => None,
        }
    }

    /// Returns the type of the frame that answers, if the agent waits for the user's answer.
    #[must_use]
    pub fn awaits(&self) -> Option<&'static str> {
        self.kept().answer
    }
}

impl StreamEvent {
    /// Creates an event of a session, at a time in seconds since 1970.
    pub fn new(
        kind: EventKind,
        id: impl Into<EventId>,
        ts: impl Into<Number>,
        session_id: impl Into<SessionId>,
    ) -> Self {
        let mut event = Self {
            kind,
            id: Some(id.into()),
            ts: Some(ts.into()),
            session_id: Some(session_id.into()),
        };
        // What is read of another type is written as it is; what is made has to be whole.
        if let EventKind::Unknown { tag, raw } = &event.kind
            && let Ok(raw) = event.whole(tag, raw)
        {
            let tag = tag.clone();
            event.kind = EventKind::Unknown { tag, raw };
        }
        event
    }

    fn whole(&self, tag: &Str, members: &Json) -> Result<Json, Refused> {
        let mut whole = Session::new();
        whole.set("type", tag)?;
        // What is not an object has no members.
        let _ = each_member(members.get(), |name, value| {
            if let Ok(value) = Json::new(value)
                && !["type", "id", "ts", "session_id"].contains(&&*name)
            {
                whole.set_raw(&name, value);
            }
        });
        whole.set("id", &self.id)?;
        whole.set("ts", &self.ts)?;
        whole.set("session_id", &self.session_id)?;
        Json::of(&whole)
    }
}
