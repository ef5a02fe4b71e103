//! [`Diagnostic`]: a mistake in a file, with its position.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::text::printable;

/// Most problems to report of one file. A file with more is not a configuration.
const MAX_PROBLEMS: usize = 50;
/// Longest message, and longest quote from the file, in characters.
const MAX_MESSAGE: usize = 400;
const MAX_QUOTE: usize = 60;

/// A mistake in a file. Prints as `file:line:column: message`; as `name: message` if it is elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 if this is not a file.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// The text. It quotes no value that may be a secret.
    pub message: String,
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (file, message) = (self.file.display(), &self.message);
        match self.line {
            0 => write!(f, "{file}: {message}"),
            line => write!(f, "{file}:{line}:{}: {message}", self.column),
        }
    }
}

/// The reason why there is no configuration. Retrying helps only after a change of the file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {reason}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// The file has one or more mistakes.
    #[error("{}", lines(.0))]
    Invalid(Vec<Diagnostic>),
}

fn lines(problems: &[Diagnostic]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// Returns problems at these bytes of a file, in its order.
pub(super) fn sorted(mut found: Vec<(usize, String)>, text: &str, file: &Path) -> Vec<Diagnostic> {
    found.sort_by_key(|(at, _)| *at);
    found.truncate(MAX_PROBLEMS);
    let problem = |(at, message): (usize, String)| {
        let before = text.get(..at).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Diagnostic {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            message: shortened(&message, MAX_MESSAGE).into_owned(),
        }
    };
    found.into_iter().map(problem).collect()
}

/// Quotes a piece of the file for a message: between backquotes, short, and without control
/// characters.
pub(super) fn quoted(text: &str) -> String {
    format!("`{}`", printable(&shortened(text, MAX_QUOTE)))
}

fn shortened(text: &str, most: usize) -> Cow<'_, str> {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()).into(),
        None => text.into(),
    }
}
