//! [`ToolError`]: the error of a tool, with a code for programs and a text for people and models.

use std::borrow::Cow;
use std::io;

use acolyte_proto::error::{ErrorDetail, code};
use acolyte_proto::event::ToolResult;

/// The error of a tool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// Its kind.
    pub code: Code,
    /// The text.
    pub message: Cow<'static, str>,
}

/// A kind of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    /// The call leads out of the folder.
    Sandbox,
    /// There is no such file.
    NotFound,
    /// It took too long.
    TimedOut,
    /// It is too large, or there is too much of it.
    TooLarge,
    /// The text to replace does not occur, or occurs more than once.
    Edit,
    /// The file is not known as it is now: it was not read, or has changed since.
    Stale,
    /// It is no text.
    NotText,
    /// It is no file that can be read or written: a pipe, a read-only one, one with several names.
    NotFile,
    /// It belongs to Git, which may run what is written there.
    Git,
    /// A command ended with a code other than 0.
    Failed,
    /// The call is wrong: no such tool, a bad argument, the same again and again. Nothing was done.
    Call,
    /// The user does not allow the call. Nothing was done.
    Declined,
    /// The chat was aborted.
    Aborted,
    /// Something else.
    Other,
}

impl Code {
    /// Returns what a code for clients stands for.
    pub fn of(code: &str) -> Option<Self> {
        ROWS.iter().find(|row| row.2 == code).map(|row| row.0)
    }

    /// Returns the reason in words, for people.
    pub fn words(self) -> &'static str {
        self.row().1
    }

    /// Returns the code for clients.
    pub fn as_str(self) -> &'static str {
        self.row().2
    }

    /// Returns the details of an error that comes from this `source`.
    pub(super) fn detail(self, source: &'static str) -> ErrorDetail {
        let (_, _, code, kind, category) = *self.row();
        detail(code, kind, category, source)
    }

    fn row(self) -> &'static Row {
        let [.., other] = &ROWS;
        ROWS.iter().find(|row| row.0 == self).unwrap_or(other)
    }
}

/// The row of a code: its words, the code for clients, and the kind and the category in an error's details.
type Row = (Code, &'static str, &'static str, &'static str, &'static str);

#[rustfmt::skip] // One row per line, to be read as a table.
const ROWS: [Row; 14] = [
    (Code::Sandbox, "it would not stay within the workspace", code::SANDBOX_VIOLATION, "sandbox_violation", "other"),
    (Code::NotFound, "there is no such file", code::FILE_NOT_FOUND, "file_not_found", "file-not-found"),
    (Code::TimedOut, "it took too long", code::TIMEOUT, "timeout", "timeout"),
    (Code::TooLarge, "it is too large, or there is too much of it", code::BUDGET_EXHAUSTED, "budget_exhausted", "budget-exhausted"),
    (Code::Edit, "the text to replace is not there, or there more than once", "E_EDIT_NO_MATCH", "unknown", "other"),
    (Code::Stale, "the file was not read, or has changed since", "E_FILE_CHANGED", "unknown", "other"),
    (Code::NotText, "it is not UTF-8 text", "E_NOT_TEXT", "unknown", "other"),
    (Code::NotFile, "it is no ordinary file, or may not be written", "E_NOT_A_FILE", "unknown", "other"),
    (Code::Git, "tools do not write what Git runs by itself", "E_GIT_FOLDER", "unknown", "other"),
    (Code::Failed, "the command ended with an error", "E_COMMAND_FAILED", "unknown", "other"),
    (Code::Call, "nothing was done: there is no such tool, the call is wrong, or it came again and again", "E_TOOL_CALL", "unknown", "other"),
    (Code::Declined, "you declined it", "E_DECLINED", "unknown", "other"),
    (Code::Aborted, "aborted", code::ABORTED, "unknown", "other"),
    (Code::Other, "the system or the tool failed", code::UNKNOWN, "unknown", "other"),
];

/// Returns the details of an error that comes from this `source`.
pub(super) fn detail(
    code: &'static str,
    kind: &'static str,
    category: &'static str,
    source: &'static str,
) -> ErrorDetail {
    ErrorDetail {
        code: Some(code.into()),
        category: Some(category.into()),
        kind: Some(kind.into()),
        source: Some(source.into()),
        ..ErrorDetail::default()
    }
}

impl ToolError {
    /// Creates a failure of this kind.
    pub fn new(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    /// Returns the failure for clients. It leaves out the text, which is for the model.
    pub fn result(&self, call: &str, tool: &str) -> ToolResult {
        let detail = ErrorDetail {
            tool: Some(tool.into()),
            ..self.code.detail("tool-result")
        };
        let mut result = ToolResult::failed(call, tool);
        result.code = Some(self.code.as_str().into());
        result.detail = Some(Box::new(detail));
        result
    }

    pub(crate) fn call(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Call, message)
    }

    /// Converts the system's error about a file with this name.
    pub(super) fn io(name: &str, error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => {
                Self::new(Code::NotFound, format!("there is no file {name:?}"))
            }
            io::ErrorKind::FileTooLarge => Self::new(Code::TooLarge, format!("{name:?}: {error}")),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_for_clients_has_words() {
        for code in ROWS.map(|row| row.0) {
            assert_eq!(Code::of(code.as_str()), Some(code));
            assert!(!code.words().contains("E_"), "{code:?}");
        }
        assert_eq!(Code::of("E_X"), None);
    }
}
