//! What is told of a tool: [`ToolCall`], [`ToolOutput`] and [`ToolResult`].

use std::borrow::Cow;

use rpc_core::decode::RawJson;
use serde::Serialize;

use super::Part;
use crate::error::ErrorDetail;
use crate::frame::{Extra, owned};

/// The model calls a tool. Acolyte specification, *Event model*.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolCall<'a> {
    /// What the tool's outputs and its result will carry.
    pub id: Cow<'a, str>,
    /// The tool.
    pub name: Cow<'a, str>,
    /// What the tool gets, an object; `{}` if it is absent.
    pub args: RawJson<'a>,
}

/// A tool puts something out. A result that a server had stored has no output.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolOutput<'a> {
    /// The call. Of a tool that gives none, known servers send the tool's name.
    pub id: Cow<'a, str>,
    /// The tool.
    pub name: Cow<'a, str>,
    /// What it puts out.
    pub content: Part<'a>,
}

/// A tool has run. What it says to the model is not told.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolResult<'a> {
    /// The call.
    pub id: Cow<'a, str>,
    /// The tool.
    pub name: Cow<'a, str>,
    /// How it failed; `None` if it did not.
    pub failure: Option<ToolFailure<'a>>,
    /// Members that this crate does not know.
    pub extra: Extra<'a>,
}

/// How a tool failed. The model is told, and goes on.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ToolFailure<'a> {
    /// What kind of failure: see [`code`](crate::error::code), an open set.
    pub code: Option<Cow<'a, str>>,
    /// More about it.
    pub detail: Option<Box<ErrorDetail<'a>>>,
}

impl<'a> ToolCall<'a> {
    /// A call of the tool `name`, with what it gets as JSON.
    pub fn new(
        id: impl Into<Cow<'a, str>>,
        name: impl Into<Cow<'a, str>>,
        args: impl Into<RawJson<'a>>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            args: args.into(),
        }
    }

    /// As [`new`](Self::new), with anything that is an object in JSON.
    ///
    /// # Errors
    /// If `args` is not JSON. Trying again fails again.
    pub fn with_args(
        id: impl Into<Cow<'a, str>>,
        name: impl Into<Cow<'a, str>>,
        args: &impl Serialize,
    ) -> Result<Self, rpc_core::Refused> {
        Ok(Self::new(id, name, crate::frame::to_raw(args)?))
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ToolCall<'static> {
        ToolCall {
            id: owned(self.id),
            name: owned(self.name),
            args: self.args.into_owned(),
        }
    }
}

impl<'a> ToolOutput<'a> {
    /// Output of the call `id` of the tool `name`.
    pub fn new(
        id: impl Into<Cow<'a, str>>,
        name: impl Into<Cow<'a, str>>,
        content: Part<'a>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            content,
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ToolOutput<'static> {
        ToolOutput {
            id: owned(self.id),
            name: owned(self.name),
            content: self.content.into_owned(),
        }
    }
}

impl<'a> ToolResult<'a> {
    /// The call `id` of the tool `name` has succeeded.
    pub fn ok(id: impl Into<Cow<'a, str>>, name: impl Into<Cow<'a, str>>) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            failure: None,
            extra: Extra::default(),
        }
    }

    /// The call `id` of the tool `name` has failed.
    pub fn failed(
        id: impl Into<Cow<'a, str>>,
        name: impl Into<Cow<'a, str>>,
        failure: ToolFailure<'a>,
    ) -> Self {
        Self {
            failure: Some(failure),
            ..Self::ok(id, name)
        }
    }

    /// Whether the tool failed.
    #[must_use]
    pub const fn is_error(&self) -> bool {
        self.failure.is_some()
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ToolResult<'static> {
        ToolResult {
            id: owned(self.id),
            name: owned(self.name),
            failure: self.failure.map(ToolFailure::into_owned),
            extra: self.extra.into_owned(),
        }
    }
}

impl<'a> ToolFailure<'a> {
    /// A failure of which nothing is said.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets [`code`](Self::code).
    #[must_use]
    pub fn with_code(mut self, code: impl Into<Cow<'a, str>>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// Sets [`detail`](Self::detail).
    #[must_use]
    pub fn with_detail(mut self, detail: ErrorDetail<'a>) -> Self {
        self.detail = Some(Box::new(detail));
        self
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> ToolFailure<'static> {
        ToolFailure {
            code: self.code.map(owned),
            detail: self.detail.map(|detail| Box::new(detail.into_owned())),
        }
    }
}
