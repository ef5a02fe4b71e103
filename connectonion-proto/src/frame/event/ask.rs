//! What the agent asks the user, and waits for.

use std::borrow::Cow;

use rpc_core::decode::{self, DecodeError, Field, Members, RawJson, SharedJson, SharedStr, Slot};
use rpc_core::{Limits, Refused};
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::super::body::Body;
use super::super::json::{Json, texts};
use super::super::keep::Keep;
use super::super::word::{Mode, Trigger, Word};
use crate::codec;

/// The agent waits for the user's answer. ConnectOnion specification, *Stream Events*.
///
/// On the wire the question is in `question`, where hosts write it, and in `text`, where the known
/// older clients read it. Both are read and both are written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AskUser<S = SharedStr, J = SharedJson> {
    /// The question.
    pub question: S,
    /// Answers to choose from: an array of texts, as it was sent.
    pub options: Option<J>,
    /// Whether several of them may be chosen.
    pub multi_select: bool,
    /// What to fill in: an array of [`AskField`]s, as it was sent.
    pub fields: Option<J>,
}

impl AskUser {
    /// A question with a free answer.
    pub fn new(question: impl Into<SharedStr>) -> Self {
        Self {
            question: question.into(),
            options: None,
            multi_select: false,
            fields: None,
        }
    }

    /// Sets [`options`](Self::options).
    ///
    /// # Errors
    /// None in practice: texts are JSON.
    pub fn with_options<O: AsRef<str>>(mut self, options: &[O]) -> Result<Self, Refused> {
        let options: Vec<&str> = options.iter().map(AsRef::as_ref).collect();
        self.options = Some(codec::to_json(&options)?);
        Ok(self)
    }

    /// Sets [`multi_select`](Self::multi_select).
    #[must_use]
    pub const fn with_multi_select(mut self, several: bool) -> Self {
        self.multi_select = several;
        self
    }

    /// Sets [`fields`](Self::fields).
    ///
    /// # Errors
    /// None in practice: texts are JSON.
    pub fn with_fields<S: Serialize>(mut self, fields: &[AskField<S>]) -> Result<Self, Refused> {
        self.fields = Some(codec::to_json(fields)?);
        Ok(self)
    }
}

impl<S, J: Json> AskUser<S, J> {
    /// The answers to choose from. At most [`Limits::max_items`].
    ///
    /// # Errors
    /// [`DecodeError`] if one is no string, or there are too many.
    pub fn options(&self, limits: &Limits) -> Result<Vec<Cow<'_, str>>, DecodeError> {
        texts(self.options.as_ref(), limits).map_err(|error| error.under("options"))
    }

    /// What to fill in. At most [`Limits::max_items`].
    ///
    /// # Errors
    /// [`DecodeError`] if one has no name, or there are too many.
    pub fn fields(&self, limits: &Limits) -> Result<Vec<AskField<Cow<'_, str>>>, DecodeError> {
        let fields = self.fields.as_ref().map_or("[]", Json::json);
        decode::parse_objects(fields, limits, FieldMembers::field)
            .map_err(|error| error.under("fields"))
    }
}

impl<'a> AskUser<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let question = match body.text_of("question")? {
            None => body.text_of("text")?,
            question => question,
        };
        Ok(Self {
            question: question.ok_or_else(|| DecodeError::missing("question"))?,
            options: body.array("options")?,
            multi_select: body.bool("multi_select")?.unwrap_or(false),
            fields: body.array("fields")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> AskUser<K::Text, K::Json> {
        AskUser {
            question: how.text(&self.question),
            options: how.jsons(&self.options),
            multi_select: self.multi_select,
            fields: how.jsons(&self.fields),
        }
    }
}

impl<S: Serialize, J: Serialize> Serialize for AskUser<S, J> {
    fn serialize<W: Serializer>(&self, serializer: W) -> Result<W::Ok, W::Error> {
        let mut event = serializer.serialize_struct("AskUser", 5)?;
        event.serialize_field("question", &self.question)?;
        event.serialize_field("text", &self.question)?;
        if let Some(options) = &self.options {
            event.serialize_field("options", options)?;
        }
        event.serialize_field("multi_select", &self.multi_select)?;
        if let Some(fields) = &self.fields {
            event.serialize_field("fields", fields)?;
        }
        event.end()
    }
}

/// Something to fill in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AskField<S = SharedStr> {
    /// What the answer calls it.
    pub name: S,
    /// What people are shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<S>,
    /// What kind of text it is: the agent's own word.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<S>,
}

