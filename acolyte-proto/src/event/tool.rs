//! The events of a tool: [`ToolCall`], [`ToolOutput`] and [`ToolResult`].

use rpc_core::json::lenient::{self, ByType};
use rpc_core::{Json, Str};
use serde::{Deserialize, Deserializer, Serialize};

use super::Part;
use crate::error::ErrorDetail;
use crate::frame::{Extra, keep_extra};
use crate::id::ToolCallId;
use crate::loose;

/// The model calls a tool. Acolyte specification, *Event model*.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolCall {
    /// The id that the tool's outputs and its result refer to.
    #[serde(rename = "toolCallId")]
    pub id: ToolCallId,
    /// The tool.
    #[serde(rename = "toolName")]
    pub name: Str,
    /// The tool's arguments, an object; `{}` if absent.
    #[serde(default = "no_args", deserialize_with = "args")]
    pub args: Json,
}

/// A tool has output. Results that a server has stored come without output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolOutput {
    /// The id of the call. For a tool without one, known servers send the tool's name.
    #[serde(rename = "toolCallId")]
    pub id: ToolCallId,
    /// The tool.
    #[serde(rename = "toolName")]
    pub name: Str,
    /// The output.
    #[serde(deserialize_with = "content")]
    pub content: Part,
}

/// A tool has run. The result that the model sees is not included. If the tool failed, the model gets
/// the error and continues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(remote = "Self")]
#[non_exhaustive]
pub struct ToolResult {
    /// The call.
    #[serde(rename = "toolCallId")]
    pub id: ToolCallId,
    /// The tool.
    #[serde(rename = "toolName")]
    pub name: Str,
    /// `true` or absent: see [`told`](Self::told).
    #[serde(rename = "isError", skip_serializing_if = "Option::is_none")]
    is_error: Option<bool>,
    /// The kind of failure: see [`code`](crate::error::code), an open set.
    #[serde(rename = "errorCode", default, deserialize_with = "loose::text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Str>,
    /// Details of the failure.
    #[serde(rename = "error", default, deserialize_with = "loose::object")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Box<ErrorDetail>>,
    /// Members that this crate does not know.
    #[serde(flatten, skip_deserializing)]
    pub extra: Extra,
}

keep_extra!(ToolResult, Self::normalize);

const fn no_args() -> Json {
    Json::EMPTY_OBJECT
}

fn args<'de, D: Deserializer<'de>>(from: D) -> Result<Json, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_else(no_args))
}

fn content<'de, D: Deserializer<'de>>(from: D) -> Result<Part, D::Error> {
    struct Content(Part);
    impl ByType for Content {
        fn read<'de, D: Deserializer<'de>>(first: u8, from: D) -> Result<Self, D::Error> {
            match first {
                b'"' => Str::deserialize(from).map(|text| Self(Part::Text(text))),
                _ => Part::deserialize(from).map(Self),
            }
        }
    }
    lenient::by_type(from).map(|Content(part)| part)
}

impl ToolCall {
    /// Creates a call of the tool `name` with JSON arguments.
    pub fn new(id: impl Into<ToolCallId>, name: impl Into<Str>, args: impl Into<Json>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            args: args.into(),
        }
    }
}

impl ToolOutput {
    /// Creates an output of the call `id` of the tool `name`.
    pub fn new(id: impl Into<ToolCallId>, name: impl Into<Str>, content: Part) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            content,
        }
    }
}

impl ToolResult {
    /// Creates a successful result of the call `id` of the tool `name`.
    pub fn ok(id: impl Into<ToolCallId>, name: impl Into<Str>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            is_error: None,
            code: None,
            detail: None,
            extra: Extra::default(),
        }
    }

    /// Creates a failed result of the call `id` of the tool `name`.
    pub fn failed(id: impl Into<ToolCallId>, name: impl Into<Str>) -> Self {
        Self {
            is_error: Some(true),
            ..Self::ok(id, name)
        }
    }

    /// Returns whether the tool failed.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        self.is_error.is_some()
    }

    /// Treats a result with a code or a detail as failed, unless it says otherwise, and removes
    /// both from a successful one.
    fn normalize(mut self) -> Self {
        let has_more = self.code.is_some() || self.detail.is_some();
        self.is_error = self.is_error.unwrap_or(has_more).then_some(true);
        self.code = self.code.filter(|_| self.is_error.is_some());
        self.detail = self.detail.filter(|_| self.is_error.is_some());
        self
    }
}
