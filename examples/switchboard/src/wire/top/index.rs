//! [`Index`]: the lines that a filter lets through.

use std::collections::VecDeque;

use crate::wire::view::{Filter, View};

/// The lines that a filter lets through, kept up to date with a view.
#[derive(Debug, Default)]
pub(super) struct Index {
    filter: Filter,
    /// The last line that was looked at.
    last: usize,
    frames: VecDeque<usize>,
}

impl Index {
    pub(super) fn new(filter: Filter) -> Self {
        Self {
            filter,
            ..Self::default()
        }
    }

    /// Looks at what is new, and forgets what is no longer there.
    pub(super) fn update(&mut self, view: &View) {
        let first = view.rows().front().map_or(usize::MAX, |row| row.n);
        while self.frames.front().is_some_and(|line| *line < first) {
            self.frames.pop_front();
        }
        for row in view.rows().range(view.place_after(self.last)..) {
            if self.filter.fits(row) {
                self.frames.push_back(row.n);
            }
            self.last = row.n;
        }
    }

    pub(super) fn frames(&self) -> Vec<usize> {
        self.frames.iter().copied().collect()
    }

    /// The frames with problems. Some have theirs long after they came.
    pub(super) fn problems(&self, view: &View) -> Vec<usize> {
        let rows = view.rows().iter().filter(|row| row.problem.is_some());
        let rows = rows.filter(|row| self.filter.fits(row));
        rows.map(|row| row.n).collect()
    }

    pub(super) fn calls(&self, view: &View) -> Vec<usize> {
        let lines = view.calls().iter().map(|call| call.line);
        let fits = |line: &usize| {
            self.filter.is_empty() || view.row(*line).is_some_and(|row| self.filter.fits(row))
        };
        lines.filter(fits).collect()
    }
}
