//! [`wanted`]: the tools that a text asks for.

use serde_json::{Value, json};

use super::split_word;

/// The mark of a host's note about files that came with a prompt.
const REMINDER: &str = "<system-reminder>";

/// Returns the calls that a text asks for, of the tools that are offered.
pub(super) fn wanted(text: &str, offered: &dyn Fn(&str) -> bool) -> Vec<(String, String)> {
    let (text, reminder) = text.split_at(text.find(REMINDER).unwrap_or(text.len()));
    let is_coder = offered("file-read");
    let text = text
        .split_once(": ")
        .filter(|_| !is_coder)
        .map_or(text, |(_, text)| text);
    let mut calls: Vec<_> = order(text.trim(), reminder).unwrap_or_default();
    calls.retain(|(tool, _)| offered(tool));
    calls.truncate(1);
    let has = |known: &[&str]| words(text).any(|word| known.contains(&&*word));
    if calls.is_empty() && has(&["search", "find", "said", "say"]) {
        calls.push(("search", json!({ "query": query(text) })));
    }
    if calls.is_empty() && has(&["time", "clock", "late", "hour"]) {
        let clock = if offered("time") { "time" } else { "clock" };
        calls.push((clock, json!({})));
    }
    if calls.iter().all(|(_, arguments)| *arguments == json!({})) && has(&["dice", "roll", "throw"])
    {
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
        let is_dice = |(count, sides): (&str, &str)| digits(count) && digits(sides);
        let dice = words(text).find(|word| word.split_once('d').is_some_and(is_dice));
        let dice = dice.unwrap_or_else(|| "1d6".to_owned());
        calls.push(("dice", json!({ "dice": dice })));
    }
    let calls = calls.into_iter().filter(|(tool, _)| offered(tool));
    calls
        .map(|(tool, arguments)| (tool.to_owned(), arguments.to_string()))
        .collect()
}

/// Returns the calls that may be meant by a text that begins with an order.
pub(super) fn order(text: &str, reminder: &str) -> Option<Vec<(&'static str, Value)>> {
    let (order, rest) = split_word(text);
    let words = rest.trim_end_matches(['.', '?', '!']);
    let one = |tool, arguments| Some(vec![(tool, arguments)]);
    match &*order.to_lowercase() {
        "read" => {
            let named = words
                .split(' ')
                .next_back()
                .filter(|it| it.contains(['.', '/']));
            let sent = || reminder.lines().find_map(|line| line.strip_prefix("- "));
            let mut calls = vec![("file-read", json!({ "path": rest }))];
            calls.extend(
                named
                    .or_else(sent)
                    .map(|path| ("read_file", json!({ "path": path }))),
            );
            Some(calls)
        }
        "search" => one("file-search", json!({ "query": rest })),
        "list" if rest.contains("files") => {
            Some(vec![("file-find", json!({})), ("list_files", json!({}))])
        }
        "edit" => {
            let (path, change) = rest.split_once(": ")?;
            let (find, put) = change.split_once(" -> ")?;
            one(
                "file-edit",
                json!({ "path": path, "find": find, "replace": put }),
            )
        }
        "create" => {
            let (path, text) = rest.split_once(": ")?;
            one(
                "file-create",
                json!({ "path": path, "content": format!("{text}\n") }),
            )
        }
        "run" => one("shell-run", json!({ "command": rest })),
        "calculate" => one("calculate", json!({ "expression": words })),
        // What is 2 + 3; how much is 2 + 3.
        "what" | "how" => {
            let (_, sum) = words.rsplit_once("is ")?;
            let is_sum = sum
                .chars()
                .all(|c| c.is_ascii_digit() || "+-*/%^(). ".contains(c));
            is_sum.then(|| vec![("calculate", json!({ "expression": sum }))])
        }
        "write" => {
            let (text, path) = words.rsplit_once(" to ")?;
            one("write_file", json!({ "path": path, "text": text }))
        }
        // Ask me which colour (red, green).
        "ask" => {
            let question = words.strip_prefix("me ")?;
            let (question, options) = question.split_once('(').unwrap_or((question, ""));
            let options = options.trim_end_matches(')').split(", ");
            let options: Vec<_> = options.filter(|it| !it.is_empty()).collect();
            let mut question = question.trim().to_owned() + "?";
            question.get_mut(..1)?.make_ascii_uppercase();
            one(
                "ask_user",
                json!({ "question": question, "options": options }),
            )
        }
        "echo" => one("echo", json!({ "message": rest })),
        _ => None,
    }
}

/// Returns the lower-case words.
pub(super) fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words.map(str::to_lowercase)
}

/// Returns the text to search for: what follows the last of some words.
fn query(text: &str) -> String {
    let words: Vec<_> = text.split_whitespace().collect();
    let key = |word: &&str| ["search", "find", "for", "about"].contains(word);
    let after = words.iter().rposition(key).map_or(0, |at| at + 1);
    let rest = words.get(after..).unwrap_or_default().join(" ");
    rest.trim_matches(|c: char| c.is_ascii_punctuation())
        .to_owned()
}
