//! What tools do, in words.

use acolyte_proto::event::{
    Diff, DiffMarker, FileHeader, Part, ShellOutput, ToolCall, ToolHeader, ToolResult, Truncated,
};
use serde_json::{Map, Value};
use switchboard::daemon::Code;
use switchboard::screen::{Colour, printable};

use super::Show;

/// So much of what a tool gets is shown, in characters.
const WIDTH: usize = 100;
/// The arguments that say most about a call, in this order.
const TELLING: [&str; 7] = [
    "path", "command", "query", "pattern", "glob", "url", "title",
];

/// What of a call's arguments says most.
pub(super) fn telling(call: &ToolCall) -> String {
    let arguments: Map<String, Value> = serde_json::from_str(call.args.get()).unwrap_or_default();
    let told = TELLING
        .iter()
        .find_map(|name| arguments.get(*name)?.as_str());
    match told {
        Some(told) => told.to_owned(),
        None if arguments.is_empty() => String::new(),
        None => call.args.get().to_owned(),
    }
}

/// A call on one line: the tool, and what of its arguments says most.
pub(super) fn call(call: &ToolCall) -> String {
    let line = format!("  {} {}", printable(&call.name), short(&telling(call)));
    line.trim_end().to_owned()
}

/// Why a tool has failed, if it has. Codes that this program does not know stay what they are.
pub(super) fn failure(result: &ToolResult) -> Option<&str> {
    let why = match result.code.as_deref() {
        Some(code) => Code::of(code).map_or(code, |known| known.words()),
        None => Code::Other.words(),
    };
    result.is_error().then_some(why)
}

/// What a piece of a tool's output says, unless it is a change of a file or what a program writes.
pub(super) fn remark(part: &Part) -> Option<String> {
    Some(match part {
        Part::ToolHeader(ToolHeader {
            state: Some(state), ..
        }) => state.to_string(),
        Part::Text(text) => text.to_string(),
        Part::FileHeader(FileHeader { count, targets, .. }) if *count > 1 => {
            format!("{count} files: {}", targets.join(", "))
        }
        Part::ScopeHeader(search) => {
            let found = if search.matches == 1 {
                "match"
            } else {
                "matches"
            };
            format!("{} {found} in {}", search.matches, search.scope)
        }
        Part::Truncated(Truncated { count, unit }) => {
            let unit = unit.as_deref().unwrap_or("lines");
            let count = count.map_or(String::new(), |count| format!("{count} "));
            format!("({count}{unit} left out)")
        }
        _ => return None,
    })
}

impl Show {
    /// A piece of a tool's output.
    pub(super) fn part(&self, part: &Part) -> Option<String> {
        Some(match part {
            Part::EditHeader(edit) => {
                let path = printable(&edit.path);
                let line = format!("    {path} +{} -{}", edit.added, edit.removed);
                self.paint(Colour::Bold, &line)
            }
            Part::Diff(Diff {
                marker,
                line_number,
                text,
            }) => {
                let (mark, colour) = match marker {
                    DiffMarker::Add => ('+', Some(Colour::Green)),
                    DiffMarker::Remove => ('-', Some(Colour::Red)),
                    DiffMarker::Context => (' ', None),
                };
                let line = format!("    {line_number:>4} {mark} {}", printable(text));
                colour.map_or(line.clone(), |colour| self.paint(colour, &line))
            }
            Part::ShellOutput(ShellOutput { text, .. }) => format!("    | {}", printable(text)),
            other => self.note(&format!("    {}", printable(&remark(other)?))),
        })
    }
}

/// The beginning of a text, on one line.
fn short(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = printable(line);
    match line.char_indices().nth(WIDTH) {
        None => line.into_owned(),
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
    }
}
