//! [`Think`]: separates the thought before an answer from its text.

use std::collections::VecDeque;
use std::sync::LazyLock;

use regex::Regex;

use super::refusal::finds;
use super::written::Tail;
use super::{Delta, Notice};

/// A mark at the beginning of a text, in brackets of any form, or the name of a channel.
static OPEN: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^\s*(?:(?:<\|start\|>assistant)?<\|channel\|>(\w+)[^<]*<\|message\|>",
        r"|([<\[◁][|｜]?)([A-Za-z][\w:.▁-]*)([|｜]?[>\]▷]))",
    ))
    .ok()
});
/// What may become one.
static BEGUN: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*(?:[<\[◁][|｜]?[\w:.▁-]{0,40}[|｜]?)?$").ok());
/// The closing mark of a thought whose opening one the server's template has eaten.
static CLOSE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)([<\[◁][|｜]?)(?:/|end[_▁](?:of[_▁])?)([\w:.▁-]*(?:think|thought|reason)[\w.▁-]*)",
        r"[|｜]?[>\]▷]",
    ))
    .ok()
});

/// The longest mark.
const MARK: usize = 64;

/// A filter for the thoughts before the text of one answer, wherever its pieces are cut. Once there is text, marks are
/// part of it: an answer may be about them.
///
/// Some templates write the opening mark themselves, so that the server sends only the closing one. The first words
/// wait for it until they are [released](Self::release), or to the end if the model is known to [close](Self::closes)
/// its thoughts only. A mark that comes after that on a line of its own is reported: [`Notice::Thoughts`].
#[derive(Clone, Debug, Default)]
pub(super) struct Think {
    /// The model is known to close its thoughts only.
    pub(super) closes: bool,
    /// The marks that end the thought, one of which is to come.
    marks: Vec<String>,
    /// White space between a thought and the text is dropped.
    has_thought: bool,
    /// Whether text of the answer has arrived.
    has_spoken: bool,
    /// Whether the first words are not to wait any more.
    is_released: bool,
    held: String,
    /// The text of the answer, as long as it may be a thought.
    shown: String,
    /// How much of the text has no closing mark.
    searched: usize,
    pub(super) tail: Tail,
    /// Whether the server reads calls, so that those in the text are the same.
    pub(super) has_calls: bool,
}

impl Think {
    /// Takes the next piece of text.
    pub(super) fn push(&mut self, text: &str, out: &mut VecDeque<Delta>) {
        self.held.push_str(text);
        while self.step(out) {}
    }

    /// Returns whether the first words wait for a mark that most models never send.
    pub(super) fn waits(&self) -> bool {
        let is_over = self.is_released || self.closes || self.has_thought || self.has_spoken;
        !is_over && self.marks.is_empty() && !self.held.trim().is_empty()
    }

    /// Lets the first words go.
    pub(super) fn release(&mut self, out: &mut VecDeque<Delta>) {
        self.is_released = true;
        self.push("", out);
    }

    /// Ends the text: held text is not a mark.
    pub(super) fn end(&mut self, out: &mut VecDeque<Delta>) {
        self.release(out);
        let held = std::mem::take(&mut self.held);
        self.push_text(&held, out);
        self.closes &= self.has_thought || !self.has_spoken;
        let (text, calls) = self.tail.end();
        out.extend((!text.is_empty()).then_some(Delta::Text(text)));
        let calls = calls.into_iter().filter(|_| !self.has_calls);
        out.extend(calls.map(Delta::ToolCall));
    }

    /// Tells what is certain. Returns whether there is more to do.
    fn step(&mut self, out: &mut VecDeque<Delta>) -> bool {
        let held = std::mem::take(&mut self.held);
        let rest = |from: usize| held.get(from..).unwrap_or_default().to_owned();
        if !self.marks.is_empty() {
            let marks = self.marks.iter();
            let found = marks.filter_map(|mark| Some((held.find(mark)?, mark.len())));
            let Some((at, length)) = found.min() else {
                let (ready, kept) = held.split_at(held.len() - self.open_end(&held));
                self.push_text(ready, out);
                kept.clone_into(&mut self.held);
                return false;
            };
            self.push_text(held.get(..at).unwrap_or_default(), out);
            self.marks.clear();
            self.has_thought = true;
            self.held = rest(at + length);
            return true;
        }
        if self.has_spoken {
            // What was shown before a mark is a thought, too.
            let end = self.late(&held);
            let (thought, answer) = held.split_at(end.unwrap_or(held.len()));
            self.push_text(thought, out);
            if end.is_some() {
                (self.has_thought, self.closes) = (true, true);
                out.push_back(Delta::Notice(Notice::Thoughts));
                self.tail = Tail::new(std::mem::take(&mut self.tail.tools));
                self.push_text(answer, out);
            }
            return false;
        }
        let waits = !self.has_thought && (self.closes || !self.is_released);
        match self.opening(&held) {
            Some(Some(end)) => self.held = rest(end),
            None if !waits => {
                self.push_text(&held, out);
                return false;
            }
            None if self.closing(&held).is_some() => {
                let (from, to) = self.closing(&held).unwrap_or_default();
                out.push_back(Delta::Thought(
                    held.get(..from).unwrap_or_default().to_owned(),
                ));
                (self.has_thought, self.closes) = (true, true);
                self.held = rest(to);
            }
            _ => {
                self.searched = held.trim_end().len();
                self.held = held;
                return false;
            }
        }
        true
    }

