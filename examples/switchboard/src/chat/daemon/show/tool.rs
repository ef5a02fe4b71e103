//! What tools do, in words.

use acolyte_proto::event::{FileHeader, Part, ToolHeader, ToolResult, Truncated};

use crate::daemon::Code;

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
