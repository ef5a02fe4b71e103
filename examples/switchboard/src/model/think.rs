//! [`Think`]: separates thoughts in the text, between `<think>` and `</think>`, from the answer.

use std::collections::VecDeque;

use super::Delta;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A filter for the thoughts before the text of one answer, wherever its pieces are cut. An unclosed thought
/// extends to the end. Once there is text, marks are part of it: an answer may be about them.
#[derive(Clone, Debug, Default)]
pub(super) struct Think {
    is_thought: bool,
    /// Whether text of the answer has arrived. White space between a thought and the text is
    /// dropped.
    has_spoken: bool,
    has_thought: bool,
    /// Text that may be the beginning of a mark.
    held: String,
}

impl Think {
    /// Takes the next piece of text.
    pub(super) fn push(&mut self, text: &str, out: &mut VecDeque<Delta>) {
        self.held.push_str(text);
        let held = std::mem::take(&mut self.held);
        let mut rest = held.as_str();
        while let Some((before, after)) = self.split(rest) {
            self.tell(before, out);
            self.is_thought = !self.is_thought;
            self.has_thought = true;
            rest = after;
        }
        let (told, held) = rest.split_at(rest.len() - self.open_end(rest));
        self.tell(told, out);
        held.clone_into(&mut self.held);
    }

    /// Ends the text: held text is not a mark.
    pub(super) fn end(&mut self, out: &mut VecDeque<Delta>) {
        let held = std::mem::take(&mut self.held);
        self.tell(&held, out);
    }

    /// Returns the text before the next mark, and the text after it.
    fn split<'a>(&self, text: &'a str) -> Option<(&'a str, &'a str)> {
        if self.is_thought {
            return text.split_once(CLOSE);
        }
        let found = text.split_once(OPEN).filter(|_| !self.has_spoken);
        found.filter(|(before, _)| before.trim().is_empty())
    }

    /// Returns how much of the end of a text may be the beginning of a mark.
    fn open_end(&self, text: &str) -> usize {
        let mark = if self.is_thought { CLOSE } else { OPEN };
        let fits = |length: &usize| {
            let before = text.strip_suffix(mark.get(..*length).unwrap_or(mark));
            let is_blank = |before: &str| !self.has_spoken && before.trim().is_empty();
            before.is_some_and(|before| self.is_thought || is_blank(before))
        };
        (1..mark.len()).rev().find(fits).unwrap_or(0)
    }

    fn tell(&mut self, text: &str, out: &mut VecDeque<Delta>) {
        let text = match !self.is_thought && self.has_thought && !self.has_spoken {
            true => text.trim_start(),
            false => text,
        };
        if text.is_empty() {
            return;
        }
        if self.is_thought {
            out.push_back(Delta::Thought(text.to_owned()));
        } else {
            self.has_spoken |= !text.trim().is_empty();
            out.push_back(Delta::Text(text.to_owned()));
        }
    }
}
