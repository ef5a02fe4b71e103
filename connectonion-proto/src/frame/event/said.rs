//! What the user and the agent say and think.

use std::borrow::Cow;

use rpc_core::decode::{DecodeError, SharedStr};
use serde::Serialize;

use super::super::body::Body;
use super::super::keep::Keep;
use super::super::word::{Phase, Word};

/// A prompt was taken in: the one that started the run, or one that came while it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UserInput<S = SharedStr> {
    /// What the user said.
    pub content: S,
    /// The how manieth prompt of the session it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The call of the model that will see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    /// Whether it came while the agent was working. The event has then the id of the
    /// [`RuntimeInputAck`](super::super::RuntimeInputAck).
    #[serde(skip_serializing_if = "is_false")]
    pub runtime_input: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

impl UserInput {
    /// The prompt that started the run of this turn.
    pub fn new(content: impl Into<SharedStr>, turn: u64) -> Self {
        Self {
            content: content.into(),
            turn: Some(turn),
            iteration: None,
            runtime_input: false,
        }
    }

    /// A prompt that came while the agent was working, and that this call of the model will see.
    pub fn interjected(content: impl Into<SharedStr>, turn: u64, iteration: u64) -> Self {
        Self {
            content: content.into(),
            turn: Some(turn),
            iteration: Some(iteration),
            runtime_input: true,
        }
    }
}

impl<'a> UserInput<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let content = body.loose("content")?;
        Ok(Self {
            content: content.ok_or_else(|| DecodeError::missing("content"))?,
            turn: body.count("turn")?,
            iteration: body.count("iteration")?,
            runtime_input: body.bool("runtime_input")?.unwrap_or(false),
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> UserInput<K::Text> {
        UserInput {
            content: how.text(&self.content),
            turn: self.turn,
            iteration: self.iteration,
            runtime_input: self.runtime_input,
        }
    }
}

/// The agent says something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Assistant<S = SharedStr> {
    /// What.
    pub content: S,
}

impl Assistant {
    /// The agent says this.
    pub fn new(content: impl Into<SharedStr>) -> Self {
        Self {
            content: content.into(),
        }
    }
}

impl<'a> Assistant<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let content = body.loose("content")?;
        Ok(Self {
            content: content.ok_or_else(|| DecodeError::missing("content"))?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> Assistant<K::Text> {
        Assistant {
            content: how.text(&self.content),
        }
    }
}

/// What the agent thinks. ConnectOnion specification, *Stream Events*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Thinking<S = SharedStr> {
    /// What.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<S>,
    /// Where it comes from: the agent's own word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<S>,
    /// How far it is. In chat items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Word<Phase, S>>,
}

impl Thinking {
    /// This thought.
    pub fn new(content: impl Into<SharedStr>) -> Self {
        Self {
            content: Some(content.into()),
            kind: None,
            status: None,
        }
    }
}

impl<'a> Thinking<Cow<'a, str>> {
    pub(in super::super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            content: body.loose("content")?,
            kind: body.loose("kind")?,
            status: body.word("status")?,
        })
    }

    pub(in super::super) fn keep<K: Keep>(&self, how: &K) -> Thinking<K::Text> {
        Thinking {
            content: how.texts(&self.content),
            kind: how.texts(&self.kind),
            status: how.words(&self.status),
        }
    }
}

/// What the agent takes a prompt for. The start and the end have the same id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Intent<S = SharedStr> {
    /// `analyzing` or `understood`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Word<Phase, S>>,
    /// What the agent says to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack: Option<S>,
    /// Whether something is to be built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_build: Option<bool>,
}

impl Intent {
    /// The agent is so far.
    #[must_use]
    pub const fn new(phase: Phase) -> Self {
        Self {
            status: Some(Word::Known(phase)),
            ack: None,
            is_build: None,
        }
    }
}

impl<'a> Intent<Cow<'a, str>> {
    pub(in super::super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            status: body.word("status")?,
            ack: body.loose("ack")?,
            is_build: body.bool("is_build")?,
        })
    }

    pub(in super::super) fn keep<K: Keep>(&self, how: &K) -> Intent<K::Text> {
        Intent {
            status: how.words(&self.status),
            ack: how.texts(&self.ack),
            is_build: self.is_build,
        }
    }
}

/// How the agent judges what it has done. The start and the end have the same id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Eval<S = SharedStr> {
    /// `evaluating` or `done`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Word<Phase, S>>,
    /// Whether it is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// The judgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<S>,
    /// What was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<S>,
    /// The file that says what was expected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval_path: Option<S>,
}

impl Eval {
    /// The agent is so far.
    #[must_use]
    pub const fn new(phase: Phase) -> Self {
        Self {
            status: Some(Word::Known(phase)),
            passed: None,
            summary: None,
            expected: None,
            eval_path: None,
        }
    }
}

impl<'a> Eval<Cow<'a, str>> {
    pub(in super::super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            status: body.word("status")?,
            passed: body.bool("passed")?,
            summary: body.loose("summary")?,
            expected: body.loose("expected")?,
            eval_path: body.loose("eval_path")?,
        })
    }

    pub(in super::super) fn keep<K: Keep>(&self, how: &K) -> Eval<K::Text> {
        Eval {
            status: how.words(&self.status),
            passed: self.passed,
            summary: how.texts(&self.summary),
            expected: how.texts(&self.expected),
            eval_path: how.texts(&self.eval_path),
        }
    }
}
