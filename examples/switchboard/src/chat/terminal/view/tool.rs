//! [`Tools`]: the calls that run, with the end of their output, and what stays of them.

use std::collections::VecDeque;

use super::{fold, paint};
use rpc_core::text::beginning;

use crate::markdown::ansi::{Style, diff, wrap};
use crate::text::Colour;

/// Most calls that run at once; of more, the oldest counts as ended.
const MAX_CALLS: usize = 64;
/// The most lines of a call's output that are shown while it runs, that stay, and that stay of a diff.
const MAX_LIVE: usize = 5;
pub(in crate::chat::terminal) const MAX_RESULT: usize = 4;
const MAX_DIFF: usize = 40;
/// The longest line of output, in bytes.
const MAX_LINE: usize = 2_000;
/// The most rows of the line that names a call.
const MAX_TITLE: usize = 2;

/// The calls that run, oldest first.
#[derive(Debug, Default)]
pub(super) struct Tools(VecDeque<Tool>);

#[derive(Debug)]
struct Tool {
    id: String,
    name: String,
    arguments: String,
    output: Output,
}

/// The beginning and the end of an output.
#[derive(Debug, Default)]
struct Output {
    first: Vec<String>,
    last: VecDeque<String>,
    /// How many lines there were.
    count: usize,
    /// The last line has no end yet.
    is_open: bool,
    is_diff: bool,
}

impl Tools {
    /// A tool begins. Returns the rows of one that no longer counts.
    pub(super) fn call(
        &mut self,
        id: String,
        name: String,
        arguments: &str,
        width: usize,
        style: Style,
    ) -> Option<Vec<String>> {
        let surplus = (self.0.len() >= MAX_CALLS).then(|| self.0.pop_front());
        self.0.push_back(Tool {
            id,
            name,
            arguments: arguments.to_owned(),
            output: Output::default(),
        });
        Some(surplus??.rows("-", None, width, style))
    }

    pub(super) fn output(&mut self, id: &str, text: &str, is_diff: bool) {
        if let Some(tool) = self.0.iter_mut().find(|tool| tool.id == id) {
            tool.output.push(text, is_diff);
        }
    }

    /// A tool has ended. Returns what stays of it.
    pub(super) fn result(
        &mut self,
        id: &str,
        outcome: &Result<String, String>,
        width: usize,
        style: Style,
    ) -> Vec<String> {
        let at = self.0.iter().position(|tool| tool.id == id);
        let tool = at.and_then(|at| self.0.remove(at));
        let mut tool = tool.unwrap_or_else(|| Tool {
            id: id.to_owned(),
            name: "tool".to_owned(),
            arguments: String::new(),
            output: Output::default(),
        });
        match outcome {
            Ok(text) => {
                if tool.output.count == 0 {
                    tool.output.push(text, false);
                }
                tool.rows("✓", None, width, style)
            }
            Err(why) => tool.rows("✗", Some(why), width, style),
        }
    }

    /// Ends all of them: they have no result.
    pub(super) fn end(&mut self, width: usize, style: Style) -> Vec<String> {
        let tools = self.0.drain(..);
        tools
            .flat_map(|tool| tool.rows("-", None, width, style))
            .collect()
    }

    /// The name of the one that has run for the longest time.
    pub(super) fn running(&self) -> Option<&str> {
        self.0.front().map(|tool| &*tool.name)
    }

    /// The rows of those that run, with the last lines of their output.
    pub(super) fn live(&self, width: usize, style: Style) -> Vec<String> {
        let rows = self.0.iter().flat_map(|tool| {
            let mut rows = tool.title("◦", width, style);
            let last = tool.output.last.iter().rev().take(MAX_LIVE).rev();
            // One row each: they come and go.
            rows.extend(
                last.filter_map(|line| tool.output.rows(line, width, style).into_iter().next()),
            );
            rows
        });
        rows.collect()
    }
}

impl Tool {
    fn title(&self, mark: &str, width: usize, style: Style) -> Vec<String> {
        let line = format!("{} {}", self.name, self.arguments);
        let mut rows = wrap(line.trim_end(), width, &format!("{mark} "), "  ");
        if rows.len() > MAX_TITLE {
            rows.truncate(MAX_TITLE);
            if let Some(last) = rows.last_mut() {
                *last = format!("{}...", beginning(last, last.len().saturating_sub(3)));
            }
        }
        rows.iter()
            .map(|row| paint(style, Colour::Dim, row))
            .collect()
    }

    /// What stays: the call, the beginning of its output, and why it failed.
    fn rows(&self, mark: &str, why: Option<&str>, width: usize, style: Style) -> Vec<String> {
        let mut rows = self.title(mark, width, style);
        let output = &self.output;
        let most = if output.is_diff { MAX_DIFF } else { MAX_RESULT };
        let mut shown: Vec<_> = output.first.iter().take(most).collect();
        let mut more = output.count.saturating_sub(shown.len());
        if more == 1 {
            shown.extend(output.last.back());
            more = 0;
        }
        for line in shown {
            let mut line = output.rows(line, width, style);
            fold(&mut line, MAX_RESULT, "    ");
            rows.extend(line);
        }
        if more > 0 {
            let words = format!("    ... {more} more lines");
            rows.push(paint(style, Colour::Dim, &words));
        }
        if let Some(why) = why {
            let why = wrap(&format!("failed: {why}"), width, "    ", "    ");
            rows.extend(why.iter().map(|row| paint(style, Colour::Yellow, row)));
        }
        rows
    }
}

impl Output {
    fn push(&mut self, text: &str, is_diff: bool) {
        self.is_diff |= is_diff;
        for part in text.split_inclusive('\n') {
            let line = part.trim_end_matches(['\n', '\r']);
            if !std::mem::replace(&mut self.is_open, !part.ends_with('\n')) {
                self.count += 1;
                if self.first.len() < MAX_DIFF {
                    self.first.push(String::new());
                }
                self.last.push_back(String::new());
                if self.last.len() > MAX_LIVE {
                    self.last.pop_front();
                }
            }
            let is_first = self.count <= self.first.len();
            let first = self.first.last_mut().filter(|_| is_first);
            for kept in first.into_iter().chain(self.last.back_mut()) {
                let room = MAX_LINE.saturating_sub(kept.len());
                kept.push_str(beginning(line, room));
            }
        }
    }

    /// The rows of a line.
    fn rows(&self, line: &str, width: usize, style: Style) -> Vec<String> {
        if self.is_diff {
            let rows = diff(line, width.saturating_sub(4), style);
            return rows.iter().map(|row| format!("    {row}")).collect();
        }
        let rows = wrap(line, width, "    ", "    ");
        rows.iter()
            .map(|row| paint(style, Colour::Dim, row))
            .collect()
    }
}
