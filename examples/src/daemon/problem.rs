//! [`Problem`]: why a tool has failed, with a code for programs and words for people and models.

use std::borrow::Cow;
use std::io;

use acolyte_proto::error::{ErrorDetail, code};
use acolyte_proto::event::ToolResult;

/// Why a tool has failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Problem {
    /// What kind it is of.
    pub code: Code,
    /// What went wrong.
    pub message: Cow<'static, str>,
}

/// A kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Code {
    /// Something outside of the folder was wanted.
    Sandbox,
    /// There is no such file.
    NotFound,
    /// It took too long.
    TimedOut,
    /// It is too large, or there is too much of it.
    TooLarge,
    /// The text to be replaced is not there, or more than once.
    Edit,
    /// A command has ended with another code than 0.
    Failed,
    /// The call is wrong: no such tool, a bad argument. Nothing was done.
    Call,
    /// The chat was aborted.
    Aborted,
    /// Something else.
    Other,
}

impl Code {
    /// As clients are told.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sandbox => code::SANDBOX_VIOLATION,
            Self::NotFound => code::FILE_NOT_FOUND,
            Self::TimedOut => code::TIMEOUT,
            Self::TooLarge => code::BUDGET_EXHAUSTED,
            Self::Edit => "E_EDIT_NO_MATCH",
            Self::Failed => "E_COMMAND_FAILED",
            Self::Call => "E_TOOL_CALL",
            Self::Aborted => code::ABORTED,
            Self::Other => code::UNKNOWN,
        }
    }

    /// The kind in an error's details.
    #[must_use]
    pub const fn kind(self) -> &'static str {
        match self {
            Self::Sandbox => "sandbox_violation",
            Self::NotFound => "file_not_found",
            Self::TimedOut => "timeout",
            Self::TooLarge => "budget_exhausted",
            _ => "unknown",
        }
    }

    /// The category in an error's details.
    #[must_use]
    pub const fn category(self) -> &'static str {
        match self {
            Self::NotFound => "file-not-found",
            Self::TimedOut => "timeout",
            Self::TooLarge => "budget-exhausted",
            _ => "other",
        }
    }
}

impl Problem {
    /// A failure of this kind.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    /// As clients are told of this tool's failure. They are not told its words: those are the model's.
    #[must_use]
    pub fn result(&self, call: &str, tool: &str) -> ToolResult {
        let detail = ErrorDetail::new()
            .with_code(self.code.as_str())
            .with_category(self.code.category())
            .with_kind(self.code.kind())
            .with_source("tool-result")
            .with_tool(tool);
        ToolResult::failed(call, tool)
            .with_code(self.code.as_str())
            .with_detail(detail)
    }

    pub(super) fn call(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Call, message)
    }

    /// What the system says about a file of this name.
    pub(super) fn io(name: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => {
                Self::new(Code::NotFound, format!("there is no file {name:?}"))
            }
            // The system's own refusals have a number; this one is that of the sandbox.
            io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => {
                Self::outside(name)
            }
            _ => Self::new(Code::Other, format!("{name}: {error}")),
        }
    }

    pub(super) fn outside(name: &str) -> Self {
        let message = format!("{name:?} leads out of the workspace");
        Self::new(Code::Sandbox, message)
    }
}
