//! [`Tail`]: the end of a text that is no word of the answer: calls that a model has written as text, or an end mark.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Deserializer, Map, Value};

use super::CallPiece;
use super::answer::{filled, text_of};

type Pattern = LazyLock<Option<Regex>>;

/// With what models begin calls when the server does not read them, in the marks of any template.
static CALLS: Pattern = LazyLock::new(|| {
    Regex::new(r"(?i)[<\[][|｜]?(?:tool[_▁]?calls?[\w▁]*|function=[^<>\s]+|python_tag)[|｜]?[>\]]")
        .ok()
});
/// What ends an answer and is no part of it.
static END: Pattern =
    LazyLock::new(|| Regex::new(r"^(?:<[|｜][\w▁]+[|｜]>|</s>|<end_of_\w+>)\s*$").ok());
/// What may become either.
static BEGUN: Pattern =
    LazyLock::new(|| Regex::new(r"[<\[](?:[|｜/]|[\w▁])[\w▁=.:-]*[|｜]?[>\]]?\s*$|[<\[]$").ok());
/// A call with parameters in marks.
static MARKED: Pattern = LazyLock::new(|| {
    Regex::new(
        r"(?s)(?:<function=|<tool_call>\s*)([\w.:-]+)\s*>?(.*?)(?:</function>|</tool_call>|$)",
    )
    .ok()
});
static PARAMETER: Pattern = LazyLock::new(|| {
    let value = r"\n?(.*?)\n?</(?:parameter|arg_value)>";
    let name = r"(?s)<(?:parameter=|arg_key>)([^<>]+)(?:>|</arg_key>\s*<arg_value>)";
    Regex::new(&format!("{name}{value}")).ok()
});
/// The name before the arguments.
static NAME: Pattern =
    LazyLock::new(|| Regex::new(r"([A-Za-z_][\w.-]*)(?:\[ARGS\]|<[^<>]*>|```(?:json)?|\s)*$").ok());

/// A filter for the end of a text, wherever its pieces are cut. What is within quotes or code is text.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail {
    held: String,
    /// How many backticks the text has before it, and its last character.
    ticks: usize,
    last: Option<char>,
}

impl Tail {
    /// Takes more text, and returns what is certain of it.
    pub(super) fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        let from = |pattern: &Pattern| Some(pattern.as_ref()?.find(&self.held)?.start());
        let from = from(&CALLS)
            .filter(|at| !self.is_quoted(*at))
            .or_else(|| from(&BEGUN));
        let ready: String = self.held.drain(..from.unwrap_or(self.held.len())).collect();
        self.ticks += ready.matches('`').count();
        self.last = ready.chars().next_back().or(self.last);
        ready
    }

    fn is_quoted(&self, at: usize) -> bool {
        let before = self.held.get(..at).unwrap_or_default();
        let last = before.chars().next_back().or(self.last);
        let ticks = self.ticks + before.matches('`').count();
        ticks % 2 == 1 || matches!(last, Some('"' | '\'' | '(' | '“'))
    }

    /// Forgets what is held.
    pub(super) fn clear(&mut self) {
        self.held.clear();
    }

    /// Ends the text. Returns what is left of it, or the calls that it is.
    pub(super) fn end(&mut self) -> Result<String, Vec<CallPiece>> {
        let held = std::mem::take(&mut self.held);
        let is = |pattern: &Pattern| {
            let found = pattern.as_ref().and_then(|it| it.find(&held));
            found.is_some_and(|found| found.start() == 0)
        };
        let calls = if is(&CALLS) { calls(&held) } else { Vec::new() };
        match calls.is_empty() {
            true if is(&END) => Ok(String::new()),
            true => Ok(held),
            false => Err(calls),
        }
    }
}

fn calls(text: &str) -> Vec<CallPiece> {
    let call = |name: &str, arguments: String| CallPiece {
        name: Some(name.to_owned()),
        arguments,
        ..CallPiece::default()
    };
    let captures = |pattern: &'static Pattern, text| {
        let all = pattern.as_ref().map(|it| it.captures_iter(text));
        all.into_iter().flatten()
    };
    let mut found = Vec::new();
    for marked in captures(&MARKED, text) {
        let parameters = captures(&PARAMETER, marked.get(2).map_or("", |it| it.as_str()));
        let parameters = parameters.map(|it| {
            // Tools take the text of a number.
            let value = serde_json::from_str(&it[2]).ok();
            let value = value.filter(|it: &Value| it.is_object() || it.is_array());
            (
                it[1].trim().to_owned(),
                value.unwrap_or_else(|| it[2].into()),
            )
        });
        let parameters: Map<String, Value> = parameters.collect();
        if !parameters.is_empty() || text.contains("<function=") {
            found.push(call(&marked[1], Value::from(parameters).to_string()));
        }
    }
    let mut rest = text;
    while found.is_empty() || rest.len() < text.len() {
        let Some((before, object)) = rest.find('{').and_then(|at| rest.split_at_checked(at)) else {
            break;
        };
        let mut values = Deserializer::from_str(object).into_iter::<Value>();
        let Some(Ok(value)) = values.next() else {
            break;
        };
        rest = object.get(values.byte_offset()..).unwrap_or_default();
        let function = if value["function"].is_object() {
            &value["function"]
        } else {
            &value
        };
        let arguments = ["arguments", "parameters", "args"].map(|it| text_of(&function[it]));
        let arguments = arguments.into_iter().find(|it| !it.is_empty());
        let before = NAME.as_ref().and_then(|it| it.captures(before));
        match (filled(&function["name"]), before) {
            (Some(name), _) => found.push(call(&name, arguments.unwrap_or_default())),
            (None, Some(before)) => found.push(call(&before[1], value.to_string())),
            _ => {}
        }
    }
    found
}
