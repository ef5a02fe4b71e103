//! Calls of models and their cost.

use rpc_core::json::lenient::{optional_loose, optional_object, or_default};
use rpc_core::{Json, Str, members};
use serde::{Deserialize, Serialize};

use super::super::number::Number;

members! {
    /// A call of a model, and its answer, which comes in an event with the id of the call. Clients show
    /// the call as thinking.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct LlmCall {
        /// The name of the model.
        pub model: Option<Str>,
        /// The number of the call within the turn.
        pub iteration: Option<u64>,
        /// How long it took, in milliseconds. In the answer.
        pub duration_ms: Option<Number>,
        /// The number of tools that the model wants to call. In the answer.
        pub tool_calls_count: Option<u64>,
        /// The cost: a [`Usage`], as it was sent. In the answer.
        pub usage: Option<Json> as "optional_object",
        /// How much of the model's window is used, in percent. In the answer.
        pub context_percent: Option<Number>,
        /// `running`, or in the answer `success`.
        pub status: Option<Str>,
    }

    /// The conversation is compacted, because the model's window is nearly full. ConnectOnion
    /// specification, *Stream Events*. The start and the end have the same id.
    #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
    pub struct Compact {
        /// `compacting`, `done` or `error`.
        pub status: Str,
        /// The used part of the model's window, in percent. At the start.
        pub context_percent: Option<Number>,
        /// The used part before, in percent. At the end.
        pub context_before: Option<Number>,
        /// The used part now, in percent. At the end.
        pub context_after: Option<Number>,
        /// A message for people. At the end.
        pub message: Option<Str> as "optional_loose",
        /// The error message, for people.
        pub error: Option<Str> as "optional_loose",
    }

    /// The resources that a run has used.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Complete {
        /// The tools, as they were sent.
        pub tools_used: Option<Json>,
        /// The number of calls of a model.
        pub llm_calls: Option<u64>,
        /// The number of iterations.
        pub iterations: Option<u64>,
    }

    /// The cost of a model's call. Absent members are 0.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
    #[serde(default)]
    pub struct Usage {
        /// Input tokens.
        pub input_tokens: u64 as "or_default",
        /// Output tokens.
        pub output_tokens: u64 as "or_default",
        /// Input tokens that came from a cache.
        pub cached_tokens: u64 as "or_default",
        /// Input tokens that were written to a cache.
        pub cache_write_tokens: u64 as "or_default",
        /// The price in US dollars.
        pub cost: f64 as "or_default",
    }
}

impl LlmCall {
    /// Creates a call of this model.
    pub fn new(model: impl Into<Str>, iteration: u64) -> Self {
        Self {
            model: Some(model.into()),
            iteration: Some(iteration),
            status: Some(Str::from_static("running")),
            ..Self::default()
        }
    }

    /// Creates the answer of this model to this call, with this many tool calls.
    pub fn answer(model: impl Into<Str>, iteration: u64, tool_calls: u64) -> Self {
        Self {
            tool_calls_count: Some(tool_calls),
            status: Some(Str::from_static("success")),
            ..Self::new(model, iteration)
        }
    }
}

impl Compact {
    /// Creates an event for this status.
    pub fn new(status: impl Into<Str>) -> Self {
        Self {
            status: status.into(),
            ..Self::default()
        }
    }
}
