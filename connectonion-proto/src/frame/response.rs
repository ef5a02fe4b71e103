//! The user's answers and requests during a run: [`Response`], [`ModeChange`], [`PromptUpdate`].

use rpc_core::{Json, Str, members, tagged};
use serde::{Deserialize, Serialize};

use super::words::{Mode, Rejection, Scope, UlwAction};
use crate::id::EventId;

tagged! {
    /// The user's answer to a question of the agent.
    #[derive(Clone, Debug, PartialEq, Eq)]
    #[non_exhaustive]
    pub struct Response {
        /// The answer.
        .. => pub answer: Answer,
        /// The id of the event that asked. The specification's clients do not send it; this crate's
        /// client does.
        "request_id" => pub request_id: Option<EventId>,
    }
}

tagged! {
    /// An answer, by the type of its frame.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub enum Answer by "type" {
        /// To `ask_user`: a text, or any other value. ConnectOnion specification, *`ASK_USER_RESPONSE`*.
        "ASK_USER_RESPONSE" => AskUser(Json) in "answer",
        /// To `approval_needed`. ConnectOnion specification, *`APPROVAL_RESPONSE`*.
        "APPROVAL_RESPONSE" => Approval(Approval),
        /// To `plan_review`: the return value of the tool that asked. Not in the specification.
        "PLAN_REVIEW_RESPONSE" => PlanReview(Str) in "message",
        /// To `ulw_turns_reached`. Not in the specification.
        "ULW_RESPONSE" => Ulw(Ulw),
    }
}

members! {
    /// Whether a tool may run. ConnectOnion specification, *`APPROVAL_RESPONSE`*.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Approval {
        /// Whether the user approves.
        pub approved: bool,
        /// How long that holds; once, if absent.
        pub scope: Option<Scope>,
        /// The consequence of a refusal; if absent, the agent stops. Not in the specification.
        pub mode: Option<Rejection>,
        /// The reason for a refusal, for the agent. Not in the specification.
        pub feedback: Option<Str>,
    }

    /// How to continue when the turns of the mode `ulw` are used up.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Ulw {
        /// The action; an unknown word stops the agent.
        pub action: UlwAction,
        /// The number of additional turns.
        pub turns: Option<u64>,
        /// The new mode.
        pub mode: Option<Mode>,
    }

    /// A change of the agent's mode. Not in the specification.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(tag = "type", rename = "mode_change")]
    pub struct ModeChange {
        /// The new mode.
        pub mode: Mode,
        /// The number of turns, in the mode `ulw`.
        pub turns: Option<u64>,
    }

    /// A change of the goal of the mode `ulw`. Not in the specification.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(tag = "type", rename = "prompt_update")]
    pub struct PromptUpdate {
        /// The goal.
        pub prompt: Str,
    }
}

impl Approval {
    /// Approves the tool in this scope.
    #[must_use]
    pub fn granted(scope: Scope) -> Self {
        Self {
            approved: true,
            scope: Some(scope),
            ..Self::default()
        }
    }

    /// Refuses the tool, with this consequence.
    #[must_use]
    pub fn refused(mode: Rejection) -> Self {
        Self {
            mode: Some(mode),
            ..Self::default()
        }
    }

    /// Sets [`feedback`](Self::feedback).
    #[must_use]
    pub fn with_feedback(mut self, feedback: impl Into<Str>) -> Self {
        self.feedback = Some(feedback.into());
        self
    }
}

impl Ulw {
    /// Continues for this many turns.
    #[must_use]
    pub const fn go_on(turns: u64) -> Self {
        Self {
            action: UlwAction::Continue,
            turns: Some(turns),
            mode: None,
        }
    }

    /// Continues in another mode.
    #[must_use]
    pub const fn switch_mode(mode: Mode) -> Self {
        Self {
            action: UlwAction::SwitchMode,
            turns: None,
            mode: Some(mode),
        }
    }

    /// Stops the agent, by a word unknown to hosts.
    #[must_use]
    pub fn stop() -> Self {
        Self {
            action: UlwAction::Other("stop".into()),
            turns: None,
            mode: None,
        }
    }
}

impl Response {
    /// Creates an answer to the event with this id.
    pub fn new(request_id: impl Into<EventId>, answer: Answer) -> Self {
        Self {
            request_id: Some(request_id.into()),
            answer,
        }
    }
}

impl ModeChange {
    /// Creates a change to this mode.
    #[must_use]
    pub const fn new(mode: Mode) -> Self {
        Self { mode, turns: None }
    }
}

impl PromptUpdate {
    /// Creates a change to this goal.
    pub fn new(prompt: impl Into<Str>) -> Self {
        Self {
            prompt: prompt.into(),
        }
    }
}
