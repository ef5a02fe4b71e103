//! What the user answers and wants while the agent works: [`Response`], [`ModeChange`],
//! [`PromptUpdate`].

use std::borrow::Cow;

use rpc_core::decode::{DecodeError, FrameCopy, RawJson, SharedJson, SharedStr};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::body::Body;
use super::json::Json;
use super::keep::Keep;
use super::word::{Mode, Rejection, Scope, UlwAction, Word};

/// The user's answer to a question of the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Response<S = SharedStr, J = SharedJson> {
    /// The id of the event that asked. The specification's clients do not send it; this crate's do.
    pub request_id: Option<S>,
    /// What is answered.
    pub answer: Answer<S, J>,
}

/// What is answered, by the type of the frame.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer<S = SharedStr, J = SharedJson> {
    /// To `ask_user`: a text, or any other value. ConnectOnion specification, *`ASK_USER_RESPONSE`*.
    AskUser(J),
    /// To `approval_needed`.
    Approval(Approval<S>),
    /// To `plan_review`: what the tool that asked returns. Not in the specification.
    PlanReview(S),
    /// To `ulw_turns_reached`. Not in the specification.
    Ulw(Ulw<S>),
}

/// Whether a tool may run. ConnectOnion specification, *`APPROVAL_RESPONSE`*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Approval<S = SharedStr> {
    /// Whether it may.
    pub approved: bool,
    /// How long that holds; once, if it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<Word<Scope, S>>,
    /// What follows when it may not; the agent stops, if it does not say. Not in the specification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Word<Rejection, S>>,
    /// Why it may not, for the agent. Not in the specification.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<S>,
}

/// How to go on when the turns of the mode `ulw` are used up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Ulw<S = SharedStr> {
    /// What to do; an unknown word stops the agent.
    pub action: Word<UlwAction, S>,
    /// How many turns more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Which mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Word<Mode, S>>,
}

impl<S> Approval<S> {
    /// The tool may run, so long.
    #[must_use]
    pub const fn granted(scope: Scope) -> Self {
        Self {
            approved: true,
            scope: Some(Word::Known(scope)),
            mode: None,
            feedback: None,
        }
    }

    /// The tool may not run, and this follows.
    #[must_use]
    pub const fn refused(mode: Rejection) -> Self {
        Self {
            approved: false,
            scope: None,
            mode: Some(Word::Known(mode)),
            feedback: None,
        }
    }

    /// Sets [`feedback`](Self::feedback).
    #[must_use]
    pub fn with_feedback(mut self, feedback: impl Into<S>) -> Self {
        self.feedback = Some(feedback.into());
        self
    }
}

impl<S> Ulw<S> {
    /// Go on for so many turns.
    #[must_use]
    pub const fn go_on(turns: u64) -> Self {
        Self {
            action: Word::Known(UlwAction::Continue),
            turns: Some(turns),
            mode: None,
        }
    }

    /// Go on in another mode.
    #[must_use]
    pub const fn switch_mode(mode: Mode) -> Self {
        Self {
            action: Word::Known(UlwAction::SwitchMode),
            turns: None,
            mode: Some(Word::Known(mode)),
        }
    }
}

impl<S, J> Response<S, J> {
    /// An answer to the event of this id.
    pub fn new(request_id: impl Into<S>, answer: Answer<S, J>) -> Self {
        Self {
            request_id: Some(request_id.into()),
            answer,
        }
    }
}

impl<S, J> Answer<S, J> {
    /// The type of the frame.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::AskUser(_) => "ASK_USER_RESPONSE",
            Self::Approval(_) => "APPROVAL_RESPONSE",
            Self::PlanReview(_) => "PLAN_REVIEW_RESPONSE",
            Self::Ulw(_) => "ULW_RESPONSE",
        }
    }

    /// The type of the event that asks for such an answer.
    #[must_use]
    pub const fn event(&self) -> &'static str {
        match self {
            Self::AskUser(_) => "ask_user",
            Self::Approval(_) => "approval_needed",
            Self::PlanReview(_) => "plan_review",
            Self::Ulw(_) => "ulw_turns_reached",
        }
    }
}

impl<S: AsRef<str>, J: Json> Answer<S, J> {
    /// The text of an answer to `ask_user` or `plan_review`; of another value its JSON.
    #[must_use]
    pub fn text(&self) -> Option<Cow<'_, str>> {
        match self {
            Self::AskUser(answer) => {
                let text = RawJson::new(answer.json()).ok().and_then(RawJson::into_str);
                Some(text.unwrap_or(Cow::Borrowed(answer.json())))
            }
            Self::PlanReview(message) => Some(Cow::Borrowed(message.as_ref())),
            Self::Approval(_) | Self::Ulw(_) => None,
        }
    }
}

