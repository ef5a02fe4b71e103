//! [`Growing`]: the answer of a model, and what clients see of it while it grows. Without IO.

use std::collections::VecDeque;
use std::time::Duration;

use connectonion_proto::frame::{Compact, EventKind, TextDelta, Thinking};
use tokio::time::Instant;

use crate::model::{Delta, Notice};

/// The time between two parts of a text: 20 a second look smooth, and models send hundreds.
const PACE: Duration = Duration::from_millis(50);
/// The most of what a model thinks before an answer that is shown, in bytes.
const MAX_THOUGHT: usize = 64 * 1024;

/// The answer to one call of a model. Its texts go to the clients in parts, the first one at once,
/// and a thought once more as a whole at its end.
#[derive(Debug, Default)]
pub(super) struct Growing {
    /// The id of the call, from which those of its texts are made.
    call: String,
    text: String,
    /// How much of the answer's text was sent, in bytes.
    text_sent: usize,
    /// What the model thinks, since the last whole thought.
    thought: String,
    /// How much of it was sent, in bytes.
    thought_sent: usize,
    /// The bytes of all thoughts.
    thought_bytes: usize,
    thoughts: usize,
    /// When the next part may leave.
    next: Option<Instant>,
    events: VecDeque<(Option<String>, EventKind)>,
}

impl Growing {
    /// Creates the empty answer to the call with this id.
    pub(super) fn new(call: &str) -> Self {
        Self {
            call: call.to_owned(),
            ..Self::default()
        }
    }

    /// Takes the next piece.
    pub(super) fn push(&mut self, delta: Delta, now: Instant) {
        match delta {
            Delta::Thought(more) if self.thought_bytes + more.len() <= MAX_THOUGHT => {
                self.thought_bytes += more.len();
                self.thought.push_str(&more);
            }
            Delta::Text(more) => {
                self.end_thought();
                self.text.push_str(&more);
            }
            Delta::ToolCall(_) => self.end_thought(),
            Delta::Notice(Notice::Thoughts) => {
                // The whole answer takes the place of its parts.
                self.text.clear();
                self.text_sent = 0;
                self.events.push_back((None, event(&Notice::Thoughts)));
            }
            Delta::Notice(notice) => self.events.push_back((None, event(&notice))),
            _ => {}
        }
        self.send(now);
    }

    /// Returns when [`send`](Self::send) is to be called; `None` if nothing waits.
    pub(super) fn due(&self) -> Option<Instant> {
        self.next.filter(|_| self.waits())
    }

    fn waits(&self) -> bool {
        self.thought_sent < self.thought.len() || self.text_sent < self.text.len()
    }

    /// Sends what has grown, unless a part was sent just now.
    pub(super) fn send(&mut self, now: Instant) {
        if !self.waits() || self.next.is_some_and(|next| now < next) {
            return;
        }
        self.next = Some(now + PACE);
        let text_sent = self.text.get(self.text_sent..).unwrap_or_default();
        if !text_sent.is_empty() {
            let delta = TextDelta::new(text_sent, self.answer_id());
            self.text_sent = self.text.len();
            self.events
                .push_back((None, EventKind::AssistantDelta(delta)));
        }
        let thought = self.thought.get(self.thought_sent..).unwrap_or_default();
        if !thought.is_empty() {
            let delta = TextDelta::new(thought, self.thought_id());
            self.events
                .push_back((None, EventKind::ThinkingDelta(delta)));
            self.thought_sent = self.thought.len();
        }
    }

    /// Shows the thought as a whole, if there is one: something else follows.
    pub(super) fn end_thought(&mut self) {
        let thought = std::mem::take(&mut self.thought);
        if !thought.trim().is_empty() {
            let whole = EventKind::Thinking(Thinking::new(thought));
            self.events.push_back((Some(self.thought_id()), whole));
        }
        self.thoughts += usize::from(self.thought_sent > 0);
        self.thought_sent = 0;
    }

