//! Rules that break a peer: what the tests put between a check and our own programs.
//!
//! A rule is `DIRECTION [on N] [first] WHAT ACTION`. The direction is `c2s` or `s2c`. What it applies to is a
//! [pattern](crate::pattern), `/REGEX/` for a text of any kind, `binary`, `ping`, `pong`, `close [CODE]`, `start` (of
//! a connection, before anything has come), `path PATH`, `header NAME`, `status CODE[PATH]`, `exit CODE`, `output`, or
//! `connection N`; in place of a code or N may stand how the script has ended a connection: `cut`, or the code of
//! its Close. With `on`, a rule applies
//! to one connection only, and with `first`, a pattern applies to the first frame of the connection only.
//!
//! Actions: `drop`, `duplicate`, `swap` (with the next one), `set POINTER JSON`, `remove POINTER`,
//! `replace TEXT`, `before TEXT`, `after TEXT`, `reply TEXT` (in its place, to the sender), `answer` (a ping, in place of the peer), `close CODE`
//! (in its place), `then-close CODE`, `as VALUE`.
//!
//! A rule behind `watch` changes nothing, and is only noticed where it applies: a row in which a rule does not
//! apply takes the same course with it as without it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use regex::Regex;
use rpc_core::testing::Side;
use serde_json::Value;

use super::{Frame, Variables};
use crate::pattern::Pattern as Shape;

#[derive(Debug)]
enum What {
    Pattern(Shape),
    Regex(Regex),
    Word(&'static str, String),
}

#[derive(Debug)]
enum Action {
    Drop,
    Duplicate,
    Swap,
    Set(String, Value),
    Remove(String),
    Replace(String),
    Before(String),
    After(String),
    Reply(String),
    Pong,
    Close(u16),
    ThenClose(u16),
    As(String),
}

#[derive(Debug)]
struct Rule {
    direction: Side,
    /// The connection, if it applies to one of them only.
    on: Option<u8>,
    first: bool,
    what: What,
    action: Action,
    /// The rule as it was written, if it is only watched.
    watched: Option<String>,
    applies: AtomicBool,
}

/// The rules for one run of a row. Without rules, everything passes.
#[derive(Debug, Default)]
pub(super) struct Rules {
    rules: Vec<Rule>,
    connections: Mutex<HashMap<u8, Passing>>,
}

/// What becomes of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Passed {
    /// It goes on.
    On(Frame),
    /// This goes back to the sender.
    Back(Frame),
    /// The connection is closed with this code.
    Closed(u16),
}

/// What the rules remember of a connection.
#[derive(Debug, Default)]
struct Passing {
    seen: [usize; 2],
    held: [Option<Frame>; 2],
}

const WORDS: [&str; 11] = [
    "binary",
    "ping",
    "pong",
    "close",
    "start",
    "path",
    "header",
    "status",
    "exit",
    "output",
    "connection",
];
/// Those of them with a word behind.
const NAMED: [&str; 5] = ["path", "header", "status", "exit", "connection"];

