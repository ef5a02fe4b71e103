//! [`Reply`]: how a chat ends.

use rpc_core::{DecodeError, Json, Limits, Str, json};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::chat::Skill;
use crate::loose;

/// How a chat ends. Acolyte specification, *Contract shape*.
///
/// A chat whose model failed ends with a reply too: look at [`error`](Self::error) first. Lists are
/// always written, and so are `outputStreamed` and a name of the model: without them known clients
/// wait for ever.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Reply {
    /// `done` or `awaiting-input`. Servers before 0.22 only.
    #[serde(default, deserialize_with = "loose::text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Str>,
    /// The model that answered. Empty if a server does not tell it; written as `unknown` then.
    #[serde(default, deserialize_with = "loose::text", serialize_with = "named")]
    pub model: Str,
    /// The assistant's last answer.
    pub output: Str,
    /// Whether the output was already sent as deltas; if not, show it now. `None` from servers
    /// before 0.22; written as `false`, so that nothing is lost.
    #[serde(serialize_with = "told")]
    pub output_streamed: Option<bool>,
    /// Why the model failed: then the chat has failed, whatever the output says.
    #[serde(default, deserialize_with = "words")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Str>,
    /// The names of the tools that were called, in their order.
    #[serde(default, deserialize_with = "loose::strings")]
    pub tool_calls: Vec<Str>,
    /// How often the model was called.
    #[serde(default, deserialize_with = "loose::count")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_calls: Option<u64>,
    /// The skills that are on.
    #[serde(default, deserialize_with = "skills")]
    pub active_skills: Vec<Skill>,
    /// What the chat cost.
    #[serde(default, deserialize_with = "loose::object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ReplyUsage>,
    /// What the prompt was made of.
    #[serde(default, deserialize_with = "loose::object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_breakdown: Option<PromptBreakdown>,
}

/// What a chat cost, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "UsageMembers")]
#[non_exhaustive]
pub struct ReplyUsage {
    /// Tokens that were read.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
    /// Tokens of both kinds. The sum of the two, where a server does not tell it.
    pub total_tokens: u64,
    /// Tokens that may be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_budget_tokens: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UsageMembers {
    #[serde(default, deserialize_with = "loose::count")]
    input_tokens: u64,
    #[serde(default, deserialize_with = "loose::count")]
    output_tokens: u64,
    #[serde(default, deserialize_with = "loose::count")]
    total_tokens: Option<u64>,
    #[serde(default, deserialize_with = "loose::count")]
    input_budget_tokens: Option<u64>,
}

/// What a prompt was made of, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct PromptBreakdown {
    /// Tokens that it may have.
    #[serde(deserialize_with = "loose::count")]
    pub budget_tokens: u64,
    /// Tokens that it has.
    #[serde(deserialize_with = "loose::count")]
    pub used_tokens: u64,
    /// Tokens of the server's own words.
    #[serde(deserialize_with = "loose::count")]
    pub system_tokens: u64,
    /// Tokens of the tools' descriptions.
    #[serde(deserialize_with = "loose::count")]
    pub tool_tokens: u64,
    /// Tokens of skills.
    #[serde(deserialize_with = "loose::count")]
    pub skill_tokens: u64,
    /// Tokens of what is remembered.
    #[serde(deserialize_with = "loose::count")]
    pub memory_tokens: u64,
    /// Tokens of the conversation.
    #[serde(deserialize_with = "loose::count")]
    pub message_tokens: u64,
}

impl From<UsageMembers> for ReplyUsage {
    fn from(read: UsageMembers) -> Self {
        let usage = Self::new(read.input_tokens, read.output_tokens);
        Self {
            total_tokens: read.total_tokens.unwrap_or(usage.total_tokens),
            input_budget_tokens: read.input_budget_tokens,
            ..usage
        }
    }
}

/// A model without a name gets one.
fn named<S: Serializer>(model: &Str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(if model.is_empty() { "unknown" } else { model })
}

fn told<S: Serializer>(streamed: &Option<bool>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bool(streamed.unwrap_or(false))
}

/// The words of an error. One that is no text is an error all the same.
fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Str>, D::Error> {
    let error: Option<Json> = Deserialize::deserialize(from)?;
    Ok(error.map(|error| match error.as_str() {
        Some(words) => words.into(),
        None => error.into_text(),
    }))
}

/// An array of skills; what is none is left out.
fn skills<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<Skill>, D::Error> {
    #[derive(Deserialize)]
    struct Maybe {
        #[serde(default, deserialize_with = "loose::text")]
        name: Option<Str>,
        #[serde(default, deserialize_with = "loose::text")]
        instructions: Option<Str>,
    }
    let items = loose::list::<_, loose::Object<Maybe>>(from)?.into_iter();
    let skills = items.filter_map(|item| item.0.and_then(|it| it.name.zip(it.instructions)));
    Ok(skills
        .map(|(name, instructions)| Skill { name, instructions })
        .collect())
}

impl Reply {
    /// A reply whose output was not sent as deltas.
    pub fn new(output: impl Into<Str>, model: impl Into<Str>) -> Self {
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

    /// Decodes a reply that stands for itself. What it can do without may be absent or null.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is no object, has no `output`, or an `outputStreamed` that is
    /// neither true nor false. Decoding it again fails again.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        json::decode_js(text, limits)
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
}