impl<S> AskField<S> {
    /// Something to fill in.
    pub fn new(name: impl Into<S>, label: impl Into<S>, kind: impl Into<S>) -> Self {
        Self {
            name: name.into(),
            label: Some(label.into()),
            kind: Some(kind.into()),
        }
    }
}

#[derive(Default)]
struct FieldMembers<'a> {
    name: Slot<Cow<'a, str>>,
    label: Slot<Cow<'a, str>>,
    kind: Slot<Cow<'a, str>>,
}

impl<'a> Members<'a> for FieldMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "name" => field.str("name", &mut self.name),
            "label" => field.str("label", &mut self.label),
            "type" => field.str("type", &mut self.kind),
            _ => field.skip(),
        }
    }
}

impl<'a> FieldMembers<'a> {
    fn field(self) -> Result<AskField<Cow<'a, str>>, DecodeError> {
        Ok(AskField {
            name: self.name.require("name")?,
            label: self.label.take(),
            kind: self.kind.take(),
        })
    }
}

/// A tool waits for the user's leave. ConnectOnion specification, *Stream Events*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ApprovalNeeded<S = SharedStr, J = SharedJson> {
    /// The tool.
    pub tool: S,
    /// What the tool would get, as it was sent: an object as a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arguments: Option<J>,
    /// What the tool is for; often empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<S>,
    /// What waits behind it: an array of [`BatchItem`]s, as it was sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_remaining: Option<J>,
    /// The `tool_id` of the call. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<S>,
    /// The rule that wants it, as it was sent. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<J>,
}

impl ApprovalNeeded {
    /// This tool waits, with this object.
    pub fn new(
        tool: impl Into<SharedStr>,
        arguments: SharedJson,
        description: impl Into<SharedStr>,
    ) -> Self {
        Self {
            tool: tool.into(),
            arguments: Some(arguments),
            description: Some(description.into()),
            batch_remaining: None,
            tool_call_id: None,
            policy: None,
        }
    }

    /// Sets [`batch_remaining`](Self::batch_remaining).
    ///
    /// # Errors
    /// None in practice: texts are JSON.
    pub fn with_batch<S: Serialize>(mut self, items: &[BatchItem<S>]) -> Result<Self, Refused> {
        self.batch_remaining = Some(codec::to_json(items)?);
        Ok(self)
    }
}

impl<S, J: Json> ApprovalNeeded<S, J> {
    /// What waits behind it. At most [`Limits::max_items`].
    ///
    /// # Errors
    /// [`DecodeError`] if one names no tool, or there are too many.
    pub fn batch(&self, limits: &Limits) -> Result<Vec<BatchItem<Cow<'_, str>>>, DecodeError> {
        let items = self.batch_remaining.as_ref().map_or("[]", Json::json);
        decode::parse_objects(items, limits, BatchMembers::item)
            .map_err(|error| error.under("batch_remaining"))
    }
}

impl<'a> ApprovalNeeded<Cow<'a, str>, RawJson<'a>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        Ok(Self {
            tool: body.need("tool")?,
            arguments: body.raw("arguments")?,
            description: body.text_of("description")?,
            batch_remaining: body.array("batch_remaining")?,
            tool_call_id: body.id("tool_call_id")?,
            policy: body.raw("policy")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> ApprovalNeeded<K::Text, K::Json> {
        ApprovalNeeded {
            tool: how.text(&self.tool),
            arguments: how.jsons(&self.arguments),
            description: how.texts(&self.description),
            batch_remaining: how.jsons(&self.batch_remaining),
            tool_call_id: how.texts(&self.tool_call_id),
            policy: how.jsons(&self.policy),
        }
    }
}