    /// Returns the end of the mark with which a text begins, or `None` in place of it if that is not certain yet.
    fn opening(&mut self, text: &str) -> Option<Option<usize>> {
        let Some(found) = OPEN.as_ref()?.captures(text) else {
            return BEGUN.as_ref()?.is_match(text).then_some(None);
        };
        let end = found.get(0)?.end();
        if let Some(channel) = found.get(1) {
            self.has_thought = true;
            if channel.as_str() != "final" {
                self.marks = ["<|end|>", "<|channel|>final<|message|>"]
                    .map(str::to_owned)
                    .into();
            }
            return Some(Some(end));
        }
        let (left, name, right) = (&found[2], &found[3], &found[4]);
        let low = name.to_lowercase();
        if left == "<|" && ["channel", "start"].contains(&&*low) {
            return (text.len() < 2 * MARK).then_some(None);
        }
        let begun = ["begin", "start"]
            .into_iter()
            .find(|it| low.starts_with(it));
        let close = match begun.and_then(|begun| name.get(begun.len()..)) {
            Some(of) if low == name => format!("{left}end{of}{right}"),
            Some(of) => format!("{left}END{of}{right}"),
            None => format!("{left}/{name}{right}"),
        };
        // Any other mark may be what was asked for.
        let is_thought = finds("think|thought|reason|scratch|monolog", &low);
        is_thought.then(|| {
            self.marks = vec![close];
            Some(end)
        })
    }

    /// Returns where the answer begins in the next piece, if a mark on a line of its own has closed all before it.
    fn late(&mut self, next: &str) -> Option<usize> {
        if self.has_thought {
            return None;
        }
        self.searched = self.shown.trim_end().len();
        let whole = std::mem::take(&mut self.shown) + next;
        let found = self.closing(&whole).and_then(|(from, to)| {
            let (before, after) = (whole.get(..from)?, whole.get(to..)?);
            let is_line = before.ends_with('\n') || after.starts_with(['\n', '\r']);
            let answer = after.trim_start().len();
            is_line.then(|| next.len() - answer.min(next.len()))
        });
        self.shown = whole;
        self.shown.truncate(self.shown.len() - next.len());
        found
    }

    /// Returns where a closing mark alone stands before more text, unless the text speaks of it.
    fn closing(&self, text: &str) -> Option<(usize, usize)> {
        let mut from = self.searched.saturating_sub(MARK);
        while !text.is_char_boundary(from) {
            from -= 1;
        }
        let found = CLOSE.as_ref()?.captures_at(text, from)?;
        let mark = found.get(0)?;
        let before = text.get(..mark.start())?;
        let rest = text.get(mark.end()..)?;
        let after = rest.chars().next();
        let last = before.chars().next_back();
        let is_quoted = matches!(last, Some('`' | '"' | '\'' | '(' | '“'))
            || before.matches("```").count() % 2 == 1;
        // In the middle of a sentence.
        let is_word = last == Some(' ') && after.is_none_or(|after| after != '\n');
        let opens = format!("{}{}", &found[1], &found[2]);
        let is_alone = !is_quoted && !is_word && !before.contains(&opens);
        (is_alone && !rest.trim().is_empty()).then(|| (mark.start(), mark.end()))
    }

    /// Returns how much of the end of a thought may be the beginning of its mark.
    fn open_end(&self, text: &str) -> usize {
        let ends = |begin: Option<&str>| begin.is_some_and(|begin| text.ends_with(begin));
        let begins = |mark: &String| (1..mark.len()).rev().find(|to| ends(mark.get(..*to)));
        self.marks.iter().filter_map(begins).max().unwrap_or(0)
    }

    fn push_text(&mut self, text: &str, out: &mut VecDeque<Delta>) {
        let is_thought = !self.marks.is_empty();
        let text = match !is_thought && self.has_thought && !self.has_spoken {
            true => text.trim_start(),
            false => text,
        };
        if text.is_empty() {
            return;
        }
        if is_thought {
            out.push_back(Delta::Thought(text.to_owned()));
        } else {
            self.has_spoken |= !text.trim().is_empty();
            if !self.has_thought {
                self.shown.push_str(text);
            }
            let text = self.tail.push(text);
            out.extend((!text.is_empty()).then_some(Delta::Text(text)));
        }
    }
}