impl<'a> Response<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn ask_user(body: &Body<'a>) -> Result<Self, DecodeError> {
        let answer = body.raw_or_null("answer")?;
        let answer = answer.ok_or_else(|| DecodeError::missing("answer"))?;
        Self::read(body, Answer::AskUser(answer))
    }

    pub(super) fn approval(body: &Body<'a>) -> Result<Self, DecodeError> {
        let approved = body.bool("approved")?;
        let approval = Approval {
            approved: approved.ok_or_else(|| DecodeError::missing("approved"))?,
            scope: body.word("scope")?,
            mode: body.word("mode")?,
            feedback: body.text_of("feedback")?,
        };
        Self::read(body, Answer::Approval(approval))
    }

    pub(super) fn plan_review(body: &Body<'a>) -> Result<Self, DecodeError> {
        Self::read(body, Answer::PlanReview(body.need("message")?))
    }

    pub(super) fn ulw(body: &Body<'a>) -> Result<Self, DecodeError> {
        let action = body.word("action")?;
        let ulw = Ulw {
            action: action.ok_or_else(|| DecodeError::missing("action"))?,
            turns: body.count("turns")?,
            mode: body.word("mode")?,
        };
        Self::read(body, Answer::Ulw(ulw))
    }

    fn read(
        body: &Body<'a>,
        answer: Answer<Cow<'a, str>, RawJson<'a>>,
    ) -> Result<Self, DecodeError> {
        let request_id = body.id("request_id")?;
        Ok(Self { request_id, answer })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> Response<K::Text, K::Json> {
        let answer = match &self.answer {
            Answer::AskUser(answer) => Answer::AskUser(how.json(answer)),
            Answer::Approval(approval) => Answer::Approval(Approval {
                approved: approval.approved,
                scope: how.words(&approval.scope),
                mode: how.words(&approval.mode),
                feedback: how.texts(&approval.feedback),
            }),
            Answer::PlanReview(message) => Answer::PlanReview(how.text(message)),
            Answer::Ulw(ulw) => Answer::Ulw(Ulw {
                action: how.word(&ulw.action),
                turns: ulw.turns,
                mode: how.words(&ulw.mode),
            }),
        };
        Response {
            request_id: how.texts(&self.request_id),
            answer,
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> Response {
        self.keep(copy)
    }
}

impl<S: AsRef<str> + Serialize, J: Serialize> Serialize for Response<S, J> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut frame = serializer.serialize_struct("Response", 6)?;
        frame.serialize_field("type", self.answer.name())?;
        match &self.answer {
            Answer::AskUser(answer) => frame.serialize_field("answer", answer)?,
            Answer::Approval(approval) => {
                frame.serialize_field("approved", &approval.approved)?;
                if let Some(scope) = &approval.scope {
                    frame.serialize_field("scope", scope)?;
                }
                if let Some(mode) = &approval.mode {
                    frame.serialize_field("mode", mode)?;
                }
                if let Some(feedback) = &approval.feedback {
                    frame.serialize_field("feedback", feedback)?;
                }
            }
            Answer::PlanReview(message) => frame.serialize_field("message", message)?,
            Answer::Ulw(ulw) => {
                frame.serialize_field("action", &ulw.action)?;
                if let Some(turns) = &ulw.turns {
                    frame.serialize_field("turns", turns)?;
                }
                if let Some(mode) = &ulw.mode {
                    frame.serialize_field("mode", mode)?;
                }
            }
        }
        if let Some(id) = &self.request_id {
            frame.serialize_field("request_id", id)?;
        }
        frame.end()
    }
}

/// The agent is to work in another mode. Not in the specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "mode_change")]
#[non_exhaustive]
pub struct ModeChange<S = SharedStr> {
    /// Which.
    pub mode: Word<Mode, S>,
    /// For how many turns, in the mode `ulw`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
}

impl<S> ModeChange<S> {
    /// Work in this mode.
    #[must_use]
    pub const fn new(mode: Mode) -> Self {
        Self {
            mode: Word::Known(mode),
            turns: None,
        }
    }

    /// Sets [`turns`](Self::turns).
    #[must_use]
    pub const fn with_turns(mut self, turns: u64) -> Self {
        self.turns = Some(turns);
        self
    }
}

impl<'a> ModeChange<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let mode = body.word("mode")?;
        Ok(Self {
            mode: mode.ok_or_else(|| DecodeError::missing("mode"))?,
            turns: body.count("turns")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> ModeChange<K::Text> {
        ModeChange {
            mode: how.word(&self.mode),
            turns: self.turns,
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> ModeChange {
        self.keep(copy)
    }
}

/// The mode `ulw` has another goal. Not in the specification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename = "prompt_update")]
#[non_exhaustive]
pub struct PromptUpdate<S = SharedStr> {
    /// The goal.
    pub prompt: S,
}

impl<S> PromptUpdate<S> {
    /// This goal.
    pub fn new(prompt: impl Into<S>) -> Self {
        Self {
            prompt: prompt.into(),
        }
    }
}

impl<'a> PromptUpdate<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let prompt = body.need("prompt")?;
        Ok(Self { prompt })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> PromptUpdate<K::Text> {
        PromptUpdate {
            prompt: how.text(&self.prompt),
        }
    }

    /// A copy whose pieces share one copy of the frame.
    #[must_use]
    pub fn to_shared(&self, copy: &FrameCopy<'_>) -> PromptUpdate {
        self.keep(copy)
    }
}
