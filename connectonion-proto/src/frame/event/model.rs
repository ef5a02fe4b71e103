//! Calls of models and their cost.

use rpc_core::json::lenient::or_default;
use rpc_core::{DecodeError, Json, Str};
use serde::{Deserialize, Serialize};

use super::super::json::opt;
use super::super::number::Number;
use super::super::words::Phase;

/// A model is called. Clients show it as thinking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LlmCall {
    /// The name of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Str>,
    /// The number of the call within the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    /// `running`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Phase>,
}

impl LlmCall {
    /// Creates a call of this model.
    pub fn new(model: impl Into<Str>, iteration: u64) -> Self {
        Self {
            model: Some(model.into()),
            iteration: Some(iteration),
            status: Some(Phase::Running),
        }
    }
}

/// A model has answered. The event has the id of its [`LlmCall`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct LlmResult {
    /// The name of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Str>,
    /// The number of the call within the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<Number>,
    /// The number of tools that it wants to call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls_count: Option<u64>,
    /// The cost, as it was sent: see [`usage`](Self::usage).
    #[serde(default, with = "opt::object", skip_serializing_if = "Option::is_none")]
    pub usage: Option<Json>,
    /// How much of the model's window is used, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_percent: Option<Number>,
    /// `success`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Phase>,
}

impl LlmResult {
    /// Creates the answer of this model to this call, with this many tool calls.
    pub fn new(model: impl Into<Str>, iteration: u64, tool_calls: u64) -> Self {
        Self {
            model: Some(model.into()),
            iteration: Some(iteration),
            tool_calls_count: Some(tool_calls),
            status: Some(Phase::Success),
            ..Self::default()
        }
    }

    /// Returns the cost.
    ///
    /// # Errors
    /// [`DecodeError`] if the host has sent anything else.
    pub fn usage(&self) -> Result<Option<Usage>, DecodeError> {
        self.usage.as_ref().map(Json::parse).transpose()
    }
}

/// The cost of a model's call. Absent members are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Usage {
    /// Input tokens.
    #[serde(deserialize_with = "or_default")]
    pub input_tokens: u64,
    /// Output tokens.
    #[serde(deserialize_with = "or_default")]
    pub output_tokens: u64,
    /// Input tokens that came from a cache.
    #[serde(deserialize_with = "or_default")]
    pub cached_tokens: u64,
    /// Input tokens that were written to a cache.
    #[serde(deserialize_with = "or_default")]
    pub cache_write_tokens: u64,
    /// The price in US dollars.
    #[serde(deserialize_with = "or_default")]
    pub cost: f64,
}

impl Usage {
    /// Creates a usage of this many input and output tokens, at a price in US dollars.
    #[must_use]
    pub const fn new(input_tokens: u64, output_tokens: u64, cost: f64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            cached_tokens: 0,
            cache_write_tokens: 0,
            cost,
        }
    }
}

/// The conversation is compacted, because the model's window is nearly full. ConnectOnion
/// specification, *Stream Events*. The start and the end have the same id.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Compact {
    /// `compacting`, `done` or `error`.
    pub status: Phase,
    /// The used part of the model's window, in percent. At the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_percent: Option<Number>,
    /// The used part before, in percent. At the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_before: Option<Number>,
    /// The used part now, in percent. At the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_after: Option<Number>,
    /// A message for people. At the end.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub message: Option<Str>,
    /// What went wrong, for people.
    #[serde(default, with = "opt::loose", skip_serializing_if = "Option::is_none")]
    pub error: Option<Str>,
}

impl Compact {
    /// Creates an event for this phase.
    #[must_use]
    pub const fn new(phase: Phase) -> Self {
        Self {
            status: phase,
            context_percent: None,
            context_before: None,
            context_after: None,
            message: None,
            error: None,
        }
    }
}

/// The resources that a run has used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Complete {
    /// The tools, as they were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_used: Option<Json>,
    /// The number of calls of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llm_calls: Option<u64>,
    /// The number of iterations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
}