impl Rules {
    /// Reads rules, one a line.
    ///
    /// # Errors
    /// The line that is not a rule, and why.
    pub(super) fn read(text: &str, variables: &Variables) -> Result<Self, String> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let rules = lines.map(|line| match line.strip_prefix("watch ") {
            // What names a variable that is not set can apply to nothing.
            Some(line) => rule(line, variables).ok().map(|rule| {
                let watched = Some(line.to_owned());
                Ok(Rule { watched, ..rule })
            }),
            None => Some(rule(line, variables).map_err(|why| format!("{line}: {why}"))),
        });
        let rules = rules.flatten().collect::<Result<_, _>>()?;
        let connections = Mutex::default();
        Ok(Self { rules, connections })
    }

    fn rules<'a>(
        &'a self,
        direction: Side,
        word: &str,
        of: &str,
    ) -> impl Iterator<Item = &'a Rule> {
        self.rules.iter().filter(move |rule| {
            let named = matches!(&rule.what, What::Word(known, name)
                if *known == word && (name.is_empty() || name.eq_ignore_ascii_case(of)));
            rule.direction == direction && named && rule.is_active()
        })
    }

    /// Returns the watched rules that have applied to something.
    pub(super) fn noticed(&self) -> Vec<String> {
        let applied = self
            .rules
            .iter()
            .filter(|rule| rule.applies.load(Ordering::Relaxed));
        applied.filter_map(|rule| rule.watched.clone()).collect()
    }

    /// Passes a frame of this direction.
    pub(super) fn pass(&self, connection: u8, direction: Side, frame: Frame) -> Vec<Passed> {
        let mut connections = self.connections.lock().unwrap();
        let state = connections.entry(connection).or_default();
        let slot = usize::from(direction == Side::Server);
        let is_data = matches!(frame, Frame::Text(_) | Frame::Binary(_));
        let nth = state.seen.get(slot).copied().unwrap_or_default();
        if let Some(seen) = state.seen.get_mut(slot).filter(|_| is_data) {
            *seen += 1;
        }
        let held = state.held.get_mut(slot).and_then(Option::take);
        let rule = self.rules.iter().find(|rule| {
            rule.direction == direction
                && rule.on.is_none_or(|number| number == connection)
                && (nth == 0 || !rule.first)
                && rule.what.is(&frame)
                && rule.is_active()
        });
        let mut out = Vec::new();
        match rule.map(|rule| &rule.action) {
            None => out.push(Passed::On(frame)),
            Some(Action::Swap) if held.is_none() => {
                if let Some(held) = state.held.get_mut(slot) {
                    *held = Some(frame);
                }
            }
            Some(action) => apply(action, frame, &mut out),
        }
        match held {
            // What waited for the next frame comes before the end.
            Some(held) if !is_data => out.insert(0, Passed::On(held)),
            held => out.extend(held.map(Passed::On)),
        }
        out
    }

    /// Returns what comes at the start of a connection.
    pub(super) fn begin(&self, connection: u8, direction: Side) -> Option<String> {
        self.connections.lock().unwrap().remove(&connection);
        self.word(direction, "start", "").map(str::to_owned)
    }

    /// Returns what stands in the place of something that has a name, or its name.
    pub(super) fn instead<'a>(&'a self, direction: Side, word: &str, of: &'a str) -> &'a str {
        self.word(direction, word, of).unwrap_or(of)
    }

    /// Returns whether a header or a connection is dropped.
    pub(super) fn drops(&self, direction: Side, word: &str, of: &str) -> bool {
        self.rules(direction, word, of)
            .any(|rule| matches!(rule.action, Action::Drop))
    }

    /// Returns what stands in the place of something that has a name, if anything does.
    pub(super) fn word<'a>(&'a self, direction: Side, word: &str, of: &str) -> Option<&'a str> {
        self.rules(direction, word, of)
            .find_map(|rule| match &rule.action {
                Action::As(text) => Some(text.as_str()),
                _ => None,
            })
    }
}

impl Rule {
    /// Returns whether a rule that applies changes something, or notices that it would.
    fn is_active(&self) -> bool {
        self.applies.store(true, Ordering::Relaxed);
        self.watched.is_none()
    }
}

impl What {
    fn is(&self, frame: &Frame) -> bool {
        match (self, frame) {
            (Self::Pattern(pattern), Frame::Text(text)) => pattern.matches(text).is_ok(),
            (Self::Regex(regex), Frame::Text(text)) => regex.is_match(text),
            (Self::Word("binary", _), Frame::Binary(_))
            | (Self::Word("ping", _), Frame::Ping(_))
            | (Self::Word("pong", _), Frame::Pong(_)) => true,
            (Self::Word("close", code), Frame::Close(found, _)) => {
                code.is_empty() || *code == found.to_string()
            }
            _ => false,
        }
    }
}

