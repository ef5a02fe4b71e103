//! Events with which the agent asks the user and waits for the answer.

use rpc_core::json::lenient::{loose, optional_array, optional_id, optional_loose, or_default};
use rpc_core::{Json, Str, members};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::super::words::Mode;

use crate::id::ToolCallId;

members! {
    /// The agent waits for the user's answer. ConnectOnion specification, *Stream Events*.
    ///
    /// On the wire the question is in `question`, where hosts write it, and in `text`, where the known
    /// older clients read it. Both are read and both are written.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
    pub struct AskUser {
        /// The question.
        #[serde(flatten, serialize_with = "question_and_text")]
        pub question: Str,
        /// Answers to choose from: an array of texts, as it was sent. See
        /// [`with_options`](Self::with_options).
        pub options: Option<Json>,
        /// Whether several of them may be chosen.
        pub multi_select: bool,
        /// The form to fill in: an array of [`AskField`]s, as it was sent.
        pub fields: Option<Json>,
    }

    /// A field to fill in.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct AskField {
        /// Its name in the answer.
        pub name: Str,
        /// Its label for people.
        pub label: Option<Str>,
        /// The kind of text, in the agent's own words.
        #[serde(rename = "type")]
        pub kind: Option<Str>,
    }

    /// A tool waits for the user's approval. ConnectOnion specification, *Stream Events*.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ApprovalNeeded {
        /// The tool.
        pub tool: Str,
        /// The tool's arguments, as they were sent, usually an object.
        pub arguments: Option<Json>,
        /// The purpose of the tool; often empty.
        pub description: Option<Str>,
        /// The tools that wait behind it: an array of [`BatchItem`]s, as it was sent.
        pub batch_remaining: Option<Json> as "optional_array",
        /// The `tool_id` of the call. Newer hosts only.
        pub tool_call_id: Option<ToolCallId> as "optional_id",
        /// The rule that requires the approval, as it was sent. Newer hosts only.
        pub policy: Option<Json>,
    }

    /// The agent's mode has changed.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ModeChanged {
        /// The new mode.
        pub mode: Mode,
        /// Who changed it: `agent`, `user`, or `ulw_checkpoint` when the turns of the mode `ulw` are used up.
        pub triggered_by: Option<Str>,
        /// The remaining turns. Newer hosts only.
        pub turns_left: Option<u64>,
    }

    /// The turns of the mode `ulw` are used up; the agent waits.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct UlwTurnsReached {
        /// The number of used turns.
        pub turns_used: Option<u64>,
        /// The number of allowed turns.
        pub max_turns: Option<u64>,
    }

    /// A tool that waits behind another.
    #[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub struct BatchItem {
        /// The tool.
        pub tool: Str,
        /// Its arguments: JSON in a text, as hosts write it; an object is read as its text, and an
        /// absent value as `{}`.
        #[serde(default = "no_arguments", deserialize_with = "arguments")]
        pub arguments: Str,
    }

    /// A plan waits for the user's review. ConnectOnion specification, *Stream Events*.
    #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub struct PlanReview {
        /// The plan.
        pub plan_content: Str as "loose",
    }

    /// The members of an [`AskUser`] that is read.
    #[derive(Deserialize)]
    struct AskMembers {
        question: Option<Str>,
        text: Option<Str>,
        options: Option<Json> as "optional_array",
        #[serde(default, deserialize_with = "or_default")]
        multi_select: bool,
        fields: Option<Json> as "optional_array",
    }
}

impl AskUser {
    /// Creates a question with a free answer.
    pub fn new(question: impl Into<Str>) -> Self {
        Self {
            question: question.into(),
            ..Self::default()
        }
    }

    /// Sets the answers to choose from.
    #[must_use]
    pub fn with_options(mut self, options: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let options: Value = options.into_iter().map(Into::into).collect();
        self.options = Some(options.into());
        self
    }
}

impl<'de> Deserialize<'de> for AskUser {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let read = AskMembers::deserialize(from)?;
        let question = read.question.or(read.text);
        Ok(Self {
            question: question.ok_or_else(|| D::Error::missing_field("question"))?,
            options: read.options,
            multi_select: read.multi_select,
            fields: read.fields,
        })
    }
}

fn question_and_text<S: Serializer>(question: &Str, to: S) -> Result<S::Ok, S::Error> {
    to.collect_map([("question", question), ("text", question)])
}

impl ApprovalNeeded {
    /// Creates an event for this tool, with an object of arguments.
    pub fn new(
        tool: impl Into<Str>,
        arguments: impl Into<Json>,
        description: impl Into<Str>,
    ) -> Self {
        Self {
            tool: tool.into(),
            arguments: Some(arguments.into()),
            description: Some(description.into()),
            ..Self::default()
        }
    }
}

const fn no_arguments() -> Str {
    Str::from_static("{}")
}

fn arguments<'de, D: Deserializer<'de>>(from: D) -> Result<Str, D::Error> {
    Ok(optional_loose(from)?.unwrap_or_else(no_arguments))
}

impl PlanReview {
    /// Creates an event for this plan.
    pub fn new(plan: impl Into<Str>) -> Self {
        Self {
            plan_content: plan.into(),
        }
    }
}

impl ModeChanged {
    /// Creates an event for this mode and its trigger.
    pub fn new(mode: Mode, triggered_by: impl Into<Str>) -> Self {
        Self {
            mode,
            triggered_by: Some(triggered_by.into()),
            turns_left: None,
        }
    }
}

impl UlwTurnsReached {
    /// Creates an event for this many used turns of this many.
    #[must_use]
    pub const fn new(turns_used: u64, max_turns: u64) -> Self {
        Self {
            turns_used: Some(turns_used),
            max_turns: Some(max_turns),
        }
    }
}
