//! [`Row`]: a frame as people see it.

use std::collections::HashMap;

use rpc_core::testing::Side;
use rpc_core::testing::transcript::{Entry, Kind};
use serde::Serialize;

use crate::wire::direction;
use crate::wire::explain::Explained;
use crate::wire::place::place;

/// Most connections that are followed at once.
const MAX_CONNECTIONS: usize = 4096;
/// The codes of a Close that nobody has to explain; none is one of them.
const USUAL: [u16; 3] = [1000, 1001, 1005];

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
    /// The kind of the entry, as in recordings; `bad` for a line that is none.
    pub entry: &'static str,
    /// The code of a Close.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// What it says.
    #[serde(flatten)]
    pub explained: Explained,
    /// What went wrong, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Where it is wrong: a part of the frame, and the column in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<(String, usize)>,
    /// The contents, without secrets.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub data: String,
}

impl Row {
    /// A line that is none of a recording.
    pub(super) fn bad(n: usize, why: String) -> Self {
        let note = Entry::new(std::time::Duration::ZERO, 0, None, Kind::Note, "");
        let explained = Explained::plain(Kind::Note.name(), why);
        Self {
            entry: "bad",
            problem: Some("not a line of a recording".to_owned()),
            ..Rows::default().row(n, &note, explained, "".into())
        }
    }

    /// Returns whether the frame, or a member of it, is not known.
    #[must_use]
    pub const fn is_unknown(&self) -> bool {
        self.explained.unknown_kind || !self.explained.unknown.is_empty()
    }
}

/// What is known of the connections, to make rows.
#[derive(Debug, Default)]
pub(super) struct Rows {
    /// Whether a connection is a WebSocket, and has had a Close.
    sockets: HashMap<u32, (bool, bool)>,
}

impl Rows {
    pub(super) fn row(
        &mut self,
        n: usize,
        entry: &Entry<'_>,
        explained: Explained,
        data: std::borrow::Cow<'_, str>,
    ) -> Row {
        let place = explained
            .fault
            .as_ref()
            .map(|fault| place(&entry.data, fault.at, explained.redacted));
        Row {
            n,
            at: entry.at.as_secs_f64(),
            conn: entry.conn,
            dir: entry.from.map(direction),
            entry: entry.kind.name(),
            code: entry.code,
            problem: self.problem(entry, &explained),
            explained,
            place,
            data: data.into_owned(),
        }
    }

    fn problem(&mut self, entry: &Entry<'_>, explained: &Explained) -> Option<String> {
        if self.sockets.len() >= MAX_CONNECTIONS && !self.sockets.contains_key(&entry.conn) {
            self.sockets.clear();
        }
        let (is_socket, is_closed) = self.sockets.entry(entry.conn).or_default();
        match entry.kind {
            Kind::Text | Kind::Open => *is_socket = true,
            _ => {}
        }
        match entry.kind {
            Kind::Text | Kind::Sse => match &explained.fault {
                Some(fault) => Some(format!("not a valid frame: {}", fault.error)),
                None if explained.failed => Some("says that it failed".to_owned()),
                None => None,
            },
            Kind::Http if entry.from == Some(Side::Server) => {
                let status = entry.data.split(' ').nth(1)?;
                let status = status.get(..3)?.parse::<u16>().ok()?;
                *is_socket |= status == 101;
                (status >= 400).then(|| format!("HTTP status {status}"))
            }
            Kind::Binary => Some("a binary message: only text is allowed".to_owned()),
            Kind::Close => {
                *is_closed = true;
                let code = entry.code.filter(|code| !USUAL.contains(code))?;
                Some(format!("closed with {code}"))
            }
            Kind::Eof => {
                let is_cut = *is_socket && !*is_closed;
                is_cut.then(|| "ended without a Close".to_owned())
            }
            Kind::Fault => Some("done on purpose by the proxy".to_owned()),
            // What the proxy says of a connection.
            Kind::Note if entry.conn > 0 => Some(entry.data.to_string()),
            _ => None,
        }
    }
}
