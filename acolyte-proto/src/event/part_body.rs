//! How a [`Part`] is read and written.

use std::borrow::Cow;

use rpc_core::decode::{DecodeError, Field, Reader, Slot};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use super::{DiffMarker, Part, ShellStream};
use crate::frame::Unknown;
use crate::wire::{Body, again, count, strings, tagged, text};

impl<'a> Part<'a> {
    /// A part; `None` is null.
    pub(super) fn read(reader: &mut Reader<'a>) -> Result<Option<Self>, DecodeError> {
        match reader.first_byte() {
            Some(b'"') => return Ok(reader.str_lossy()?.map(|text| Self::Text { text })),
            Some(b'n') => return reader.skip().map(|()| None),
            _ => {}
        }
        let mut start = reader.clone();
        let object = tagged::<PartBody<'a>>(reader)?;
        let part = object.body.part()?;
        match part {
            Some(part) => Ok(Some(part)),
            None => {
                let raw = start.raw_or_null()?;
                Ok(Some(Self::Unknown(Unknown::new(object.tag, raw))))
            }
        }
    }
}

/// What the parts of a known kind hold, all together.
struct PartBody<'a> {
    kind: Kind,
    label_key: Slot<Cow<'a, str>>,
    /// `text`, `detail`, `path`, `scope` or `unit`.
    text: Slot<Cow<'a, str>>,
    /// `state`, `marker` or `stream`.
    word: Slot<Cow<'a, str>>,
    /// `targets` or `patterns`.
    list: Slot<Vec<Cow<'a, str>>>,
    /// `count`, `matches`, `added` or `lineNumber`.
    count: Slot<u64>,
    removed: Slot<u64>,
    files: Slot<u64>,
}

#[derive(Clone, Copy)]
enum Kind {
    Tool,
    Text,
    File,
    Scope,
    Edit,
    Diff,
    Shell,
    None,
    Truncated,
    Unknown,
}

impl<'a> Body<'a> for PartBody<'a> {
    const TAG: &'static str = "kind";

    fn of(tag: &str) -> Self {
        let kind = match tag {
            "tool-header" => Kind::Tool,
            "text" => Kind::Text,
            "file-header" => Kind::File,
            "scope-header" => Kind::Scope,
            "edit-header" => Kind::Edit,
            "diff" => Kind::Diff,
            "shell-output" => Kind::Shell,
            "no-output" => Kind::None,
            "truncated" => Kind::Truncated,
            _ => Kind::Unknown,
        };
        Self {
            kind,
            label_key: Slot::default(),
            text: Slot::default(),
            word: Slot::default(),
            list: Slot::default(),
            count: Slot::default(),
            removed: Slot::default(),
            files: Slot::default(),
        }
    }

    fn member(&mut self, name: &str, field: Field<'_, 'a>) -> Result<(), DecodeError> {
        use Kind::{Diff, Edit, File, Scope, Shell, Text, Tool, Truncated};
        match (self.kind, name) {
            (Tool | File | Scope | Edit, "labelKey") => {
                field.read("labelKey", again(&mut self.label_key), Reader::str_lossy)
            }
            (Text | Diff | Shell, "text") => {
                field.read("text", again(&mut self.text), Reader::str_lossy)
            }
            (Tool, "detail") => field.read("detail", again(&mut self.text), text),
            (Edit, "path") => field.read("path", again(&mut self.text), Reader::str_lossy),
            (Scope, "scope") => field.read("scope", again(&mut self.text), Reader::str_lossy),
            (Truncated, "unit") => field.read("unit", again(&mut self.text), text),
            (Tool, "state") => field.read("state", again(&mut self.word), text),
            (Diff, "marker") => field.str("marker", again(&mut self.word)),
            (Shell, "stream") => field.str("stream", again(&mut self.word)),
            (File, "targets") => field.read("targets", again(&mut self.list), strings),
            (Scope, "patterns") => field.read("patterns", again(&mut self.list), strings),
            (File | Truncated, "count") => field.read("count", again(&mut self.count), count),
            (Scope, "matches") => field.read("matches", again(&mut self.count), count),
            (Edit, "added") => field.read("added", again(&mut self.count), count),
            (Edit, "removed") => field.read("removed", again(&mut self.removed), count),
            (Edit, "files") => field.read("files", again(&mut self.files), count),
            (Diff, "lineNumber") => field.read("lineNumber", again(&mut self.count), count),
            _ => field.skip(),
        }
    }
}

