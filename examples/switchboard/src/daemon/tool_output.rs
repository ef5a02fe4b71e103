//! The output of tools as clients see it: the header of a call, lines, and how much was left out.

use acolyte_proto::event::{EditHeader, FileHeader, Part, ScopeHeader, ToolHeader, Truncated};
use rpc_core::Str;
use serde_json::{Map, Value};

use super::command::News;
use super::toolbox::{
    CHECKLIST, FILE_CREATE, FILE_EDIT, FILE_FIND, FILE_READ, FILE_SEARCH, SHELL_RUN,
};
use super::workspace::{Change, Excerpt, Found, Match, Query};
use crate::text::shortened;

/// Most lines of a search to show.
const MAX_LINES: usize = 50;
/// Most lines of a change to show once it is made, and the longest of them in characters.
const MAX_CHANGE: usize = 500;
const MAX_LINE: usize = 2_000;

/// The name of the whole workspace in known clients, which do not show it.
const WHOLE_WORKSPACE: &str = "workspace";

const fn label(name: &'static str) -> Str {
    Str::from_static(name)
}

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

fn left_out(number: usize, unit: &'static str) -> Option<Part> {
    (number > 0).then(|| {
        Part::Truncated(Truncated {
            count: Some(count(number)),
            unit: Some(unit.into()),
        })
    })
}

/// Returns the header of a call that fails before it shows anything: known clients show no call
/// without a header. Calls of unknown tools have none.
pub(super) fn header(tool: &str, arguments: &Map<String, Value>) -> Option<Part> {
    let (key, about) = match tool {
        FILE_READ => ("tool.label.file_read", "path"),
        FILE_SEARCH => ("tool.label.file_search", "query"),
        FILE_FIND => ("tool.label.file_find", "glob"),
        FILE_EDIT => ("tool.label.file_edit", "path"),
        FILE_CREATE => ("tool.label.file_create", "path"),
        SHELL_RUN => ("tool.label.shell_run", "command"),
        // Clients show a label that they do not know as it is.
        CHECKLIST => (CHECKLIST, "title"),
        _ => return None,
    };
    let about = arguments.get(about).and_then(Value::as_str);
    Some(match about.map(str::to_owned) {
        Some(path) if tool == FILE_READ => file(path),
        detail => Part::ToolHeader(ToolHeader {
            label_key: label(key),
            detail: detail.map(Into::into),
            state: None,
        }),
    })
}

fn file(path: String) -> Part {
    Part::FileHeader(FileHeader {
        label_key: label("tool.label.file_read"),
        count: 1,
        targets: vec![path.into()],
    })
}

pub(super) fn read(excerpt: &Excerpt) -> Vec<Part> {
    vec![file(excerpt.path.clone())]
}

fn scope(key: &'static str, query: &Query, pattern: &str, matches: usize) -> Part {
    let scope = query.folder.as_deref().unwrap_or(WHOLE_WORKSPACE);
    Part::ScopeHeader(ScopeHeader {
        label_key: label(key),
        scope: scope.to_owned().into(),
        patterns: vec![pattern.to_owned().into()],
        matches: count(matches),
    })
}

fn lines(lines: impl ExactSizeIterator<Item = String>, unit: &'static str) -> Vec<Part> {
    let more = left_out(lines.len().saturating_sub(MAX_LINES), unit);
    let lines = lines.take(MAX_LINES).map(Part::text);
    lines.chain(more).collect()
}

pub(super) fn search(query: &Query, found: &Found<Match>) -> Vec<Part> {
    let items = found.items.iter();
    let header = scope("tool.label.file_search", query, &query.text, items.len());
    let mut parts = vec![header];
    parts.extend(lines(items.map(match_line), "matches"));
    parts.extend(found.remarks().into_iter().map(Part::text));
    parts
}

/// Formats a found line with its position.
pub(super) fn match_line(found: &Match) -> String {
    format!("{}:{}: {}", found.path, found.line, found.text)
}

pub(super) fn files(query: &Query, found: &Found<String>) -> Vec<Part> {
    let pattern = query.glob.as_deref().unwrap_or("*");
    let header = scope("tool.label.file_find", query, pattern, found.items.len());
    let mut parts = vec![header];
    parts.extend(lines(found.items.iter().cloned(), "files"));
    parts.extend(found.remarks().into_iter().map(Part::text));
    parts
}

pub(super) fn change(change: &Change) -> Vec<Part> {
    let diff = &change.diff;
    let key = match change.is_new() {
        true => "tool.label.file_create",
        false => "tool.label.file_edit",
    };
    let header = Part::EditHeader(EditHeader {
        label_key: label(key),
        path: change.path.clone().into(),
        added: count(diff.added),
        removed: count(diff.removed),
        // Servers of the specification's time have it, and others ignore it.
        files: Some(1),
    });
    let lines = diff.lines.iter().take(MAX_CHANGE).map(|line| {
        let mut line = line.clone();
        line.text = shortened(&line.text, MAX_LINE).into_owned().into();
        Part::Diff(line)
    });
    let more = left_out(diff.lines.len().saturating_sub(MAX_CHANGE), "lines");
    std::iter::once(header).chain(lines).chain(more).collect()
}

/// Shows a command before it runs.
pub(super) fn command(line: &str) -> Part {
    Part::ToolHeader(ToolHeader {
        label_key: label("tool.label.shell_run"),
        detail: Some(line.to_owned().into()),
        state: None,
    })
}

pub(super) fn output(output: &News) -> Vec<Part> {
    let first = output.first.iter().cloned();
    let mut parts: Vec<_> = first.map(Part::ShellOutput).collect();
    parts.extend(left_out(output.left_out, "lines"));
    parts.extend(output.last.iter().cloned().map(Part::ShellOutput));
    parts
}
