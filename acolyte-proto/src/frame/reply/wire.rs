//! How a [`Reply`] is read and written.

use std::borrow::Cow;

use rpc_core::Limits;
use rpc_core::decode::{self, DecodeError, Field, Members, Reader, Slot};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::{PromptBreakdown, Reply, ReplyUsage};
use crate::frame::Skill;
use crate::wire::{again, count, list, strings, text};

#[derive(Default)]
struct ReplyMembers<'a> {
    output: Slot<Cow<'a, str>>,
    output_streamed: Slot<bool>,
    model: Slot<Cow<'a, str>>,
    error: Slot<Cow<'a, str>>,
    tool_calls: Slot<Vec<Cow<'a, str>>>,
    model_calls: Slot<u64>,
    active_skills: Slot<Vec<Skill<'a>>>,
    usage: Slot<ReplyUsage>,
    prompt_breakdown: Slot<PromptBreakdown>,
    state: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for ReplyMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "output" => field.read("output", again(&mut self.output), Reader::str_lossy),
            "outputStreamed" => field.bool("outputStreamed", again(&mut self.output_streamed)),
            "model" => field.read("model", again(&mut self.model), text),
            "error" => field.read("error", again(&mut self.error), words),
            "toolCalls" => field.read("toolCalls", again(&mut self.tool_calls), strings),
            "modelCalls" => field.read("modelCalls", again(&mut self.model_calls), count),
            "activeSkills" => {
                field.read("activeSkills", again(&mut self.active_skills), |skills| {
                    list(skills, Skill::read)
                })
            }
            "usage" => field.read("usage", again(&mut self.usage), ReplyUsage::read),
            "promptBreakdown" => field.read(
                "promptBreakdown",
                again(&mut self.prompt_breakdown),
                PromptBreakdown::read,
            ),
            "state" => field.read("state", again(&mut self.state), text),
            _ => field.skip(),
        }
    }
}

/// The words of an error. One that is no text is an error all the same.
fn words<'a>(reader: &mut Reader<'a>) -> Result<Option<Cow<'a, str>>, DecodeError> {
    let value = reader.raw()?;
    Ok(value.map(|value| match value.clone().into_str() {
        Some(words) => words,
        None => value.into_text(),
    }))
}

impl<'a> Reply<'a> {
    /// Decodes a reply that stands for itself. What it can do without may be absent or null.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object, has no `output`, or an `outputStreamed` that is
    /// neither true nor false. Decoding it again fails again.
    pub fn decode(json: &'a str, limits: &Limits) -> Result<Self, DecodeError> {
        decode::object::<ReplyMembers<'a>>(json, limits)?.reply()
    }

    /// A reply; `None` is null.
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Option<Self>, DecodeError> {
        reader.object()?.map(ReplyMembers::reply).transpose()
    }
}

impl<'a> ReplyMembers<'a> {
    fn reply(self) -> Result<Reply<'a>, DecodeError> {
        Ok(Reply {
            output: self.output.require("output")?,
            output_streamed: self.output_streamed.take(),
            model: self.model.take().unwrap_or_default(),
            error: self.error.take(),
            tool_calls: self.tool_calls.take().unwrap_or_default(),
            model_calls: self.model_calls.take(),
            active_skills: self.active_skills.take().unwrap_or_default(),
            usage: self.usage.take(),
            prompt_breakdown: self.prompt_breakdown.take(),
            state: self.state.take(),
        })
    }
}

/// Written in the place of a model without a name.
const UNKNOWN_MODEL: &str = "unknown";

/// Lists are always written, and so are `outputStreamed` and a name of the model: without them known
/// clients wait for ever.
impl Serialize for Reply<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_struct("Reply", 10)?;
        if let Some(state) = &self.state {
            to.serialize_field("state", state)?;
        }
        let model = match &*self.model {
            "" => UNKNOWN_MODEL,
            model => model,
        };
        to.serialize_field("model", model)?;
        to.serialize_field("output", &self.output)?;
        to.serialize_field("outputStreamed", &self.output_streamed.unwrap_or(false))?;
        if let Some(error) = &self.error {
            to.serialize_field("error", error)?;
        }
        to.serialize_field("toolCalls", &self.tool_calls)?;
        if let Some(calls) = &self.model_calls {
            to.serialize_field("modelCalls", calls)?;
        }
        to.serialize_field("activeSkills", &self.active_skills)?;
        if let Some(usage) = &self.usage {
            to.serialize_field("usage", usage)?;
        }
        if let Some(breakdown) = &self.prompt_breakdown {
            to.serialize_field("promptBreakdown", breakdown)?;
        }
        to.end()
    }
}

