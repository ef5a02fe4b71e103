//! [`View`]: the frames of a recording or of a running proxy, and what went wrong: the first ones and the last ones.

mod feed;
mod row;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rpc_core::testing::transcript::{Header, Item, Reader};

use super::Protocol;
use super::explain::Explainer;
use super::order::Answers;
use super::secrets;

pub use feed::{Feed, open};
pub use row::Row;

/// Most frames of a view.
pub const MAX_ROWS: usize = 100_000;
/// So many frames from the beginning stay.
pub const FIRST_ROWS: usize = 1_000;
/// Most bytes of the frames of a view.
const MAX_BYTES: usize = 128 * 1024 * 1024;

/// The first frames and the last ones, oldest first.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct View {
    /// The frames, oldest first.
    pub rows: VecDeque<Row>,
    bytes: usize,
    /// The header of the recording.
    pub header: Header,
    /// How many frames are no longer here, or never were.
    pub dropped: usize,
    /// Whether nothing follows.
    pub is_complete: bool,
}

impl View {
    /// Adds a frame, and forgets the oldest ones behind the beginning if there are too many.
    pub fn push(&mut self, row: Row) {
        self.blame(&row.explained.unanswered);
        self.bytes += row.size();
        self.rows.push_back(row);
        while self.rows.len() > MAX_ROWS || self.bytes > MAX_BYTES {
            // Many at once: those before them have to be moved.
            let at = FIRST_ROWS.min(self.rows.len() / 2);
            let count = (self.rows.len() / 100).max(1);
            let dropped = self.rows.drain(at..at + count);
            self.bytes -= dropped.map(|row| row.size()).sum::<usize>();
            self.dropped += count;
        }
    }

    /// Notes that nothing follows: these requests will never be answered.
    pub fn end(&mut self, unanswered: &[Answers]) {
        self.is_complete = true;
        self.blame(unanswered);
    }

    /// Returns the place of the first frame behind this line.
    #[must_use]
    pub fn place_after(&self, line: usize) -> usize {
        self.rows.partition_point(|row| row.n <= line)
    }

    /// Marks these frames as unanswered.
    fn blame(&mut self, unanswered: &[Answers]) {
        for line in unanswered.iter().map(|it| it.line) {
            let index = self.rows.partition_point(|row| row.n < line);
            if let Some(row) = self.rows.get_mut(index).filter(|row| row.n == line) {
                row.explained
                    .problem
                    .get_or_insert_with(|| "never answered".to_owned());
            }
        }
    }
}

/// A view that a thread fills while others look at it.
pub type Shared = Arc<Mutex<View>>;

/// Locks a shared view.
pub fn lock(view: &Shared) -> MutexGuard<'_, View> {
    view.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A reader of the lines of a recording.
#[derive(Debug)]
pub struct Lines {
    reader: Reader,
    explainer: Explainer,
}

impl Lines {
    /// Creates a reader for this protocol, or for the one that the frames show.
    #[must_use]
    pub fn new(protocol: Option<Protocol>, shows_secrets: bool) -> Self {
        Self {
            reader: Reader::new(),
            explainer: Explainer::new(protocol, shows_secrets),
        }
    }

    /// Explains the line with this number, from 1. A header is passed to `begin`.
    pub fn read(&mut self, n: usize, line: &str, begin: impl FnOnce(Header)) -> Option<Row> {
        match self.reader.read(line) {
            Ok(Some(Item::Entry(entry))) => {
                let explained = self.explainer.explain(n, &entry);
                Some(Row::new(n, &entry, explained, self.explainer.data(&entry)))
            }
            Ok(Some(Item::Header(mut header))) => {
                let protocol = header.protocol.as_deref().and_then(Protocol::parse);
                self.explainer.begin(protocol);
                if !self.explainer.shows_secrets() {
                    for words in [&mut header.client, &mut header.server]
                        .into_iter()
                        .flatten()
                    {
                        *words = secrets::within(words);
                    }
                }
                begin(header);
                None
            }
            Ok(_) => None,
            Err(error) => Some(Row::bad(n, &error.why)),
        }
    }

    /// Returns the unanswered requests.
    #[must_use]
    pub fn unanswered(&self) -> Vec<Answers> {
        self.explainer.unanswered(std::time::Duration::ZERO)
    }
}

#[cfg(test)]
pub(super) mod tests;
