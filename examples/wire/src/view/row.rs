//! [`Row`]: a frame as people see it.

use std::borrow::Cow;
use std::time::Duration;

use crate::transcript::{Entry, Kind};
use rpc_core::testing::Side;
use serde::{Serialize, Serializer};

use crate::direction;
use crate::explain::Explained;
use crate::order::seconds;
use crate::place::place;

/// What a frame takes beside its texts, in bytes.
const ROW: usize = 512;

/// A frame, or something else that happened to a connection. What comes from peers may hold any
/// characters.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Row {
    /// The number of its line in the recording, from 1.
    #[serde(rename = "line")]
    pub n: usize,
    /// The time since the recording began; as JSON, in seconds.
    #[serde(serialize_with = "seconds")]
    pub at: Duration,
    /// The number of the connection.
    pub conn: u32,
    /// The side that sent it, if one did; as JSON, `c2s` or `s2c`.
    #[serde(
        rename = "dir",
        serialize_with = "sent",
        skip_serializing_if = "Option::is_none"
    )]
    pub from: Option<Side>,
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
        let note = Entry::new(Duration::ZERO, 0, None, Kind::Note, "");
        let explained = Explained {
            problem: Some(format!("not a line of a recording: {why}")),
            ..Explained::plain(Kind::Note.name(), why)
        };
        Self {
            entry: "bad",
            ..Self::new(n, &note, explained)
        }
    }

    /// About as many bytes as it takes.
    pub(super) fn size(&self) -> usize {
        self.data.len() + self.explained.words.len() + ROW
    }

    /// Returns a row without contents.
    pub(crate) fn new(n: usize, entry: &Entry<'_>, explained: Explained) -> Self {
        let fault = explained.fault.as_ref();
        let place = fault.map(|fault| place(&entry.data, fault.at, explained.redacted));
        Self {
            n,
            at: entry.at,
            conn: entry.conn,
            from: entry.from,
            entry: entry.kind.name(),
            code: entry.code,
            explained,
            place,
            data: String::new(),
        }
    }

    /// Adds the contents.
    pub(super) fn with(mut self, data: Cow<'_, str>) -> Self {
        self.data = data.into_owned();
        self
    }
}

#[expect(clippy::ref_option, reason = "the form that serde calls")]
fn sent<S: Serializer>(from: &Option<Side>, to: S) -> Result<S::Ok, S::Error> {
    from.map(direction).serialize(to)
}
