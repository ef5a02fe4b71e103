//! [`Tail`]: the end of a text that is no word of the answer: calls that a model has written as text, or an end mark.

use std::sync::LazyLock;

use regex::{Match, Regex};
use serde_json::{Deserializer, Map, Value};

use super::CallPiece;
use super::answer::filled;
use super::refusal::finds;

/// With what models begin calls that the server does not read, in the marks of any template; or, at the end of a text,
/// what may become a mark.
static MARK: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let calls = r"[<\[][|｜]?(?:tool[_▁]?calls?[\w▁]*|function=[^<>\s]+|python_tag)[|｜]?[>\]]";
    let begun = r"[<\[][|｜/]?[\w▁=.:-]*[|｜]?[>\]]?\s*$";
    Regex::new(&format!("(?i){calls}|{begun}")).ok()
});
/// With what a text begins that may be a call without marks: the rest of it decides.
static BARE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"^\s*\[?\s*\{\s*(?:"(?:type"\s*:\s*"function"\s*,|function"\s*:\s*\{)\s*)*"name"\s*:\s*"([^"]+)""#).ok()
});
/// How many bytes of a text show whether it begins so.
const BEGINNING: usize = 128;
/// What ends an answer and is no part of it.
const END: &str = r"^(?:<[|｜][\w▁]+[|｜]>|</s>|<end_of_\w+>)\s*$";
/// A call with its parameters in marks, one of them, and the name before arguments in JSON.
const CALL: &str =
    r"(?s)(?:<function=|<tool_call>\s*)([\w.:-]+)\s*>?(.*?)(?:</function>|</tool_call>|$)";
const PARAMETER: &str = concat!(
    r"(?s)<(?:parameter=|arg_key>)([^<>]+)(?:>|</arg_key>\s*<arg_value>)",
    r"\n?(.*?)\n?</(?:parameter|arg_value)>",
);
const NAME: &str = r"([A-Za-z_][\w.-]*)(?:\[ARGS\]|<[^<>]*>|```(?:json)?|\s)*$";

/// A filter for the end of a text, wherever its pieces are cut. What is within quotes or code is text.
#[derive(Clone, Debug, Default)]
pub(super) struct Tail {
    held: String,
    /// How many backticks the text has before it, and its last character.
    ticks: usize,
    last: Option<char>,
    /// The tools that a text may call without marks, if it is nothing else.
    pub(super) tools: Vec<String>,
}

impl Tail {
    /// Creates a filter for a model that is offered these tools.
    pub(super) fn new(tools: Vec<String>) -> Self {
        Self {
            tools,
            ..Self::default()
        }
    }

    /// Takes more text, and returns what is certain of it.
    pub(super) fn push(&mut self, text: &str) -> String {
        self.held.push_str(text);
        let held = &self.held;
        if self.may_be_bare() {
            return String::new();
        }
        let is_mark = |mark: &Match<'_>| {
            let before = held.get(..mark.start()).unwrap_or_default();
            let ticks = self.ticks + before.matches('`').count();
            let last = before.chars().next_back().or(self.last);
            let is_quoted = ticks % 2 == 1 || matches!(last, Some('"' | '\'' | '(' | '“'));
            mark.end() == held.len() || !is_quoted
        };
        let mark = MARK
            .as_ref()
            .and_then(|it| it.find_iter(held).find(is_mark));
        let end = mark.map_or(held.len(), |mark| mark.start());
        let ready: String = self.held.drain(..end).collect();
        self.ticks += ready.matches('`').count();
        self.last = ready.chars().next_back().or(self.last);
        ready
    }

    /// Returns whether the whole text so far may be the beginning of calls without marks.
    fn may_be_bare(&self) -> bool {
        let begins = || match BARE.as_ref()?.captures(&self.held) {
            None => Some(self.held.len() < BEGINNING),
            Some(begun) => Some(self.tools.iter().any(|tool| *tool == begun[1])),
        };
        let first = self.held.trim_start().chars().next();
        let is_json = first.is_none_or(|first| "{[".contains(first));
        is_json && self.last.is_none() && !self.tools.is_empty() && begins().unwrap_or_default()
    }

    /// Returns whether the whole text is calls of tools that are offered.
    fn is_bare(&self, calls: &[CallPiece]) -> bool {
        let whole: Option<Value> = serde_json::from_str(&self.held).ok();
        let count = whole.map_or(0, |it| it.as_array().map_or(1, Vec::len));
        let is_offered =
            |it: &CallPiece| it.name.as_ref().is_some_and(|it| self.tools.contains(it));
        let is_call = |it: &CallPiece| is_offered(it) && it.arguments.starts_with('{');
        count == calls.len() && calls.iter().all(is_call)
    }

    /// Ends the text. Returns what is left of it, or the calls that it is.
    pub(super) fn end(&mut self) -> (String, Vec<CallPiece>) {
        let mut calls = calls(&self.held).unwrap_or_default();
        if self.may_be_bare() && !self.is_bare(&calls) {
            calls.clear();
        }
        let held = std::mem::take(&mut self.held);
        match calls.is_empty() && !finds(END, &held) {
            true => (held, calls),
            false => (String::new(), calls),
        }
    }
}

/// Returns the calls that a text consists of, if it is whole.
fn calls(text: &str) -> Option<Vec<CallPiece>> {
    let [marked, parameter, name] = [CALL, PARAMETER, NAME].map(|it| Regex::new(it).ok());
    let (parameter, name_before) = (parameter?, name?);
    let call = |name: &str, arguments: String| CallPiece {
        name: Some(name.to_owned()),
        arguments,
        ..CallPiece::default()
    };
    let marked = marked?;
    let marked = marked.captures_iter(text).filter_map(|marked| {
        let parameters = parameter.captures_iter(marked.get(2)?.as_str()).map(|it| {
            // Tools take the text of a number.
            let value = serde_json::from_str(&it[2]).ok();
            let value = value.filter(|it: &Value| it.is_object() || it.is_array());
            (
                it[1].trim().to_owned(),
                value.unwrap_or_else(|| it[2].into()),
            )
        });
        let parameters: Map<String, Value> = parameters.collect();
        let is_call = !parameters.is_empty() || marked[0].starts_with("<f");
        is_call.then(|| call(&marked[1], Value::from(parameters).to_string()))
    });
    let mut calls: Vec<_> = marked.collect();
    let mut rest = if calls.is_empty() { text } else { "" };
    while let Some((before, object)) = rest.find('{').and_then(|at| rest.split_at_checked(at)) {
        let mut values = Deserializer::from_str(object).into_iter::<Value>();
        let value = values.next()?.ok()?;
        rest = object.get(values.byte_offset()..)?;
        let function = value.get("function").filter(|it| it.is_object());
        let function = function.unwrap_or(&value);
        if let Some(name) = filled(&function["name"]) {
            let mut names = ["arguments", "parameters", "args"].into_iter();
            let arguments = names.find_map(|it| filled(&function[it]));
            calls.push(call(&name, arguments.unwrap_or_default()));
        } else if let Some(before) = name_before.captures(before) {
            calls.push(call(&before[1], value.to_string()));
        }
    }
    Some(calls)
}