/// A tool that waits behind another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct BatchItem<S = SharedStr> {
    /// The tool.
    pub tool: S,
    /// What it would get: JSON in a text, as hosts write it.
    pub arguments: S,
}

impl<S> BatchItem<S> {
    /// This tool waits, with this JSON.
    pub fn new(tool: impl Into<S>, arguments: impl Into<S>) -> Self {
        Self {
            tool: tool.into(),
            arguments: arguments.into(),
        }
    }
}

#[derive(Default)]
struct BatchMembers<'a> {
    tool: Slot<Cow<'a, str>>,
    arguments: Slot<RawJson<'a>>,
}

impl<'a> Members<'a> for BatchMembers<'a> {
    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        match name {
            "tool" => field.str("tool", &mut self.tool),
            "arguments" => field.raw("arguments", &mut self.arguments),
            _ => field.skip(),
        }
    }
}

impl<'a> BatchMembers<'a> {
    fn item(self) -> Result<BatchItem<Cow<'a, str>>, DecodeError> {
        let arguments = match self.arguments.take() {
            Some(raw) if raw.first_byte() == Some(b'"') => raw.into_str(),
            // An object, where a text is meant.
            Some(raw) => Some(raw.into_text()),
            None => None,
        };
        Ok(BatchItem {
            tool: self.tool.require("tool")?,
            arguments: arguments.unwrap_or(Cow::Borrowed("{}")),
        })
    }
}

/// A plan waits for the user's word. ConnectOnion specification, *Stream Events*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PlanReview<S = SharedStr> {
    /// The plan.
    pub plan_content: S,
}

impl PlanReview {
    /// This plan waits.
    pub fn new(plan: impl Into<SharedStr>) -> Self {
        Self {
            plan_content: plan.into(),
        }
    }
}

impl<'a> PlanReview<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let plan = body.loose("plan_content")?;
        Ok(Self {
            plan_content: plan.ok_or_else(|| DecodeError::missing("plan_content"))?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> PlanReview<K::Text> {
        PlanReview {
            plan_content: how.text(&self.plan_content),
        }
    }
}

/// The agent works in another mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ModeChanged<S = SharedStr> {
    /// Which.
    pub mode: Word<Mode, S>,
    /// Who has changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub triggered_by: Option<Word<Trigger, S>>,
    /// For how many turns more. Newer hosts only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_left: Option<u64>,
}

impl<S> ModeChanged<S> {
    /// This mode, and who has changed it.
    #[must_use]
    pub const fn new(mode: Mode, triggered_by: Trigger) -> Self {
        Self {
            mode: Word::Known(mode),
            triggered_by: Some(Word::Known(triggered_by)),
            turns_left: None,
        }
    }
}

impl<'a> ModeChanged<Cow<'a, str>> {
    pub(super) fn read(body: &Body<'a>) -> Result<Self, DecodeError> {
        let mode = body.word("mode")?;
        Ok(Self {
            mode: mode.ok_or_else(|| DecodeError::missing("mode"))?,
            triggered_by: body.word("triggered_by")?,
            turns_left: body.count("turns_left")?,
        })
    }

    pub(super) fn keep<K: Keep>(&self, how: &K) -> ModeChanged<K::Text> {
        ModeChanged {
            mode: how.word(&self.mode),
            triggered_by: how.words(&self.triggered_by),
            turns_left: self.turns_left,
        }
    }
}

/// The turns of the mode `ulw` are used up; the agent waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct UlwTurnsReached {
    /// How many were used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turns_used: Option<u64>,
    /// How many there were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_turns: Option<u64>,
}

impl UlwTurnsReached {
    /// So many of so many.
    #[must_use]
    pub const fn new(turns_used: u64, max_turns: u64) -> Self {
        Self {
            turns_used: Some(turns_used),
            max_turns: Some(max_turns),
        }
    }

    pub(super) fn read(body: &Body<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            turns_used: body.count("turns_used")?,
            max_turns: body.count("max_turns")?,
        })
    }
}
