//! [`View`]: the last frames of a recording or of a running proxy, with their calls and what went wrong.

mod calls;
mod feed;
mod row;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rpc_core::testing::transcript::{Header, Item, Reader};

use super::Protocol;
use super::explain::Explainer;
use super::heads::redact_words;

pub use calls::{Call, State};
pub use feed::{Feed, open};
pub use row::Row;

use self::calls::Calls;

/// Most frames of a view.
pub const MAX_ROWS: usize = 100_000;
/// Most bytes of the frames of a view.
const MAX_BYTES: usize = 128 * 1024 * 1024;
/// What a frame takes beside its texts, in bytes.
const ROW: usize = 512;

/// The last frames, oldest first.
#[derive(Debug, Default)]
pub struct View {
    rows: VecDeque<Row>,
    bytes: usize,
    calls: Calls,
    header: Header,
    dropped: usize,
    is_complete: bool,
}

impl View {
    /// Creates an empty view.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a frame, and forgets the oldest ones if there are too many.
    pub fn push(&mut self, row: Row) {
        for line in self.calls.push(&row) {
            self.blame(line);
        }
        self.bytes += row.data.len() + row.explained.words.len() + ROW;
        self.rows.push_back(row);
        while self.rows.len() > MAX_ROWS || self.bytes > MAX_BYTES {
            let Some(row) = self.rows.pop_front() else {
                break;
            };
            self.bytes -= row.data.len() + row.explained.words.len() + ROW;
            self.calls.forget(row.n);
            self.dropped += 1;
        }
    }

    /// Notes that nothing follows: what has not been answered never will be.
    pub fn end(&mut self) {
        self.is_complete = true;
        for line in self.calls.end() {
            self.blame(line);
        }
    }

    /// Notes that frames came faster than they could be explained.
    pub const fn skip(&mut self, frames: usize) {
        self.dropped += frames;
    }

    /// Sets the header.
    pub fn begin(&mut self, header: Header) {
        self.header = header;
    }

    /// Returns the header.
    #[must_use]
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the frames, oldest first.
    #[must_use]
    pub const fn rows(&self) -> &VecDeque<Row> {
        &self.rows
    }

    /// Returns the place of the first frame behind this line.
    #[must_use]
    pub fn place_after(&self, line: usize) -> usize {
        self.rows.partition_point(|row| row.n <= line)
    }

    /// Returns the frame of a line.
    #[must_use]
    pub fn row(&self, line: usize) -> Option<&Row> {
        let index = self.rows.partition_point(|row| row.n < line);
        self.rows.get(index).filter(|row| row.n == line)
    }

    /// Returns the calls, oldest first.
    #[must_use]
    pub const fn calls(&self) -> &VecDeque<Call> {
        self.calls.all()
    }

    /// Returns the call whose request is in this line.
    #[must_use]
    pub fn call(&self, line: usize) -> Option<&Call> {
        let calls = self.calls.all();
        let index = calls.partition_point(|call| call.line < line);
        calls.get(index).filter(|call| call.line == line)
    }

    /// Returns how many frames are no longer here, or never were.
    #[must_use]
    pub const fn dropped(&self) -> usize {
        self.dropped
    }

    /// Returns whether nothing follows.
    #[must_use]
    pub const fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Says of a frame that nobody answered it.
    fn blame(&mut self, line: usize) {
        let index = self.rows.partition_point(|row| row.n < line);
        if let Some(row) = self.rows.get_mut(index).filter(|row| row.n == line) {
            row.problem
                .get_or_insert_with(|| "never answered".to_owned());
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
                        *words = redact_words(words);
                    }
                }
                begin(header);
                None
            }
            Ok(_) => None,
            Err(error) => Some(Row::bad(n, error.why)),
        }
    }

    /// Returns the protocol, as far as it is known.
    #[must_use]
    pub fn protocol(&self) -> Option<Protocol> {
        self.explainer.protocol()
    }
}

#[cfg(test)]
pub(super) mod tests;