#[derive(Default)]
struct UsageMembers {
    input_tokens: Slot<u64>,
    output_tokens: Slot<u64>,
    total_tokens: Slot<u64>,
    input_budget_tokens: Slot<u64>,
}

impl<'a> Members<'a> for UsageMembers {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "inputTokens" => field.read("inputTokens", again(&mut self.input_tokens), count),
            "outputTokens" => field.read("outputTokens", again(&mut self.output_tokens), count),
            "totalTokens" => field.read("totalTokens", again(&mut self.total_tokens), count),
            "inputBudgetTokens" => field.read(
                "inputBudgetTokens",
                again(&mut self.input_budget_tokens),
                count,
            ),
            _ => field.skip(),
        }
    }
}

impl ReplyUsage {
    /// What it cost; `None` for what is no object.
    fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        if reader.first_byte() != Some(b'{') {
            return reader.skip().map(|()| None);
        }
        let members = reader.object::<UsageMembers>()?.unwrap_or_default();
        let input = members.input_tokens.take().unwrap_or_default();
        let output = members.output_tokens.take().unwrap_or_default();
        let mut usage = Self::new(input, output);
        if let Some(total) = members.total_tokens.take() {
            usage.total_tokens = total;
        }
        usage.input_budget_tokens = members.input_budget_tokens.take();
        Ok(Some(usage))
    }
}

impl Serialize for ReplyUsage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_struct("ReplyUsage", 4)?;
        to.serialize_field("inputTokens", &self.input_tokens)?;
        to.serialize_field("outputTokens", &self.output_tokens)?;
        to.serialize_field("totalTokens", &self.total_tokens)?;
        if let Some(budget) = &self.input_budget_tokens {
            to.serialize_field("inputBudgetTokens", budget)?;
        }
        to.end()
    }
}

#[derive(Default)]
struct BreakdownMembers {
    budget: Slot<u64>,
    used: Slot<u64>,
    system: Slot<u64>,
    tool: Slot<u64>,
    skill: Slot<u64>,
    memory: Slot<u64>,
    message: Slot<u64>,
}

impl<'a> Members<'a> for BreakdownMembers {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "budgetTokens" => field.read("budgetTokens", again(&mut self.budget), count),
            "usedTokens" => field.read("usedTokens", again(&mut self.used), count),
            "systemTokens" => field.read("systemTokens", again(&mut self.system), count),
            "toolTokens" => field.read("toolTokens", again(&mut self.tool), count),
            "skillTokens" => field.read("skillTokens", again(&mut self.skill), count),
            "memoryTokens" => field.read("memoryTokens", again(&mut self.memory), count),
            "messageTokens" => field.read("messageTokens", again(&mut self.message), count),
            _ => field.skip(),
        }
    }
}

impl PromptBreakdown {
    /// A breakdown; `None` for what is no object.
    fn read(reader: &mut Reader<'_>) -> Result<Option<Self>, DecodeError> {
        if reader.first_byte() != Some(b'{') {
            return reader.skip().map(|()| None);
        }
        let members = reader.object::<BreakdownMembers>()?.unwrap_or_default();
        let tokens = |slot: Slot<u64>| slot.take().unwrap_or_default();
        Ok(Some(Self {
            budget_tokens: tokens(members.budget),
            used_tokens: tokens(members.used),
            system_tokens: tokens(members.system),
            tool_tokens: tokens(members.tool),
            skill_tokens: tokens(members.skill),
            memory_tokens: tokens(members.memory),
            message_tokens: tokens(members.message),
        }))
    }
}

impl Serialize for PromptBreakdown {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut to = serializer.serialize_struct("PromptBreakdown", 7)?;
        to.serialize_field("budgetTokens", &self.budget_tokens)?;
        to.serialize_field("usedTokens", &self.used_tokens)?;
        to.serialize_field("systemTokens", &self.system_tokens)?;
        to.serialize_field("toolTokens", &self.tool_tokens)?;
        to.serialize_field("skillTokens", &self.skill_tokens)?;
        to.serialize_field("memoryTokens", &self.memory_tokens)?;
        to.serialize_field("messageTokens", &self.message_tokens)?;
        to.end()
    }
}
