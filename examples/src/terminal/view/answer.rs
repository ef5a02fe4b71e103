//! [`Answer`]: a Markdown text that grows.

use crate::markdown::ansi::{Style, render};
use crate::markdown::closed;

/// The part of an answer that is not written yet: its last block.
#[derive(Debug, Default)]
pub(super) struct Answer {
    open: String,
    /// The rows of the open block, and for which width and length of it.
    rows: Vec<String>,
    rendered: (usize, usize),
}

impl Answer {
    /// Adds text. Returns the rows of the blocks that no later text changes.
    pub(super) fn push(&mut self, text: &str, width: usize, style: Style) -> Vec<String> {
        self.open.push_str(text);
        // A block closes where a line ends.
        if !text.contains('\n') {
            return Vec::new();
        }
        let rest = self.open.split_off(closed(&self.open));
        let closed = std::mem::replace(&mut self.open, rest);
        if closed.is_empty() {
            return Vec::new();
        }
        self.rendered = (0, 0);
        trim(render(&closed, width, style))
    }

    /// Takes what is left.
    pub(super) fn take(&mut self, width: usize, style: Style) -> Vec<String> {
        let open = std::mem::take(&mut self.open);
        trim(render(&open, width, style))
    }

    /// The rows of the open block.
    pub(super) fn live(&mut self, width: usize, style: Style) -> Vec<String> {
        if self.open.is_empty() {
            return Vec::new();
        }
        let wanted = (width, self.open.len());
        if self.rendered != wanted {
            self.rows = trim(render(&self.open, width, style));
            self.rendered = wanted;
        }
        self.rows.clone()
    }
}

/// Without blank rows around.
fn trim(mut rows: Vec<String>) -> Vec<String> {
    while rows.pop_if(|row| row.is_empty()).is_some() {}
    let first = rows.iter().take_while(|row| row.is_empty()).count();
    rows.drain(..first);
    rows
}