impl<'a> PartBody<'a> {
    /// The part; `None` if it is not known.
    fn part(self) -> Result<Option<Part<'a>>, DecodeError> {
        Ok(Some(match self.kind {
            Kind::Tool => Part::ToolHeader {
                label_key: self.label_key.require("labelKey")?,
                detail: self.text.take(),
                state: self.word.take(),
            },
            Kind::Text => Part::Text {
                text: self.text.require("text")?,
            },
            Kind::File => Part::FileHeader {
                label_key: self.label_key.require("labelKey")?,
                count: self.count.take().unwrap_or_default(),
                targets: self.list.take().unwrap_or_default(),
            },
            Kind::Scope => Part::ScopeHeader {
                label_key: self.label_key.require("labelKey")?,
                scope: self.text.require("scope")?,
                patterns: self.list.take().unwrap_or_default(),
                matches: self.count.take().unwrap_or_default(),
            },
            Kind::Edit => Part::EditHeader {
                label_key: self.label_key.require("labelKey")?,
                path: self.text.require("path")?,
                added: self.count.take().unwrap_or_default(),
                removed: self.removed.take().unwrap_or_default(),
                files: self.files.take(),
            },
            Kind::Diff => match DiffMarker::parse(&self.word.require("marker")?) {
                Some(marker) => Part::Diff {
                    marker,
                    line_number: self.count.require("lineNumber")?,
                    text: self.text.require("text")?,
                },
                None => return Ok(None),
            },
            Kind::Shell => match ShellStream::parse(&self.word.require("stream")?) {
                Some(stream) => Part::ShellOutput {
                    stream,
                    text: self.text.require("text")?,
                },
                None => return Ok(None),
            },
            Kind::None => Part::NoOutput,
            Kind::Truncated => Part::Truncated {
                count: self.count.take(),
                unit: self.text.take(),
            },
            Kind::Unknown => return Ok(None),
        }))
    }
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Self::Unknown(unknown) = self {
            return unknown.serialize(serializer);
        }
        let mut to = serializer.serialize_map(None)?;
        to.serialize_entry("kind", self.kind())?;
        match self {
            Self::ToolHeader {
                label_key,
                detail,
                state,
            } => {
                to.serialize_entry("labelKey", label_key)?;
                if let Some(detail) = detail {
                    to.serialize_entry("detail", detail)?;
                }
                if let Some(state) = state {
                    to.serialize_entry("state", state)?;
                }
            }
            Self::Text { text } => to.serialize_entry("text", text)?,
            Self::FileHeader {
                label_key,
                count,
                targets,
            } => {
                to.serialize_entry("labelKey", label_key)?;
                to.serialize_entry("count", count)?;
                to.serialize_entry("targets", targets)?;
            }
            Self::ScopeHeader {
                label_key,
                scope,
                patterns,
                matches,
            } => {
                to.serialize_entry("labelKey", label_key)?;
                to.serialize_entry("scope", scope)?;
                to.serialize_entry("patterns", patterns)?;
                to.serialize_entry("matches", matches)?;
            }
            Self::EditHeader {
                label_key,
                path,
                added,
                removed,
                files,
            } => {
                to.serialize_entry("labelKey", label_key)?;
                to.serialize_entry("path", path)?;
                if let Some(files) = files {
                    to.serialize_entry("files", files)?;
                }
                to.serialize_entry("added", added)?;
                to.serialize_entry("removed", removed)?;
            }
            Self::Diff {
                marker,
                line_number,
                text,
            } => {
                to.serialize_entry("marker", marker.name())?;
                to.serialize_entry("lineNumber", line_number)?;
                to.serialize_entry("text", text)?;
            }
            Self::ShellOutput { stream, text } => {
                to.serialize_entry("stream", stream.name())?;
                to.serialize_entry("text", text)?;
            }
            Self::Truncated { count, unit } => {
                if let Some(count) = count {
                    to.serialize_entry("count", count)?;
                }
                if let Some(unit) = unit {
                    to.serialize_entry("unit", unit)?;
                }
            }
            Self::NoOutput | Self::Unknown(_) => {}
        }
        to.end()
    }
}
