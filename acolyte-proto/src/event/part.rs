//! [`Part`]: a piece of what a tool puts out.
#![expect(clippy::exhaustive_structs, reason = "made of all their members")]

use rpc_core::{Str, tagged, words};
use serde::{Deserialize, Serialize};

use crate::loose;

tagged! {
    /// A piece of what a tool puts out, for people to read: the `content` of a
    /// [`ToolOutput`](super::ToolOutput). The `label_key` of a header is a key of a translation,
    /// such as `tool.label.file_read`.
    #[derive(Clone, Debug, PartialEq)]
    pub enum Part by "kind" {
        /// What the tool does.
        "tool-header" => ToolHeader(ToolHeader),
        /// Text. A `content` that is a mere string is read as this.
        "text" => Text(Str) in "text",
        /// Files that are read.
        "file-header" => FileHeader(FileHeader),
        /// A search.
        "scope-header" => ScopeHeader(ScopeHeader),
        /// A file that is changed; [`Diff`](Self::Diff) lines follow.
        "edit-header" => EditHeader(EditHeader),
        /// A line of a change.
        "diff" => Diff(Diff) or Unknown,
        /// Output of a program, sent when it has ended.
        "shell-output" => ShellOutput(ShellOutput) or Unknown,
        /// There is nothing to show.
        "no-output" => NoOutput,
        /// Something was left out.
        "truncated" => Truncated(Truncated),
    }
}

/// What a tool does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolHeader {
    /// What it is called.
    pub label_key: Str,
    /// To what.
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
    /// What is done.
    pub label_key: Str,
    /// How many files.
    #[serde(default, deserialize_with = "loose::count")]
    pub count: u64,
    /// Their paths, perhaps not all.
    #[serde(default, deserialize_with = "loose::strings")]
    pub targets: Vec<Str>,
}

/// A search.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScopeHeader {
    /// What is done.
    pub label_key: Str,
    /// Where is searched.
    pub scope: Str,
    /// What is searched.
    #[serde(default, deserialize_with = "loose::strings")]
    pub patterns: Vec<Str>,
    /// How often it was found.
    #[serde(default, deserialize_with = "loose::count")]
    pub matches: u64,
}

/// A file that is changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EditHeader {
    /// What is done.
    pub label_key: Str,
    /// The file.
    pub path: Str,
    /// How many files. Servers up to 0.21 only.
    #[serde(default, deserialize_with = "loose::count")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Lines that are new.
    #[serde(default, deserialize_with = "loose::count")]
    pub added: u64,
    /// Lines that are gone.
    #[serde(default, deserialize_with = "loose::count")]
    pub removed: u64,
}

/// A line of a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// What became of the line.
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
    /// Where it was written.
    pub stream: ShellStream,
    /// The output.
    pub text: Str,
}

/// Something was left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Truncated {
    /// How much.
    #[serde(default, deserialize_with = "loose::count")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// Of what, such as `lines`.
    #[serde(default, deserialize_with = "loose::text")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unit: Option<Str>,
}

words! {
    /// What became of a line. Exhaustive: a line with another mark is a part that is not known.
    pub enum DiffMarker {
        /// It is new.
        "add" => Add,
        /// It is gone.
        "remove" => Remove,
        /// It stayed.
        "context" => Context,
    }
}

words! {
    /// Where a program wrote. Exhaustive: programs have two outputs.
    pub enum ShellStream {
        /// The standard output.
        "stdout" => Stdout,
        /// The standard error.
        "stderr" => Stderr,
    }
}

impl Part {
    /// Text.
    pub fn text(text: impl Into<Str>) -> Self {
        Self::Text(text.into())
    }
}
