//! [`View`]: the frames of a recording or of a running proxy, and what went wrong: the first ones and the last ones.

mod feed;
mod row;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::lock;
use crate::transcript::Header;

use super::explain::{Explainer, Line};
use super::order::Answers;

pub(crate) use feed::{Fed, Feed, open};
pub(crate) use row::Row;

/// Most frames of a view.
pub(crate) const MAX_ROWS: usize = 100_000;
/// So many frames from the beginning stay.
pub(crate) const FIRST_ROWS: usize = 1_000;
/// Most bytes of the frames of a view.
const MAX_BYTES: usize = 128 * 1024 * 1024;

/// The first frames and the last ones, oldest first.
#[derive(Debug, Default)]
pub(crate) struct View {
    /// What people call the recording.
    pub name: String,
    /// The frames, oldest first.
    pub rows: VecDeque<Row>,
    bytes: usize,
    /// The header of the recording.
    pub header: Header,
    /// How many lines are not of a recording.
    pub bad: usize,
    /// How many frames are no longer here, or never were.
    pub dropped: usize,
    /// Whether nothing follows.
    pub is_complete: bool,
}

impl View {
    /// Creates an empty view of the recording that people call so.
    pub(crate) fn named(name: impl Into<String>) -> Shared {
        let name = name.into();
        Arc::new(Mutex::new(Self {
            name,
            ..Self::default()
        }))
    }

    /// Adds a frame, and forgets the oldest ones behind the beginning if there are too many.
    pub(crate) fn push(&mut self, row: Row) {
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
    pub(crate) fn end(&mut self, unanswered: &[Answers]) {
        self.is_complete = true;
        self.blame(unanswered);
    }

    /// Returns the place of the first frame behind this line.
    pub(crate) fn place_after(&self, line: usize) -> usize {
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
pub(crate) type Shared = Arc<Mutex<View>>;

/// Explains the line with this number of a recording, and adds it to a view.
fn add(view: &Shared, explainer: &mut Explainer, n: usize, line: &str) {
    let row = match explainer.read(n, line) {
        Ok(Some(Line::Entry(entry, explained))) => {
            Row::new(n, &entry, explained).with(explainer.data(&entry))
        }
        Ok(Some(Line::Header(header))) => return lock(view).header = header,
        Ok(None) => return,
        Err(error) => {
            lock(view).bad += 1;
            Row::bad(n, &error.why)
        }
    };
    lock(view).push(row);
}

/// Returns what fills a view with what a feed passes on.
pub(crate) fn fill(
    mut explainer: Explainer,
    view: Shared,
) -> impl FnMut(&Fed<'_>) + Send + 'static {
    move |fed| match fed {
        Fed::Line(n, line) => add(&view, &mut explainer, *n, line),
        Fed::Lost(count) => lock(&view).dropped += count,
        Fed::End => end(&view, &explainer),
    }
}

/// Notes that nothing follows.
fn end(view: &Shared, explainer: &Explainer) {
    let unanswered = explainer.unanswered(Duration::ZERO);
    lock(view).end(&unanswered);
}

#[cfg(test)]
pub(super) mod tests;
