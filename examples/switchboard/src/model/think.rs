//! [`Think`]: separates thoughts in the text, between `<think>` and `</think>`, from the answer.

use std::collections::VecDeque;

use super::Delta;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// A filter for the thoughts in the text of one answer, wherever its pieces are cut. An unclosed
/// thought extends to the end; a closing mark without an opening one is dropped.
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
            self.is_thought = !self.is_thought && after.0 == OPEN;
            self.has_thought = true;
            rest = after.1;
        }
        let kept = rest.len() - self.open_end(rest);
        self.tell(rest.get(..kept).unwrap_or_default(), out);
        rest.get(kept..)
            .unwrap_or_default()
            .clone_into(&mut self.held);
    }

    /// Ends the text: held text is not a mark.
    pub(super) fn end(&mut self, out: &mut VecDeque<Delta>) {
        let held = std::mem::take(&mut self.held);
        self.tell(&held, out);
    }

    /// Returns the text before the next mark, the mark, and the text after it.
    fn split<'a>(&self, text: &'a str) -> Option<(&'a str, (&'static str, &'a str))> {
        let found = self.marks().iter().filter_map(|mark| {
            let (before, after) = text.split_once(*mark)?;
            Some((before, (*mark, after)))
        });
        found.min_by_key(|(before, _)| before.len())
    }

    /// Returns how much of the end of a text may be the beginning of a mark.
    fn open_end(&self, text: &str) -> usize {
        let lengths = (1..CLOSE.len()).rev();
        let begins = |length: &usize| {
            let mut marks = self.marks().iter().filter_map(|mark| mark.get(..*length));
            marks.any(|part| part.len() < CLOSE.len() && text.ends_with(part))
        };
        lengths.into_iter().find(begins).unwrap_or(0)
    }

    const fn marks(&self) -> &'static [&'static str] {
        if self.is_thought {
            &[CLOSE]
        } else {
            &[OPEN, CLOSE]
        }
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
