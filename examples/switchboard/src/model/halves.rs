//! [`Halves`]: puts characters together that a provider has cut in two.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

/// The first half of a surrogate pair at the end of a string.
static FIRST: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#"(?:^|[^\\])(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}(")"#).ok());
/// The second half at the beginning of a member.
static SECOND: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r#": *"(\\u[dD][c-fC-F][0-9a-fA-F]{2})"#).ok());

/// An event of a stream: its name and its data.
type Event = (Option<String>, String);

/// Programs in JavaScript cut texts between UTF-16 units, so that the halves of an emoji may come with two events
/// of a stream. An event that ends with a first half waits for the next one.
#[derive(Debug, Default)]
pub(super) struct Halves(Option<Event>);

impl Halves {
    /// Returns the event that has waited, whole now if the next one begins with the other half, and the
    /// next one, unless it waits.
    pub(super) fn next<'a>(
        &mut self,
        name: Option<&str>,
        data: &'a str,
    ) -> (Option<Event>, Option<Cow<'a, str>>) {
        let mut data = Cow::Borrowed(data);
        let mut before = self.0.take();
        if let Some((_, held)) = &mut before
            && let Some(end) = end_of(&FIRST, held)
            && let Some(half) = group(&SECOND, &data)
        {
            let mut rest = data.into_owned();
            let second: String = rest.drain(half).collect();
            held.insert_str(end, &second);
            data = rest.into();
        }
        // Most events have no such escape.
        if !data.contains("\\ud") && !data.contains("\\uD") || end_of(&FIRST, &data).is_none() {
            return (before, Some(data));
        }
        self.0 = Some((name.map(str::to_owned), data.into_owned()));
        (before, None)
    }

    /// Returns the event that waits.
    pub(super) fn end(&mut self) -> Option<Event> {
        self.0.take()
    }
}

/// Where the string ends.
fn end_of(regex: &Option<Regex>, text: &str) -> Option<usize> {
    group(regex, text).map(|quote| quote.start)
}

fn group(regex: &Option<Regex>, text: &str) -> Option<std::ops::Range<usize>> {
    Some(regex.as_ref()?.captures(text)?.get(1)?.range())
}