fn apply(action: &Action, frame: Frame, out: &mut Vec<Passed>) {
    let text = |text: &String| Frame::Text(text.clone());
    match action {
        Action::Drop => {}
        Action::Duplicate => out.extend([Passed::On(frame.clone()), Passed::On(frame)]),
        Action::Set(..) | Action::Remove(_) => out.push(Passed::On(edit(action, frame))),
        Action::Replace(other) => out.push(Passed::On(text(other))),
        Action::Before(other) => out.extend([Passed::On(text(other)), Passed::On(frame)]),
        Action::After(other) => out.extend([Passed::On(frame), Passed::On(text(other))]),
        Action::Reply(other) => out.push(Passed::Back(text(other))),
        Action::Pong => {
            if let Frame::Ping(bytes) = &frame {
                out.push(Passed::Back(Frame::Pong(bytes.clone())));
            }
            out.push(Passed::On(frame));
        }
        Action::Close(code) => out.push(Passed::Closed(*code)),
        Action::ThenClose(code) => out.extend([Passed::On(frame), Passed::Closed(*code)]),
        Action::As(code) => out.push(Passed::On(match (frame, code.parse()) {
            (Frame::Close(..), Ok(code)) => Frame::Close(code, String::new()),
            (Frame::Pong(_), _) => Frame::Pong(code.clone().into_bytes()),
            (frame, _) => frame,
        })),
        Action::Swap => out.push(Passed::On(frame)),
    }
}

fn edit(action: &Action, frame: Frame) -> Frame {
    let Frame::Text(text) = frame else {
        return frame;
    };
    let Ok(mut value) = serde_json::from_str::<Value>(&text) else {
        return Frame::Text(text);
    };
    let (Action::Set(pointer, _) | Action::Remove(pointer)) = action else {
        return Frame::Text(text);
    };
    let (parent, name) = pointer.rsplit_once('/').unwrap_or(("", pointer));
    match (value.pointer_mut(parent), action) {
        (Some(Value::Object(members)), Action::Set(_, new)) => {
            members.insert(name.to_owned(), new.clone());
        }
        (Some(Value::Object(members)), _) => {
            members.remove(name);
        }
        (Some(Value::Array(items)), action) => {
            let at = name.parse().unwrap_or(usize::MAX);
            match action {
                Action::Set(_, new) => {
                    if let Some(item) = items.get_mut(at) {
                        *item = new.clone();
                    }
                }
                _ if at < items.len() => drop(items.remove(at)),
                _ => {}
            }
        }
        _ => {}
    }
    Frame::Text(value.to_string())
}

fn rule(line: &str, variables: &Variables) -> Result<Rule, String> {
    let (direction, rest) = line
        .split_once(' ')
        .ok_or("what it applies to is missing")?;
    let direction = match direction {
        "c2s" => Side::Client,
        "s2c" => Side::Server,
        _ => return Err("a rule begins with c2s or s2c".to_owned()),
    };
    let expanded = variables.expand(rest.trim())?;
    let (on, rest) = match expanded
        .strip_prefix("on ")
        .and_then(|rest| rest.split_once(' '))
    {
        Some((number, rest)) => (
            Some(number.parse().map_err(|_| "no such connection")?),
            rest,
        ),
        None => (None, expanded.as_str()),
    };
    let (first, rest) = match rest.strip_prefix("first ") {
        Some(rest) => (true, rest.trim()),
        None => (false, rest),
    };
    let (what, rest) = what(rest)?;
    let (word, argument) = rest.trim().split_once(' ').unwrap_or((rest.trim(), ""));
    let argument = argument.trim();
    let text = || argument.to_owned();
    let code = || {
        argument
            .parse()
            .map_err(|_| format!("{argument} is not a close code"))
    };
    let action = match word {
        "drop" => Action::Drop,
        "duplicate" => Action::Duplicate,
        "swap" => Action::Swap,
        "set" => {
            let (pointer, value) = argument.split_once(' ').ok_or("a value is missing")?;
            let value = serde_json::from_str(value).map_err(|error| error.to_string())?;
            Action::Set(pointer.to_owned(), value)
        }
        "remove" => Action::Remove(text()),
        "replace" => Action::Replace(text()),
        "before" => Action::Before(text()),
        "after" => Action::After(text()),
        "reply" => Action::Reply(text()),
        "answer" => Action::Pong,
        "close" => Action::Close(code()?),
        "then-close" => Action::ThenClose(code()?),
        "as" => Action::As(text()),
        _ => return Err(format!("{word} is not an action")),
    };
    Ok(Rule {
        direction,
        on,
        first,
        what,
        action,
        watched: None,
        applies: AtomicBool::new(false),
    })
}

