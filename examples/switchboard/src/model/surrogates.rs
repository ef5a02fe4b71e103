//! [`Halves`]: joins the halves of a surrogate pair that came in two pieces.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

type Pattern = LazyLock<Option<Regex>>;

/// The first half of a surrogate pair at the end of a string.
static FIRST: Pattern =
    LazyLock::new(|| Regex::new(r#"(?:^|[^\\])(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}(")"#).ok());
/// The second half at the beginning of a member.
static SECOND: Pattern =
    LazyLock::new(|| Regex::new(r#": *"(\\u[dD][c-fC-F][0-9a-fA-F]{2})"#).ok());
/// A piece that is not empty, or the end of an answer.
static SAYS: Pattern = LazyLock::new(|| {
    Regex::new(concat!(
        r#"^\[DONE\]|"(?:content|text|arguments|partial_json|thinking|reasoning|reasoning_content|refusal"#,
        r#"|finish_reason|stop_reason|done_reason)" *: *"[^"]|"error" *: *[^n]"#,
    ))
    .ok()
});

/// An event of a stream: its name and its data.
type Event = (Option<String>, String);

/// Programs in JavaScript cut texts between UTF-16 units, so that the halves of an emoji may come with two events
/// of a stream. An event that ends with a first half waits for the next one that says something.
#[derive(Debug, Default)]
pub(super) struct Halves {
    /// The event with a first half, and those without a word since.
    held: VecDeque<Event>,
    whole: VecDeque<Event>,
}

impl Halves {
    /// Takes an event if it ends with a first half, or if another one waits for it. Returns whether it was taken.
    pub(super) fn take(&mut self, name: Option<&str>, data: &str) -> bool {
        if self.held.is_empty() && !is_half(data) {
            return false;
        }
        let mut data = data.to_owned();
        if let Some((_, held)) = self.held.front_mut()
            && is_match(&SAYS, &data)
        {
            if let (Some(end), Some(half)) = (group(&FIRST, held), group(&SECOND, &data)) {
                let second: String = data.drain(half).collect();
                held.insert_str(end.start, &second);
            }
            self.release();
        }
        let waits = !self.held.is_empty() || is_half(&data);
        let queue = if waits {
            &mut self.held
        } else {
            &mut self.whole
        };
        queue.push_back((name.map(str::to_owned), data));
        true
    }

    /// Ends the wait.
    pub(super) fn release(&mut self) {
        self.whole.append(&mut self.held);
    }

    /// Returns the next event that does not wait.
    pub(super) fn pop(&mut self) -> Option<Event> {
        self.whole.pop_front()
    }
}

/// Most events have no such escape.
fn is_half(data: &str) -> bool {
    (data.contains("\\ud") || data.contains("\\uD")) && is_match(&FIRST, data)
}

fn is_match(pattern: &Pattern, text: &str) -> bool {
    pattern.as_ref().is_some_and(|regex| regex.is_match(text))
}

fn group(pattern: &Pattern, text: &str) -> Option<Range<usize>> {
    Some(pattern.as_ref()?.captures(text)?.get(1)?.range())
}
