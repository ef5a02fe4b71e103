//! [`Problem`]: a mistake in a file, with its position; [`Notes`] collects them.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::screen::printable;

/// Most problems to report of one file. A file with more is not a configuration.
const MAX_PROBLEMS: usize = 50;
/// Longest message, and longest quote from the file, in characters.
const MAX_MESSAGE: usize = 400;
const MAX_QUOTE: usize = 60;

/// A mistake in a file. Prints as `file:line:column: message`; as `name: message` if it is elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The file.
    pub file: PathBuf,
    /// The line, from 1; 0 if this is no file.
    pub line: usize,
    /// The character in the line, from 1.
    pub column: usize,
    /// The text. It quotes no value that may be a secret.
    pub message: String,
}

impl fmt::Display for Problem {
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
#[non_exhaustive]
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
    Invalid(Vec<Problem>),
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The problems found in a file.
#[derive(Debug, Default)]
pub(super) struct Notes {
    errors: Vec<(usize, String)>,
    warnings: Vec<(usize, String)>,
}

impl Notes {
    pub(super) fn error(&mut self, at: &Range<usize>, message: impl Into<String>) {
        self.errors.push((at.start, message.into()));
    }

    pub(super) fn warn(&mut self, at: &Range<usize>, message: impl Into<String>) {
        self.warnings.push((at.start, message.into()));
    }

    /// Returns the errors and the warnings, each in the order of the file.
    pub(super) fn finish(self, text: &str, file: &Path) -> (Vec<Problem>, Vec<Problem>) {
        let lines = Lines::new(text);
        let place = |mut found: Vec<(usize, String)>| {
            found.sort_by_key(|(at, _)| *at);
            found.truncate(MAX_PROBLEMS);
            let problem = |(at, message): (usize, String)| {
                let (line, column) = lines.position(at);
                Problem {
                    file: file.to_owned(),
                    line,
                    column,
                    message: shortened(&message, MAX_MESSAGE).into_owned(),
                }
            };
            found.into_iter().map(problem).collect()
        };
        (place(self.errors), place(self.warnings))
    }
}

/// Finds lines and columns.
pub(super) struct Lines<'t> {
    text: &'t str,
    starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        let starts = std::iter::once(0).chain(ends).collect();
        Self { text, starts }
    }

    /// Returns the line and the column of a byte, both from 1.
    pub(super) fn position(&self, at: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= at).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let rest = self.text.get(start..).unwrap_or("");
        let before = rest.char_indices().take_while(|(i, _)| start + i < at);
        (line, before.count() + 1)
    }
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
