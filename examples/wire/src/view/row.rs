//! [`Row`]: a frame as people see it.

use std::borrow::Cow;

use crate::transcript::{Entry, Kind};
use serde::Serialize;

use crate::direction;
use crate::explain::Explained;
use crate::place::place;

/// What a frame takes beside its texts, in bytes.
const ROW: usize = 512;

/// A frame, or something else that happened to a connection. What comes from peers may hold any
/// characters.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// The number of its line in the recording, from 1.
    pub n: usize,
    /// Seconds since the recording began.
    pub at: f64,
    /// The number of the connection.
    pub conn: u32,
    /// `c2s` or `s2c`, if one side sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dir: Option<&'static str>,
    /// The kind of the entry, as in recordings; `bad` for an invalid line.
    pub entry: &'static str,
    /// The code of a Close.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// What it says.
    #[serde(flatten)]
    pub explained: Explained,
    /// Where it is wrong: a part of the frame, and the column in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<(String, usize)>,
    /// The contents, without secrets.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub data: String,
}

impl Row {
    /// An invalid line of a recording.
    pub(super) fn bad(n: usize, why: &str) -> Self {
        let note = Entry::new(std::time::Duration::ZERO, 0, None, Kind::Note, "");
        let explained = Explained {
            problem: Some(format!("not a line of a recording: {why}")),
            ..Explained::plain(Kind::Note.name(), why)
        };
        Self {
            entry: "bad",
            ..Self::new(n, &note, explained, "".into())
        }
    }

    /// About as many bytes as it takes.
    pub(super) fn size(&self) -> usize {
        self.data.len() + self.explained.words.len() + ROW
    }

    pub(super) fn new(
        n: usize,
        entry: &Entry<'_>,
        explained: Explained,
        data: Cow<'_, str>,
    ) -> Self {
        let place = explained
            .fault
            .as_ref()
            .map(|fault| place(&entry.data, fault.at, explained.redacted));
        Self {
            n,
            at: entry.at.as_secs_f64(),
            conn: entry.conn,
            dir: entry.from.map(direction),
            entry: entry.kind.name(),
            code: entry.code,
            explained,
            place,
            data: data.into_owned(),
        }
    }
}