    /// Returns the next event for the clients, with its id if it has to have that one.
    pub(super) fn poll(&mut self) -> Option<(Option<String>, EventKind)> {
        self.events.pop_front()
    }

    /// Returns the id of the event with the whole text of the answer.
    pub(super) fn answer_id(&self) -> String {
        format!("{}.answer", self.call)
    }

    fn thought_id(&self) -> String {
        format!("{}.thought-{}", self.call, self.thoughts)
    }

    /// Returns the text so far.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Returns the event with the reason why an answer takes longer, or knows less.
fn event(notice: &Notice) -> EventKind {
    match notice {
        Notice::Shortened { .. } => {
            let mut compact = Compact::new("done");
            compact.message = Some(notice.to_string().into());
            EventKind::Compact(compact)
        }
        other => remark(other.to_string()),
    }
}

/// Returns the event for words between the thoughts of the model that are not its own.
pub(super) fn remark(text: String) -> EventKind {
    let mut thinking = Thinking::new(text);
    thinking.kind = Some("retry".into());
    EventKind::Thinking(thinking)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Delta {
        Delta::Text(text.to_owned())
    }

    fn thought(text: &str) -> Delta {
        Delta::Thought(text.to_owned())
    }

    /// What was sent since the last look: a mark for the kind, its text, its id.
    fn events_of(growing: &mut Growing) -> Vec<(char, String, String)> {
        std::iter::from_fn(|| growing.poll())
            .map(|(id, kind)| match kind {
                EventKind::AssistantDelta(delta) => {
                    ('a', delta.content.to_string(), delta.message_id.to_string())
                }
                EventKind::ThinkingDelta(delta) => {
                    ('t', delta.content.to_string(), delta.message_id.to_string())
                }
                EventKind::Thinking(whole) => {
                    ('T', whole.content.unwrap().to_string(), id.unwrap())
                }
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn part(mark: char, text: &str, id: &str) -> (char, String, String) {
        (mark, text.to_owned(), id.to_owned())
    }

    #[test]
    fn the_first_part_is_sent_at_once_and_the_others_together() {
        let (mut growing, start) = (Growing::new("c"), Instant::now());
        growing.push(text("a"), start);
        assert_eq!(events_of(&mut growing), [part('a', "a", "c.answer")]);
        assert_eq!(growing.due(), None);
        growing.push(text("b"), start + PACE / 2);
        growing.push(text("c"), start + PACE / 2);
        assert_eq!(events_of(&mut growing), []);
        assert_eq!(growing.due(), Some(start + PACE));
        growing.send(start + PACE);
        assert_eq!(events_of(&mut growing), [part('a', "bc", "c.answer")]);
        growing.push(text("d"), start + 3 * PACE);
        assert_eq!(events_of(&mut growing), [part('a', "d", "c.answer")]);
        assert_eq!(growing.text(), "abcd");
    }

    #[test]
    fn a_thought_is_whole_when_something_else_follows() {
        let (mut growing, start) = (Growing::new("c"), Instant::now());
        growing.push(thought("h"), start);
        growing.push(thought("m"), start);
        growing.push(text("so"), start);
        let first = [
            part('t', "h", "c.thought-0"),
            part('T', "hm", "c.thought-0"),
        ];
        assert_eq!(events_of(&mut growing), first);
        growing.push(thought("more"), start + PACE);
        growing.end_thought();
        let second = [
            part('a', "so", "c.answer"),
            part('t', "more", "c.thought-1"),
            part('T', "more", "c.thought-1"),
        ];
        assert_eq!(events_of(&mut growing), second);
    }

    #[test]
    fn a_model_that_thinks_without_end_is_shown_in_part() {
        let (mut growing, start) = (Growing::new("c"), Instant::now());
        for _ in 0..100 {
            growing.push(thought(&"x".repeat(1_000)), start);
        }
        growing.end_thought();
        let events_of = events_of(&mut growing);
        assert_eq!(
            events_of.last().map(|(_, text, _)| text.len()),
            Some(65_000)
        );
    }
}
