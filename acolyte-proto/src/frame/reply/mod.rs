//! [`Reply`]: how a chat ends.

mod wire;

use std::borrow::Cow;

use super::chat::Skill;
use super::open::owned;

/// How a chat ends. Acolyte specification, *Contract shape*.
///
/// A chat whose model failed ends with a reply too: look at [`error`](Self::error) first.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Reply<'a> {
    /// The assistant's last answer.
    pub output: Cow<'a, str>,
    /// Whether the output was already sent as deltas; if not, show it now. `None` from servers
    /// before 0.22; written as `false`, so that nothing is lost.
    pub output_streamed: Option<bool>,
    /// The model that answered. Empty if a server does not tell it; written as `unknown` then.
    pub model: Cow<'a, str>,
    /// Why the model failed: then the chat has failed, whatever the output says.
    pub error: Option<Cow<'a, str>>,
    /// The names of the tools that were called, in their order.
    pub tool_calls: Vec<Cow<'a, str>>,
    /// How often the model was called.
    pub model_calls: Option<u64>,
    /// The skills that are on.
    pub active_skills: Vec<Skill<'a>>,
    /// What the chat cost.
    pub usage: Option<ReplyUsage>,
    /// What the prompt was made of.
    pub prompt_breakdown: Option<PromptBreakdown>,
    /// `done` or `awaiting-input`. Servers before 0.22 only.
    pub state: Option<Cow<'a, str>>,
}

/// What a chat cost, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ReplyUsage {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Tokens of both kinds. The sum of the two, where a server does not tell it.
    pub total_tokens: u64,
    /// Tokens that may be read.
    pub input_budget_tokens: Option<u64>,
}

/// What a prompt was made of, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct PromptBreakdown {
    /// Tokens that it may have.
    pub budget_tokens: u64,
    /// Tokens that it has.
    pub used_tokens: u64,
    /// Tokens of the server's own words.
    pub system_tokens: u64,
    /// Tokens of the tools' descriptions.
    pub tool_tokens: u64,
    /// Tokens of skills.
    pub skill_tokens: u64,
    /// Tokens of what is remembered.
    pub memory_tokens: u64,
    /// Tokens of the conversation.
    pub message_tokens: u64,
}

impl<'a> Reply<'a> {
    /// A reply whose output was not sent as deltas.
    pub fn new(output: impl Into<Cow<'a, str>>, model: impl Into<Cow<'a, str>>) -> Self {
        Self {
            output: output.into(),
            output_streamed: Some(false),
            model: model.into(),
            ..Self::default()
        }
    }

    /// Sets [`output_streamed`](Self::output_streamed).
    #[must_use]
    pub const fn with_output_streamed(mut self, streamed: bool) -> Self {
        self.output_streamed = Some(streamed);
        self
    }

    /// Sets [`error`](Self::error).
    #[must_use]
    pub fn with_error(mut self, error: impl Into<Cow<'a, str>>) -> Self {
        self.error = Some(error.into());
        self
    }

    /// Adds the name of a tool that was called.
    #[must_use]
    pub fn with_tool_call(mut self, name: impl Into<Cow<'a, str>>) -> Self {
        self.tool_calls.push(name.into());
        self
    }

    /// Sets [`model_calls`](Self::model_calls).
    #[must_use]
    pub const fn with_model_calls(mut self, calls: u64) -> Self {
        self.model_calls = Some(calls);
        self
    }

    /// Adds a skill that is on.
    #[must_use]
    pub fn with_active_skill(mut self, skill: Skill<'a>) -> Self {
        self.active_skills.push(skill);
        self
    }

    /// Sets [`usage`](Self::usage).
    #[must_use]
    pub const fn with_usage(mut self, usage: ReplyUsage) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Sets [`prompt_breakdown`](Self::prompt_breakdown).
    #[must_use]
    pub const fn with_prompt_breakdown(mut self, breakdown: PromptBreakdown) -> Self {
        self.prompt_breakdown = Some(breakdown);
        self
    }

    /// Sets [`state`](Self::state), which clients before 0.22 want.
    #[must_use]
    pub fn with_state(mut self, state: impl Into<Cow<'a, str>>) -> Self {
        self.state = Some(state.into());
        self
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Reply<'static> {
        Reply {
            output: owned(self.output),
            output_streamed: self.output_streamed,
            model: owned(self.model),
            error: self.error.map(owned),
            tool_calls: self.tool_calls.into_iter().map(owned).collect(),
            model_calls: self.model_calls,
            active_skills: self
                .active_skills
                .into_iter()
                .map(Skill::into_owned)
                .collect(),
            usage: self.usage,
            prompt_breakdown: self.prompt_breakdown,
            state: self.state.map(owned),
        }
    }
}

impl ReplyUsage {
    /// So many tokens read and written.
    #[must_use]
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self {
            input_tokens,
            output_tokens,
            total_tokens: input_tokens.saturating_add(output_tokens),
            input_budget_tokens: None,
        }
    }

    /// Sets [`input_budget_tokens`](Self::input_budget_tokens).
    #[must_use]
    pub const fn with_input_budget_tokens(mut self, tokens: u64) -> Self {
        self.input_budget_tokens = Some(tokens);
        self
    }
}
