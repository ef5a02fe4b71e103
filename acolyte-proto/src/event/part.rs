//! [`Part`]: a piece of what a tool puts out.

use std::borrow::Cow;

use crate::frame::{Unknown, owned};

/// A piece of what a tool puts out, for people to read: the `content` of a
/// [`ToolOutput`](super::ToolOutput). The `label_key` of a header is a key of a translation, such as
/// `tool.label.file_read`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Part<'a> {
    /// What the tool does.
    ToolHeader {
        /// What it is called.
        label_key: Cow<'a, str>,
        /// To what.
        detail: Option<Cow<'a, str>>,
        /// `on` or `off`, for tools that switch something.
        state: Option<Cow<'a, str>>,
    },
    /// Text. A `content` that is a mere string is read as this.
    Text {
        /// The text.
        text: Cow<'a, str>,
    },
    /// Files that are read.
    FileHeader {
        /// What is done.
        label_key: Cow<'a, str>,
        /// How many files.
        count: u64,
        /// Their paths, perhaps not all.
        targets: Vec<Cow<'a, str>>,
    },
    /// A search.
    ScopeHeader {
        /// What is done.
        label_key: Cow<'a, str>,
        /// Where is searched.
        scope: Cow<'a, str>,
        /// What is searched.
        patterns: Vec<Cow<'a, str>>,
        /// How often it was found.
        matches: u64,
    },
    /// A file that is changed; [`Diff`](Self::Diff) lines follow.
    EditHeader {
        /// What is done.
        label_key: Cow<'a, str>,
        /// The file.
        path: Cow<'a, str>,
        /// Lines that are new.
        added: u64,
        /// Lines that are gone.
        removed: u64,
        /// How many files. Servers up to 0.21 only.
        files: Option<u64>,
    },
    /// A line of a change.
    Diff {
        /// What became of the line.
        marker: DiffMarker,
        /// The line's number, from 1.
        line_number: u64,
        /// The line.
        text: Cow<'a, str>,
    },
    /// Output of a program, sent when it has ended.
    ShellOutput {
        /// Where it was written.
        stream: ShellStream,
        /// The output.
        text: Cow<'a, str>,
    },
    /// There is nothing to show.
    NoOutput,
    /// Something was left out.
    Truncated {
        /// How much.
        count: Option<u64>,
        /// Of what, such as `lines`.
        unit: Option<Cow<'a, str>>,
    },
    /// A kind of part that this crate does not know.
    Unknown(Unknown<'a>),
}

/// What became of a line. Exhaustive: a line with another mark is a part that is not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DiffMarker {
    /// It is new.
    Add,
    /// It is gone.
    Remove,
    /// It stayed.
    Context,
}

/// Where a program wrote. Exhaustive: programs have two outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShellStream {
    /// The standard output.
    Stdout,
    /// The standard error.
    Stderr,
}

impl DiffMarker {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Remove => "remove",
            Self::Context => "context",
        }
    }

    /// The marker of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Add, Self::Remove, Self::Context]
            .into_iter()
            .find(|it| it.name() == name)
    }
}

impl ShellStream {
    /// The word on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }

    /// The stream of this name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        [Self::Stdout, Self::Stderr]
            .into_iter()
            .find(|it| it.name() == name)
    }
}

impl<'a> Part<'a> {
    /// Text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The `kind` on the wire.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::ToolHeader { .. } => "tool-header",
            Self::Text { .. } => "text",
            Self::FileHeader { .. } => "file-header",
            Self::ScopeHeader { .. } => "scope-header",
            Self::EditHeader { .. } => "edit-header",
            Self::Diff { .. } => "diff",
            Self::ShellOutput { .. } => "shell-output",
            Self::NoOutput => "no-output",
            Self::Truncated { .. } => "truncated",
            Self::Unknown(unknown) => &unknown.tag,
        }
    }

    /// A copy that borrows nothing.
    #[must_use]
    pub fn into_owned(self) -> Part<'static> {
        let list = |list: Vec<Cow<'_, str>>| list.into_iter().map(owned).collect();
        match self {
            Self::ToolHeader {
                label_key,
                detail,
                state,
            } => Part::ToolHeader {
                label_key: owned(label_key),
                detail: detail.map(owned),
                state: state.map(owned),
            },
            Self::Text { text } => Part::Text { text: owned(text) },
            Self::FileHeader {
                label_key,
                count,
                targets,
            } => Part::FileHeader {
                label_key: owned(label_key),
                count,
                targets: list(targets),
            },
            Self::ScopeHeader {
                label_key,
                scope,
                patterns,
                matches,
            } => Part::ScopeHeader {
                label_key: owned(label_key),
                scope: owned(scope),
                patterns: list(patterns),
                matches,
            },
            Self::EditHeader {
                label_key,
                path,
                added,
                removed,
                files,
            } => Part::EditHeader {
                label_key: owned(label_key),
                path: owned(path),
                added,
                removed,
                files,
            },
            Self::Diff {
                marker,
                line_number,
                text,
            } => Part::Diff {
                marker,
                line_number,
                text: owned(text),
            },
            Self::ShellOutput { stream, text } => Part::ShellOutput {
                stream,
                text: owned(text),
            },
            Self::NoOutput => Part::NoOutput,
            Self::Truncated { count, unit } => Part::Truncated {
                count,
                unit: unit.map(owned),
            },
            Self::Unknown(unknown) => Part::Unknown(unknown.into_owned()),
        }
    }
}
