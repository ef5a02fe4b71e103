//! [`Difference`]: what was not as recorded, and where.

use std::fmt;

use serde::Serialize;

use crate::pattern::Mismatch;
use crate::play::{Action, Expected, Frame};
use crate::secrets::{self, Shown};
use crate::text::shortened;

/// Most members of a difference that are shown.
const MAX_CHANGES: usize = 20;
/// The longest value that is shown, in bytes.
const MAX_VALUE: usize = 120;

/// Something that was not as recorded. Its [`Display`](fmt::Display) has several lines: what it is, then
/// what differs. Values of secret members are left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    /// The line of the recording, from 1.
    pub line: usize,
    /// The number of the connection in the recording.
    pub connection: u32,
    /// What differs, in a sentence.
    pub what: String,
    /// The members that differ, or the frames that do as a whole.
    pub changes: Vec<Change>,
}

/// A member that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Change {
    /// The path, such as `event.items[0].id`; empty for the whole frame.
    pub path: String,
    /// The recorded value, with what is bound in its place; `None` if there was none.
    pub recorded: Option<String>,
    /// What came; `None` if nothing did.
    pub got: Option<String>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            connection,
            what,
            changes,
        } = self;
        write!(f, "line {line}, connection {connection}: {what}")?;
        for change in changes.iter().take(MAX_CHANGES) {
            write!(f, "\n  {change}")?;
        }
        match changes.len().saturating_sub(MAX_CHANGES) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more"),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: &Option<String>| value.clone().unwrap_or_else(|| "nothing".to_owned());
        let (recorded, got) = (show(&self.recorded), show(&self.got));
        match self.path.is_empty() {
            true => write!(f, "recorded {recorded}\n  got      {got}"),
            false => write!(f, "{}: recorded {recorded}, got {got}", self.path),
        }
    }
}

/// Returns the change of a frame as a whole.
pub(super) fn whole(step: Option<&Action>, got: Option<&Frame>) -> Vec<Change> {
    vec![Change {
        path: String::new(),
        recorded: step.map(|step| match step {
            Action::Expect {
                pattern: Expected::Pattern(it),
                ..
            } => Frame::Text(it.text().to_owned()).to_string(),
            other => other.to_string(),
        }),
        got: got.map(ToString::to_string),
    }]
}

/// Returns where a text differs from the recorded one, without secrets.
pub(crate) fn changes(recorded: &str, got: &str, differs: &[Mismatch]) -> Vec<Change> {
    let shown = [recorded, got].map(|text| secrets::frame(text, &Shown::default()));
    let changes = differs.iter().map(|it| {
        if it.path().is_empty() {
            let [recorded, got] = [recorded, got].map(|it| Frame::Text(it.to_owned()).to_string());
            return Change {
                path: String::new(),
                recorded: Some(recorded),
                got: Some(got),
            };
        }
        // What is no secret stands in what is shown of its frame.
        let [was, is] = [&it.recorded, &it.found].map(|it| it.as_deref().unwrap_or_default());
        let is_secret = !shown[0].contains(was) || !shown[1].contains(is);
        let value = |raw: &String| match is_secret {
            true => "***".to_owned(),
            false => shortened(raw, MAX_VALUE).into_owned(),
        };
        Change {
            path: it.path().to_owned(),
            recorded: it.recorded.as_ref().map(|_| value(&it.expected)),
            got: it.found.as_ref().map(value),
        }
    });
    changes.collect()
}
