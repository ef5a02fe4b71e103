//! [`Script`]: what passed on one connection of a recording.

use super::Difference;
use crate::transcript::{BadLine, Entry, Item, Kind, Reader};

/// What passed on one connection.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Script {
    /// The number of the connection in the recording.
    pub number: u32,
    /// What the two sides sent, in its order, each entry with its line, from 1.
    pub entries: Vec<(usize, Entry<'static>)>,
}

impl Script {
    /// Parses a recording into its connections, in the order in which they were opened.
    ///
    /// # Errors
    /// The first line that is not a line of a transcript.
    pub(crate) fn parse(text: &str) -> Result<Vec<Self>, BadLine> {
        let (mut scripts, mut reader) = (Vec::<Self>::new(), Reader::new());
        for line in text.lines() {
            let Some(Item::Entry(entry)) = reader.read(line)? else {
                continue;
            };
            if entry.from.is_none() {
                continue;
            }
            let mut entry = entry.into_owned();
            match (entry.kind, entry.code) {
                // Some libraries report an end without a Close as this code.
                (Kind::Close, Some(1006)) => (entry.kind, entry.code) = (Kind::Eof, None),
                (Kind::Close, Some(1005)) => entry.code = None,
                _ => {}
            }
            let entry = (reader.line_number(), entry);
            match scripts.iter_mut().find(|it| it.number == entry.1.conn) {
                Some(script) => script.entries.push(entry),
                None => scripts.push(Self {
                    number: entry.1.conn,
                    entries: vec![entry],
                }),
            }
        }
        // Nothing but an attempt that never became a connection.
        let is_played =
            |(_, entry): &(usize, Entry<'_>)| !matches!(entry.kind, Kind::Open | Kind::Ping);
        scripts.retain(|script| script.entries.iter().any(is_played));
        Ok(scripts)
    }

    /// Returns the line of the first entry.
    pub(super) fn line(&self) -> usize {
        self.entries.first().map_or(0, |(line, _)| *line)
    }

    /// Returns what is wrong with the way in which this connection was opened.
    pub(crate) fn differs(&self, what: impl Into<String>) -> Difference {
        Difference {
            line: self.line(),
            connection: self.number,
            what: what.into(),
            changes: Vec::new(),
        }
    }
}
