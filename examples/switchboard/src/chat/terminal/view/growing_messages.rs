//! [`Partial`]: messages that grow, and rows that stay before they are complete.

use std::time::Instant;

use super::{MAX_PARTIALS, View, columns, fitting};
use crate::markdown::ansi::{self, not_returned, visible, wrap};
use crate::text::{Colour, printable};

/// A message that grows.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) from: String,
    pub(super) text: String,
    pub(super) since: Instant,
    /// The part whose rows stay, and how many visible characters they have.
    pub(super) settled: (String, usize),
}

impl View {
    /// Lets rows that still change stay as they are drawn, from the first one on: all of a text that grows but
    /// its last row. Returns how many.
    pub(in crate::chat::terminal) fn settle(&mut self) -> usize {
        let before = self.lines.len();
        let rows = self.answer.overflow(self.width, 1);
        let rows = rows.iter().flat_map(|row| fitting(row, self.width));
        self.print_answer(rows.collect());
        self.open = None;
        let settled = self.lines.split_off(before).len();
        match self.is_cut || !self.open_block().is_empty() || !self.thought.is_empty() {
            true => settled,
            false => self.settle_message().unwrap_or_default(),
        }
    }

    /// Settles the first message that grows.
    fn settle_message(&mut self) -> Option<usize> {
        let at = self.partials.iter().position(|it| !it.text.is_empty())?;
        let Partial {
            from,
            text,
            settled: (_, before),
            ..
        } = self.partials.get(at)?;
        let mut rows = self.message(from, text, *before);
        rows.pop();
        let name = match before {
            0 => visible(&format!("{}:", printable(from))),
            _ => 0,
        };
        let shown = rows.iter().map(|row| visible(row)).sum::<usize>();
        let shown = shown.checked_sub(name).filter(|shown| *shown > 0)?;
        let settled = (text.clone(), before + shown);
        self.partials.get_mut(at)?.settled = settled;
        Some(rows.len())
    }

    pub(super) fn set_partial(&mut self, from: String, text: String, now: Instant) {
        let known = self.partials.iter_mut().find(|it| it.from == from);
        if let Some(partial) = known {
            partial.text = text;
        } else if self.partials.len() < MAX_PARTIALS {
            self.partials.push(Partial {
                from,
                text,
                since: now,
                settled: (String::new(), 0),
            });
        }
    }

    /// A message with its author before it. A text of one row follows the name, a longer one below. If so
    /// many visible characters of it are above already, only the rest.
    pub(super) fn message(&self, from: &str, text: &str, above: usize) -> Vec<String> {
        let mut rows = ansi::render(text, self.width.saturating_sub(2), self.style);
        rows.pop_if(|row| row.is_empty());
        if above > 0 {
            let rows = not_returned(rows, above).into_iter();
            return rows.map(|row| format!("  {}", row.trim_start())).collect();
        }
        let name = printable(from);
        if let [row] = rows.as_slice()
            && columns(&name) + 2 + columns(row) <= self.width
        {
            return vec![format!("{}: {row}", self.paint(Colour::Cyan, &name))];
        }
        let name = wrap(&format!("{from}:"), self.width, "", "  ");
        let name = name.iter().map(|row| self.paint(Colour::Cyan, row));
        let below = rows
            .iter()
            .map(|row| format!("  {row}").trim_end().to_owned());
        name.chain(below).collect()
    }
}
