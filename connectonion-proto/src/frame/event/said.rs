//! What the user and the agent say and think.

use rpc_core::Str;
use rpc_core::json::lenient::{loose, or_default};
use serde::{Deserialize, Serialize};

use super::super::json::{is_false, opt};
use super::super::words::Phase;

/// A prompt was taken in: the one that started the run, or one that came while it ran.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct UserInput {
    /// What the user said.
    #[serde(deserialize_with = "loose")]
    pub content: Str,
    /// The how manieth prompt of the session it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<u64>,
    /// The call of the model that will see it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    /// Whether it came while the agent was working. The event has then the id of the
    /// [`RuntimeInputAck`](super::super::RuntimeInputAck).
    #[serde(
        default,
        deserialize_with = "or_default",
        skip_serializing_if = "is_false"
    )]
    pub runtime_input: bool,
}

impl UserInput {
    /// The prompt that started the run of this turn.
    pub fn new(content: impl Into<Str>, turn: u64) -> Self {
        Self {
            content: content.into(),
            turn: Some(turn),
            iteration: None,
            runtime_input: false,
        }
    }

    /// A prompt that came while the agent was working, and that this call of the model will see.
    pub fn interjected(content: impl Into<Str>, turn: u64, iteration: u64) -> Self {
        Self {
            content: content.into(),
            turn: Some(turn),
            iteration: Some(iteration),
            runtime_input: true,
        }
    }
}

/// What the agent thinks. ConnectOnion specification, *Stream Events*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Thinking {
    /// What.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub content: Option<Str>,
    /// Where it comes from: the agent's own word.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub kind: Option<Str>,
    /// How far it is. In chat items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Phase>,
}

impl Thinking {
    /// This thought.
    pub fn new(content: impl Into<Str>) -> Self {
        Self {
            content: Some(content.into()),
            ..Self::default()
        }
    }
}

/// What the agent takes a prompt for. The start and the end have the same id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Intent {
    /// `analyzing` or `understood`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Phase>,
    /// What the agent says to it.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub ack: Option<Str>,
    /// Whether something is to be built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_build: Option<bool>,
}

/// How the agent judges what it has done. The start and the end have the same id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Eval {
    /// `evaluating` or `done`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Phase>,
    /// Whether it is good.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passed: Option<bool>,
    /// The judgement.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub summary: Option<Str>,
    /// What was expected.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub expected: Option<Str>,
    /// The file that says what was expected.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub eval_path: Option<Str>,
}
