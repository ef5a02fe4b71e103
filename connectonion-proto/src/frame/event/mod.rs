//! [`StreamEvent`]: one step of an agent's work, as the user may see it.

mod ask;
mod model;
mod said;
mod tool;

use rpc_core::json::each_member;
use rpc_core::json::lenient::{loose, object};
use rpc_core::{Json, Refused, Str, tagged};

pub use ask::{
    ApprovalNeeded, AskField, AskUser, BatchItem, ModeChanged, PlanReview, UlwTurnsReached,
};
pub use model::{Compact, Complete, LlmCall, LlmResult, Usage};
pub use said::{Eval, Intent, Thinking, UserInput};
pub use tool::{DiffPreview, FilesReceived, ReceivedFile, ToolBlocked, ToolCall, ToolResult};

use super::number::Number;
use super::session::Session;
use crate::id::{EventId, SessionId};

tagged! {
    /// One step of an agent's work. ConnectOnion specification, *Stream Events*.
    ///
    /// Hosts send all three common members with every event, and so does this crate's server; in
    /// what is read each may be absent.
    #[derive(Clone, Debug, PartialEq)]
    #[non_exhaustive]
    pub struct StreamEvent {
        /// What it is.
        .. => pub kind: EventKind,
        /// The event's id, where a client can go on from. Not unique: a start and its end may share
        /// one.
        "id" => pub id: Option<EventId>,
        /// When it was, in seconds since 1970.
        "ts" => pub ts: Option<Number>,
        /// The session.
        "session_id" => pub session_id: Option<SessionId>,
    }
    then tool_id
}

tagged! {
    /// What a [`StreamEvent`] is. The specification names seven of them; agents may send any others,
    /// which are `Unknown`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum EventKind by "type" {
        /// A prompt was taken in.
        "user_input" => UserInput(UserInput),
        /// The agent says something.
        "assistant" => Assistant(Str) in #[serde(deserialize_with = "loose")] "content",
        /// A model is asked.
        "llm_call" => LlmCall(LlmCall),
        /// A model has answered.
        "llm_result" => LlmResult(LlmResult),
        /// What the agent thinks.
        "thinking" => Thinking(Thinking),
        /// A tool starts.
        "tool_call" => ToolCall(ToolCall),
        /// A tool has ended.
        "tool_result" => ToolResult(ToolResult),
        /// The agent waits for the user's answer.
        "ask_user" => AskUser(AskUser),
        /// A tool waits for the user's leave.
        "approval_needed" => ApprovalNeeded(ApprovalNeeded),
        /// A plan waits for the user's word.
        "plan_review" => PlanReview(PlanReview),
        /// The conversation is made shorter.
        "compact" => Compact(Compact),
        /// The agent works in another mode.
        "mode_changed" => ModeChanged(ModeChanged),
        /// The turns of the mode `ulw` are used up; the agent waits.
        "ulw_turns_reached" => UlwTurnsReached(UlwTurnsReached),
        /// Files were saved.
        "files_received" => FilesReceived(FilesReceived),
        /// What the agent takes the prompt for.
        "intent" => Intent(Intent),
        /// How the agent judges what it has done.
        "eval" => Eval(Eval),
        /// A tool may not run.
        "tool_blocked" => ToolBlocked(ToolBlocked),
        /// An image of the agent: a data URL.
        "agent_image" => AgentImage(Str) in "image",
        /// What a tool would change.
        "diff_preview" => DiffPreview(DiffPreview),
        /// What a run has used.
        "complete" => Complete(Complete),
        /// The whole conversation as it is now: a [`Session`], as it was sent. Hosts send it after every
        /// event, and it may be newer than the event before it.
        "session_sync" => SessionSync(Json) in #[serde(deserialize_with = "object")] "session",
    }
}

/// Hosts that send no `tool_id` name the event's own.
fn tool_id<E: serde::de::Error>(event: &mut StreamEvent) -> Result<(), E> {
    if let EventKind::ToolCall(ToolCall { tool_id, .. })
    | EventKind::ToolResult(ToolResult { tool_id, .. }) = &mut event.kind
        && tool_id.is_none()
    {
        let id = event.id.clone();
        *tool_id = Some(id.ok_or_else(|| E::missing_field("tool_id"))?.into());
    }
    Ok(())
}

impl EventKind {
    /// An event of an agent's own type, with the members of this object. An `id`, a `ts` and a
    /// `session_id` among them do not count, and neither does what is no object.
    pub fn other(tag: impl Into<Str>, members: Json) -> Self {
        Self::Unknown {
            tag: tag.into(),
            raw: members,
        }
    }

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

impl StreamEvent {
    /// An event of a session, in seconds since 1970.
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
        // What is no object has no members.
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
