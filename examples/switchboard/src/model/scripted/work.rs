//! Requests for the tools of an agent: sums, files, and the user.

use serde_json::json;

/// The mark of a host's note about files that came with a prompt.
const REMINDER: &str = "<system-reminder>";

/// Returns the tool that the text asks for, with its arguments.
pub(super) fn wanted(text: &str) -> Option<(&'static str, String)> {
    let (text, reminder) = text.split_at(text.find(REMINDER).unwrap_or(text.len()));
    let text = text.trim().trim_end_matches(['.', '?', '!']);
    let (order, rest) = text.split_once(char::is_whitespace)?;
    let rest = rest.trim();
    let (tool, arguments) = match order.to_lowercase().as_str() {
        "calculate" | "compute" => ("calculate", json!({ "expression": rest })),
        "what" | "how" => ("calculate", json!({ "expression": sum(rest)? })),
        "list" if rest.contains("files") => ("list_files", json!({})),
        "read" => ("read_file", json!({ "path": file(rest, reminder)? })),
        "write" | "save" => {
            let (text, path) = rest.rsplit_once(" to ")?;
            (
                "write_file",
                json!({ "path": path.trim(), "text": text.trim() }),
            )
        }
        "ask" => ("ask_user", question(rest.strip_prefix("me ")?)),
        _ => return None,
    };
    Some((tool, arguments.to_string()))
}

/// Returns the text after `is` in `what is 2 + 3` or `how much is 2 + 3`.
fn sum(rest: &str) -> Option<&str> {
    let (_, sum) = rest.rsplit_once("is ")?;
    let looks_like_one = |c: char| c.is_ascii_digit() || "+-*/%^(). ".contains(c);
    sum.chars().all(looks_like_one).then(|| sum.trim())
}

/// Returns the named file, or the first one that came with the prompt.
fn file<'t>(rest: &'t str, reminder: &'t str) -> Option<&'t str> {
    let named = rest.split_whitespace().next_back();
    let named = named.filter(|name| name.contains(['.', '/']));
    named.or_else(|| reminder.lines().find_map(|line| line.strip_prefix("- ")))
}

/// `which colour (red, green)`: a question with options, or without.
fn question(rest: &str) -> serde_json::Value {
    let (question, options) = rest.split_once('(').unwrap_or((rest, ""));
    let options = options.trim_end_matches(')').split(',').map(str::trim);
    let options: Vec<_> = options.filter(|option| !option.is_empty()).collect();
    let mut question = question.trim().to_owned() + "?";
    if let Some(first) = question.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    json!({ "question": question, "options": options })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_files_and_questions_are_understood() {
        let with_file =
            "Read the file.\n\n<system-reminder>The user uploaded:\n- /a/1_b.txt\nUse read";
        for (text, tool, arguments) in [
            (
                "calculate 2 + 3",
                "calculate",
                json!({ "expression": "2 + 3" }),
            ),
            (
                "What is 2 * (3 + 4)?",
                "calculate",
                json!({ "expression": "2 * (3 + 4)" }),
            ),
            (
                "how much is 1/3?",
                "calculate",
                json!({ "expression": "1/3" }),
            ),
            ("List your files.", "list_files", json!({})),
            (
                "read notes/a.txt",
                "read_file",
                json!({ "path": "notes/a.txt" }),
            ),
            (with_file, "read_file", json!({ "path": "/a/1_b.txt" })),
            (
                "write buy milk to notes.txt",
                "write_file",
                json!({ "path": "notes.txt", "text": "buy milk" }),
            ),
            (
                "ask me which colour I like (red, green)",
                "ask_user",
                json!({ "question": "Which colour I like?", "options": ["red", "green"] }),
            ),
            (
                "Ask me my name",
                "ask_user",
                json!({ "question": "My name?", "options": [] }),
            ),
        ] {
            assert_eq!(wanted(text), Some((tool, arguments.to_string())), "{text}");
        }
        for text in [
            "",
            "hello",
            "what is my name?",
            "what is this",
            "read this",
            "write it",
            "ask",
        ] {
            assert_eq!(wanted(text), None, "{text}");
        }
    }
}
