//! [`Part`]: a piece of a tool's output.
#![expect(clippy::exhaustive_structs, reason = "made of all their members")]

use rpc_core::{Str, tagged, words};
use serde::{Deserialize, Serialize};

use crate::loose;

tagged! {
    /// A piece of a tool's output, for people to read: the `content` of a
    /// [`ToolOutput`](super::ToolOutput). The `label_key` of a header is the key of a translation,
    /// such as `tool.label.file_read`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Part by "kind" {
        /// The action of the tool.
        "tool-header" => ToolHeader(ToolHeader),
        /// Text. A bare string as `content` is read as this.
        "text" => Text(Str) in "text",
        /// Files that are read.
        "file-header" => FileHeader(FileHeader),
        /// A search.
        "scope-header" => ScopeHeader(ScopeHeader),
        /// A file that is changed; [`Diff`](Self::Diff) lines follow.
        "edit-header" => EditHeader(EditHeader),
        /// A line of a diff.
        "diff" => Diff(Diff) or Unknown,
        /// Output of a program, sent when it has ended.
        "shell-output" => ShellOutput(ShellOutput) or Unknown,
        /// There is nothing to show.
        "no-output" => NoOutput,
        /// Something was left out.
        "truncated" => Truncated(Truncated),
    }
}

/// The action of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolHeader {
    /// The name of the action.
    pub label_key: Str,
    /// The object of the action.
    #[serde(default, deserialize_with = "loose::text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<Str>,
    /// `on` or `off`, for tools that switch something.
    #[serde(default, deserialize_with = "loose::text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Str>,
}

/// Files that are read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileHeader {
    /// The name of the action.
    pub label_key: Str,
    /// How many files.
    #[serde(default, deserialize_with = "loose::count")]
    pub count: u64,
    /// Their paths, possibly not all.
    #[serde(default, deserialize_with = "loose::strings")]
    pub targets: Vec<Str>,
}

/// A search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopeHeader {
    /// The name of the action.
    pub label_key: Str,
    /// Where the search looks.
    pub scope: Str,
    /// The search patterns.
    #[serde(default, deserialize_with = "loose::strings")]
    pub patterns: Vec<Str>,
    /// The number of matches.
    #[serde(default, deserialize_with = "loose::count")]
    pub matches: u64,
}

/// A file that is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EditHeader {
    /// The name of the action.
    pub label_key: Str,
    /// The file.
    pub path: Str,
    /// The number of files. Servers up to 0.21 only.
    #[serde(default, deserialize_with = "loose::count")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// The number of added lines.
    #[serde(default, deserialize_with = "loose::count")]
    pub added: u64,
    /// The number of removed lines.
    #[serde(default, deserialize_with = "loose::count")]
    pub removed: u64,
}

/// A line of a diff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// Whether the line is new, gone or unchanged.
    pub marker: DiffMarker,
    /// The line's number, from 1.
    #[serde(deserialize_with = "loose::some_count")]
    pub line_number: u64,
    /// The line.
    pub text: Str,
}

/// Output of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShellOutput {
    /// The output stream.
    pub stream: ShellStream,
    /// The output.
    pub text: Str,
}

/// A note that something was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Truncated {
    /// How much.
    #[serde(default, deserialize_with = "loose::count")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// The unit, such as `lines`.
    #[serde(default, deserialize_with = "loose::text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<Str>,
}

words! {
    /// The marker of a line. Exhaustive: a line with another marker is an unknown part.
    pub enum DiffMarker {
        /// The line is new.
        "add" => Add,
        /// The line is gone.
        "remove" => Remove,
        /// The line is unchanged.
        "context" => Context,
    }
}

words! {
    /// An output stream of a program. Exhaustive: there are two.
    pub enum ShellStream {
        /// The standard output.
        "stdout" => Stdout,
        /// The standard error.
        "stderr" => Stderr,
    }
}

impl Part {
    /// Creates a text part.
    pub fn text(text: impl Into<Str>) -> Self {
        Self::Text(text.into())
    }
}
