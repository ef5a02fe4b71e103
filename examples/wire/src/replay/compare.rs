//! [`Difference`]: what was not as recorded, and where.

use std::collections::HashMap;
use std::fmt;

use serde::Serialize;

use super::bind::{Bindings, New};
use super::leaves::{Leaf, leaves};
use crate::transcript::{Entry, Kind};

use crate::secrets::{self, Shown};
use crate::tag;
use crate::text::shortened;

/// Most members of a difference that are shown.
const MAX_CHANGES: usize = 20;
/// The longest value that is shown, and the longest frame, in bytes.
const MAX_VALUE: usize = 120;
const MAX_FRAME: usize = 400;

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

impl Change {
    pub(super) fn new(path: &str, recorded: Option<String>, got: Option<String>) -> Self {
        Self {
            path: path.to_owned(),
            recorded,
            got,
        }
    }
}

/// Compares a frame with the recording. Returns what it binds; otherwise what differs.
pub(super) fn compare(
    recorded: &str,
    live: &str,
    bindings: &Bindings,
    tolerated: &[String],
) -> Result<New, Vec<Change>> {
    let (Some(was), Some(is)) = (leaves(recorded), leaves(live)) else {
        let expected = bindings.replaced_within(recorded);
        let expected = expected.as_deref().unwrap_or(recorded);
        if expected == live {
            return Ok(New::new());
        }
        return Err(vec![Change::new(
            "",
            Some(excerpt(expected)),
            Some(excerpt(live)),
        )]);
    };
    let value = |raw: &str| shortened(raw, MAX_VALUE).into_owned();
    let (mut new, mut changes) = (New::new(), Vec::new());
    let mut left: HashMap<&str, &Leaf<'_>> =
        is.iter().map(|leaf| (leaf.path.as_str(), leaf)).collect();
    for leaf in &was {
        let is_any = is_tolerated(leaf, tolerated);
        let Some(live) = left.remove(leaf.path.as_str()) else {
            if !is_any {
                changes.push(Change::new(&leaf.path, Some(value(leaf.raw)), None));
            }
            continue;
        };
        if let Err(expected) = bindings.compare(leaf, live, is_any, &mut new) {
            let (recorded, got) = (value(&expected), value(live.raw));
            changes.push(Change::new(&leaf.path, Some(recorded), Some(got)));
        }
    }
    for leaf in &is {
        if left.contains_key(leaf.path.as_str()) && !is_tolerated(leaf, tolerated) {
            changes.push(Change::new(&leaf.path, None, Some(value(leaf.raw))));
        }
    }
    if changes.is_empty() {
        return Ok(new);
    }
    let secret = [secrets_of(&was, recorded), secrets_of(&is, live)].concat();
    for change in changes.iter_mut().filter(|it| secret.contains(&it.path)) {
        for value in [&mut change.recorded, &mut change.got] {
            *value = value.take().map(|_| "***".to_owned());
        }
    }
    Err(changes)
}

/// Returns the paths of the values that are not shown of a frame.
fn secrets_of(found: &[Leaf<'_>], text: &str) -> Vec<String> {
    let text = secrets::frame(text, &Shown::default());
    let shown = leaves(&text).unwrap_or_default();
    let shown: HashMap<_, _> = shown.iter().map(|leaf| (&leaf.path, leaf.raw)).collect();
    let secret = found
        .iter()
        .filter(|leaf| shown.get(&leaf.path) != Some(&leaf.raw));
    secret.map(|leaf| leaf.path.clone()).collect()
}

/// Whether the user said that this member may have any value: by its name, or the end of its path.
fn is_tolerated(leaf: &Leaf<'_>, tolerated: &[String]) -> bool {
    tolerated.iter().any(|name| {
        let behind = leaf.path.split('.').any(|step| {
            let step = step.split('[').next().unwrap_or(step);
            step == name
        });
        behind || leaf.path == *name || leaf.path.ends_with(&format!(".{name}"))
    })
}

/// Whether a frame has one of these kinds.
pub(super) fn is_of(text: &str, kinds: &[String]) -> bool {
    !kinds.is_empty() && tag(text).is_some_and(|kind| kinds.iter().any(|it| *it == kind))
}

/// Returns the beginning of a frame, without its secrets.
fn excerpt(text: &str) -> String {
    match leaves(text) {
        Some(_) => shortened(&secrets::frame(text, &Shown::default()), MAX_FRAME).into_owned(),
        None => format!("{:?}", shortened(&secrets::within(text), MAX_FRAME)),
    }
}

/// Returns what is shown of an entry.
pub(super) fn shown(entry: &Entry<'_>) -> String {
    let data = &*entry.data;
    match entry.kind {
        Kind::Binary => {
            let digits = data.get(..128).unwrap_or(data);
            format!("{} bytes: {digits}", data.len() / 2)
        }
        Kind::Close => {
            let code = entry.code.map(|code| code.to_string());
            let code = code.unwrap_or_else(|| "without a code".to_owned());
            match data.is_empty() {
                true => format!("Close {code}"),
                false => format!("Close {code} {:?}", secrets::within(data)),
            }
        }
        Kind::Eof if data.is_empty() => "the end without a Close".to_owned(),
        Kind::Eof => format!("the connection failed: {data}"),
        _ => excerpt(data),
    }
}
