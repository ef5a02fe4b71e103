//! [`Reply`]: the end of a chat.

use rpc_core::{DecodeError, Json, Limits, Str, json};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::chat::Skill;
use crate::loose;

/// The end of a chat. Acolyte specification, *Contract shape*.
///
/// A chat whose model failed ends with a reply too: check [`error`](Self::error) first. Lists are
/// always written, and so are `outputStreamed` and the name of a model: without them known clients
/// wait for ever.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reply {
    /// `done` or `awaiting-input`. Servers before 0.22 only.
    #[serde(default, deserialize_with = "loose::text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Str>,
    /// The model that answered. Empty if a server leaves it out; then written as `unknown`.
    #[serde(default, deserialize_with = "loose::text", serialize_with = "named")]
    pub model: Str,
    /// The assistant's last answer.
    pub output: Str,
    /// Whether the output was already sent as deltas; if not, show it now. `None` from servers
    /// before 0.22, and then written as `false`, so that no output is lost.
    #[serde(serialize_with = "serialize_streamed")]
    pub output_streamed: Option<bool>,
    /// Why the model failed: the chat has then failed, whatever the output says.
    #[serde(default, deserialize_with = "words")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Str>,
    /// The names of the tools called, in order.
    #[serde(default, deserialize_with = "loose::strings")]
    pub tool_calls: Vec<Str>,
    /// How often the model was called.
    #[serde(default, deserialize_with = "loose::count")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_calls: Option<u64>,
    /// The active skills.
    #[serde(default, deserialize_with = "skills")]
    pub active_skills: Vec<Skill>,
    /// The tokens that the chat used.
    #[serde(default, deserialize_with = "loose::object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<ReplyUsage>,
    /// The parts of the prompt.
    #[serde(default, deserialize_with = "loose::object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_breakdown: Option<Json>,
}

/// The tokens that a chat used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "UsageMembers")]
#[non_exhaustive]
pub struct ReplyUsage {
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// All tokens; the sum of the two if a server leaves it out.
    pub total_tokens: u64,
    /// The budget of input tokens.
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

/// Writes the name of a model, `unknown` if it is empty.
fn named<S: Serializer>(model: &Str, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(if model.is_empty() { "unknown" } else { model })
}

fn serialize_streamed<S: Serializer>(streamed: &Option<bool>, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_bool(streamed.unwrap_or(false))
}

/// Reads an error message. Any value other than null and a text is an error, too.
fn words<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Str>, D::Error> {
    let error: Option<Json> = Deserialize::deserialize(from)?;
    Ok(error.map(|error| match error.as_str() {
        Some(words) => words.into(),
        None => error.into_text(),
    }))
}

/// Reads an array of skills, leaving out invalid ones.
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
    /// Creates a reply whose output was not sent as deltas.
    pub fn new(output: impl Into<Str>, model: impl Into<Str>) -> Self {
        Self {
            output: output.into(),
            output_streamed: Some(false),
            model: model.into(),
            ..Self::default()
        }
    }

    /// Decodes a reply on its own. Optional members may be absent or null.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not an object, has no `output`, or has an `outputStreamed`
    /// that is neither true nor false. Decoding it again fails again.
    pub fn decode(text: &str, limits: &Limits) -> Result<Self, DecodeError> {
        json::decode_js(text, limits)
    }
}

impl ReplyUsage {
    /// Creates a usage of this many input and output tokens.
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