fn what(rest: &str) -> Result<(What, &str), String> {
    if let Some(behind) = rest.strip_prefix('/') {
        let (regex, behind) = behind
            .split_once("/ ")
            .ok_or("the end of the expression is missing")?;
        let regex = Regex::new(regex).map_err(|error| error.to_string())?;
        return Ok((What::Regex(regex), behind));
    }
    let word = rest.split(' ').next().unwrap_or_default();
    if let Some(word) = WORDS.into_iter().find(|known| *known == word) {
        let behind = rest.strip_prefix(word).unwrap_or_default().trim_start();
        let is_named = NAMED.contains(&word) || behind.starts_with(|c: char| c.is_ascii_digit());
        if !is_named {
            return Ok((What::Word(word, String::new()), behind));
        }
        let (name, behind) = behind.split_once(' ').ok_or("a name is missing")?;
        return Ok((What::Word(word, name.to_owned()), behind));
    }
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    let pattern = values
        .next()
        .ok_or("a pattern is missing")?
        .map_err(|error| error.to_string())?;
    let pattern = Shape::new(&pattern)?;
    let behind = rest.get(values.byte_offset()..).unwrap_or_default();
    Ok((What::Pattern(pattern), behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passed(rules: &str, texts: &[&str]) -> Vec<Passed> {
        let rules = Rules::read(rules, &Variables::default()).unwrap();
        let frames = texts.iter().map(|text| Frame::Text((*text).to_owned()));
        frames
            .flat_map(|frame| rules.pass(1, Side::Server, frame))
            .collect()
    }

    fn on(text: &str) -> Passed {
        Passed::On(Frame::Text(text.to_owned()))
    }

    #[test]
    fn a_rule_changes_what_it_names_and_nothing_else() {
        let (a, b) = (r#"{"a":1}"#, r#"{"b":2}"#);
        for (rule, result) in [
            (r#"s2c {"a":1} drop"#, vec![on(b)]),
            (r#"c2s {"a":1} drop"#, vec![on(a), on(b)]),
            (r#"s2c {"a":1} duplicate"#, vec![on(a), on(a), on(b)]),
            (r#"s2c {"a":1} swap"#, vec![on(b), on(a)]),
            (
                r#"s2c {"b":2} set /c {"d":[]}"#,
                vec![on(a), on(r#"{"b":2,"c":{"d":[]}}"#)],
            ),
            (r#"s2c {"b":2} remove /b"#, vec![on(a), on("{}")]),
            (r#"s2c first {"b":2} drop"#, vec![on(a), on(b)]),
            (r#"s2c first {"a":1} replace x"#, vec![on("x"), on(b)]),
            ("s2c /b/ before x", vec![on(a), on("x"), on(b)]),
            (
                "s2c /b/ reply x",
                vec![on(a), Passed::Back(Frame::Text("x".to_owned()))],
            ),
            (
                "s2c /b/ then-close 1008",
                vec![on(a), on(b), Passed::Closed(1008)],
            ),
        ] {
            assert_eq!(passed(rule, &[a, b]), result, "{rule}");
        }
    }

    #[test]
    fn a_watched_rule_changes_nothing_and_reports_where_it_applies() {
        let lines = r#"watch s2c {"a":1} drop
            watch s2c {"b":1} drop
            watch c2s path /x as /
            watch s2c {"a":"${unset}"} drop"#;
        let rules = Rules::read(lines, &Variables::default()).unwrap();
        let frame = Frame::Text(r#"{"a":1}"#.to_owned());
        let passed = rules.pass(1, Side::Server, frame);
        assert_eq!(passed, [on(r#"{"a":1}"#)]);
        assert_eq!(rules.noticed(), [r#"s2c {"a":1} drop"#]);
        assert_eq!(rules.instead(Side::Client, "path", "/x"), "/x");
        assert_eq!(rules.noticed().len(), 2);
    }

    #[test]
    fn an_invalid_rule_is_reported() {
        for (rule, why) in [
            ("up {} drop", "c2s or s2c"),
            ("s2c {} vanish", "vanish is not an action"),
            ("s2c {} set /a", "a value is missing"),
            ("s2c { drop", "key must be a string"),
            (r#"s2c {"a":"$b"} drop"#, "$b is not a pattern"),
        ] {
            let error = Rules::read(rule, &Variables::default()).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
