//! Words and thoughts of the user and the agent.

use rpc_core::json::lenient::{loose, optional_loose, or_default};
use rpc_core::{Str, members};
use serde::{Deserialize, Serialize};

use super::super::json::is_false;
use crate::id::EventId;

members! {
    /// The agent has read a prompt: the one that started the run, or a later one.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct UserInput {
        /// The user's words.
        pub content: Str as "loose",
        /// The number of the prompt within the session.
        pub turn: Option<u64>,
        /// The number of the model's call that will see it.
        pub iteration: Option<u64>,
        /// Whether it came while the agent was running. The event then has the id of the
        /// [`RuntimeInputAck`](super::super::RuntimeInputAck).
        #[serde(default, deserialize_with = "or_default")]
        #[serde(skip_serializing_if = "is_false")]
        pub runtime_input: bool,
    }

    /// The agent's thoughts. ConnectOnion specification, *Stream Events*.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Thinking {
        /// The text.
        pub content: Option<Str> as "optional_loose",
        /// The source, in the agent's own words.
        pub kind: Option<Str> as "optional_loose",
        /// The progress: `running`, `done` or `error`. In chat items.
        pub status: Option<Str>,
    }

    /// How the agent understands a prompt. The start and the end have the same id.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Intent {
        /// `analyzing` or `understood`.
        pub status: Option<Str>,
        /// The agent's reply to it.
        pub ack: Option<Str> as "optional_loose",
        /// Whether the prompt asks to build something.
        pub is_build: Option<bool>,
    }

    /// How the agent judges its work. The start and the end have the same id.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Eval {
        /// `evaluating` or `done`.
        pub status: Option<Str>,
        /// Whether the work passed.
        pub passed: Option<bool>,
        /// The judgement.
        pub summary: Option<Str> as "optional_loose",
        /// The expected result.
        pub expected: Option<Str> as "optional_loose",
        /// The file with the expected result.
        pub eval_path: Option<Str> as "optional_loose",
    }

    /// More of a text that an agent is writing: a part of its answer, or of its thoughts. An event of
    /// this crate, see *Deviations* in [`spec`](crate::spec).
    ///
    /// The parts of one text have the same `message_id`. If an event with the whole text follows, that
    /// is its `id`; the text of an `OUTPUT` replaces the parts of the last answer.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct TextDelta {
        /// The text that follows the earlier parts.
        pub content: Str as "loose",
        /// The text that this is a part of.
        pub message_id: EventId,
    }
}

impl UserInput {
    /// Creates the event for the prompt that started the run of this turn.
    pub fn new(content: impl Into<Str>, turn: u64) -> Self {
        Self {
            content: content.into(),
            turn: Some(turn),
            ..Self::default()
        }
    }

    /// Creates the event for a prompt during a run, which this call of the model will see.
    pub(crate) fn interjected(content: impl Into<Str>, turn: u64, iteration: u64) -> Self {
        Self {
            iteration: Some(iteration),
            runtime_input: true,
            ..Self::new(content, turn)
        }
    }
}

impl Thinking {
    /// Creates an event with this thought.
    pub fn new(content: impl Into<Str>) -> Self {
        Self {
            content: Some(content.into()),
            ..Self::default()
        }
    }
}

impl TextDelta {
    /// Creates an event with this part of a text.
    pub fn new(content: impl Into<Str>, message_id: impl Into<EventId>) -> Self {
        Self {
            content: content.into(),
            message_id: message_id.into(),
        }
    }
}
