//! What models are asked and what that costs.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{
    DecodeError, Field, Members, RawJson, SharedJson, SharedStr, Slot, parse_object,
};
use serde::Serialize;

use super::super::body::Body;
use super::super::json::Json;
use super::super::keep::Keep;
use super::super::number::Number;
use super::super::word::{Phase, Word};

/// A model is asked. Clients show it as thinking.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct LlmCall<S = SharedStr> {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<S>,
    /// The how manieth call of the turn it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    /// `running`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Word<Phase, S>>,
}

impl LlmCall {
    /// The call of this model.
    pub fn new(model: impl Into<SharedStr>, iteration: u64) -> Self {
        Self {
            model: Some(model.into()),
            iteration: Some(iteration),
            status: Some(Word::Known(Phase::Running)),
        }
    }
}

impl<'a> LlmCall<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            model: body.text_of("model")?,
            iteration: body.count("iteration")?,
            status: body.word("status")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> LlmCall<K::Text> {
        LlmCall {
            model: how.texts(&self.model),
            iteration: self.iteration,
            status: how.words(&self.status),
        }
    }
}

/// A model has answered. The event has the id of its [`LlmCall`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LlmResult<S = SharedStr, J = SharedJson> {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<S>,
    /// The how manieth call of the turn it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    /// How long it took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<Number>,
    /// How many tools it wants to call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_calls_count: Option<u64>,
    /// What it cost, as it was sent: see [`usage`](Self::usage).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<J>,
    /// How much of the model's window is used, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_percent: Option<Number>,
    /// `success`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Word<Phase, S>>,
}

impl LlmResult {
    /// The answer of this model to this call, which wants so many tools.
    pub fn new(model: impl Into<SharedStr>, iteration: u64, tool_calls: u64) -> Self {
        Self {
            model: Some(model.into()),
            iteration: Some(iteration),
            duration_ms: None,
            tool_calls_count: Some(tool_calls),
            usage: None,
            context_percent: None,
            status: Some(Word::Known(Phase::Success)),
        }
    }
}

impl<S, J: Json> LlmResult<S, J> {
    /// What it cost.
    ///
    /// # Errors
    /// [`DecodeError`] if a host has written something else there.
    pub fn usage(&self) -> Result<Option<Usage>, DecodeError> {
        let Some(usage) = &self.usage else {
            return Ok(None);
        };
        let members: UsageMembers = parse_object(usage.json(), &Limits::default())?;
        Ok(Some(Usage {
            input_tokens: members.input_tokens.take().unwrap_or(0),
            output_tokens: members.output_tokens.take().unwrap_or(0),
            cached_tokens: members.cached_tokens.take().unwrap_or(0),
            cache_write_tokens: members.cache_write_tokens.take().unwrap_or(0),
            cost: members.cost.take().unwrap_or(0.0),
        }))
    }
}

impl<'a> LlmResult<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            model: body.text_of("model")?,
            iteration: body.count("iteration")?,
            duration_ms: body.number("duration_ms")?,
            tool_calls_count: body.count("tool_calls_count")?,
            usage: body.object("usage")?,
            context_percent: body.number("context_percent")?,
            status: body.word("status")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> LlmResult<K::Text, K::Json> {
        LlmResult {
            model: how.texts(&self.model),
            iteration: self.iteration,
            duration_ms: self.duration_ms,
            tool_calls_count: self.tool_calls_count,
            usage: how.jsons(&self.usage),
            context_percent: self.context_percent,
            status: how.words(&self.status),
        }
    }
}

/// What a call of a model cost. What a host leaves out is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Of those read: tokens that a cache had.
    pub cached_tokens: u64,
    /// Of those read: tokens that a cache has now.
    pub cache_write_tokens: u64,
    /// The price in US dollars.
    pub cost: f64,
}

impl Usage {
    /// So many tokens read and written, and a price in US dollars.
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

#[derive(Default)]
struct UsageMembers {
    input_tokens: Slot<u64>,
    output_tokens: Slot<u64>,
    cached_tokens: Slot<u64>,
    cache_write_tokens: Slot<u64>,
    cost: Slot<f64>,
}

impl<'a> Members<'a> for UsageMembers {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "input_tokens" => field.u64("input_tokens", &mut self.input_tokens),
            "output_tokens" => field.u64("output_tokens", &mut self.output_tokens),
            "cached_tokens" => field.u64("cached_tokens", &mut self.cached_tokens),
            "cache_write_tokens" => field.u64("cache_write_tokens", &mut self.cache_write_tokens),
            "cost" => field.f64("cost", &mut self.cost),
            _ => field.skip(),
        }
    }
}

/// The conversation is made shorter, because the model's window gets full. ConnectOnion
/// specification, *Stream Events*. The start and the end have the same id.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Compact<S = SharedStr> {
    /// `compacting`, `done` or `error`.
    pub status: Word<Phase, S>,
    /// How much of the model's window is used, in percent. At the start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_percent: Option<Number>,
    /// How much was used, in percent. At the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_before: Option<Number>,
    /// How much is used now, in percent. At the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_after: Option<Number>,
    /// For people. At the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<S>,
    /// What went wrong, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<S>,
}

impl Compact {
    /// Compacting is so far.
    #[must_use]
    pub const fn new(phase: Phase) -> Self {
        Self {
            status: Word::Known(phase),
            context_percent: None,
            context_before: None,
            context_after: None,
            message: None,
            error: None,
        }
    }
}

impl<'a> Compact<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let status = body.word("status")?;
        Ok(Self {
            status: status.ok_or_else(|| DecodeError::missing("status"))?,
            context_percent: body.number("context_percent")?,
            context_before: body.number("context_before")?,
            context_after: body.number("context_after")?,
            message: body.loose("message")?,
            error: body.loose("error")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> Compact<K::Text> {
        Compact {
            status: how.word(&self.status),
            context_percent: self.context_percent,
            context_before: self.context_before,
            context_after: self.context_after,
            message: how.texts(&self.message),
            error: how.texts(&self.error),
        }
    }
}

/// What a run has used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Complete<J = SharedJson> {
    /// The tools, as they were sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_used: Option<J>,
    /// How often a model was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub llm_calls: Option<u64>,
    /// How many rounds there were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iterations: Option<u64>,
}

impl Complete {
    /// So many calls of models in so many rounds.
    #[must_use]
    pub const fn new(llm_calls: u64, iterations: u64) -> Self {
        Self {
            tools_used: None,
            llm_calls: Some(llm_calls),
            iterations: Some(iterations),
        }
    }
}

impl<'a> Complete<RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            tools_used: body.raw("tools_used")?,
            llm_calls: body.count("llm_calls")?,
            iterations: body.count("iterations")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> Complete<K::Json> {
        Complete {
            tools_used: how.jsons(&self.tools_used),
            llm_calls: self.llm_calls,
            iterations: self.iterations,
        }
    }
}

/// The whole conversation as it is now. Hosts send it after every event, and it may be newer than
/// the event before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionSync<J = SharedJson> {
    /// A [`Session`](super::super::Session), as it was sent.
    pub session: J,
}

impl SessionSync {
    /// This conversation.
    #[must_use]
    pub const fn new(session: SharedJson) -> Self {
        Self { session }
    }
}

impl<'a> SessionSync<RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let session = body.object("session")?;
        Ok(Self {
            session: session.ok_or_else(|| DecodeError::missing("session"))?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> SessionSync<K::Json> {
        SessionSync {
            session: how.json(&self.session),
        }
    }
}
