//! `Frame`: what a text is as a frame of a protocol: its kind, its id, and its members in words.

use std::borrow::Cow;

use rpc_core::Json;
use rpc_core::json::each_member;
use rpc_core::testing::Side;
use serde::Serialize;

use super::Protocol;

/// Members whose own members are shown in their place.
const BOXES: [&str; 5] = ["data", "event", "params", "payload", "request"];
/// Members that need no name where they are the only one.
const ALONE: &str = "args content data output prompt result text token";
/// Words end behind so many bytes where long texts are shortened.
const MAX_WORDS: usize = 2048;

/// A frame, looked at from outside.
#[derive(Debug, Default)]
pub(crate) struct Frame<'a> {
    /// What people call it, such as `chat.send`; with a slash before what it carries.
    pub(crate) kind: Cow<'a, str>,
    /// The id of the call or message that it belongs to.
    pub(crate) id: Option<Cow<'a, str>>,
    pub(super) members: Vec<(Cow<'a, str>, &'a str)>,
}

/// Returns whether a word is one of these, which have spaces between them.
pub(crate) fn is_one(word: &str, of: &str) -> bool {
    of.split_ascii_whitespace().any(|it| it == word)
}

/// Returns the text of a raw string or number; `None` for other values.
pub(crate) fn scalar(raw: &str) -> Option<Cow<'_, str>> {
    match raw.strip_prefix('"').and_then(|it| it.strip_suffix('"')) {
        Some(inner) if !inner.contains('\\') => Some(Cow::Borrowed(inner)),
        Some(_) => serde_json::from_str(raw).ok().map(Cow::Owned),
        None => raw
            .starts_with(|c: char| c.is_ascii_digit() || c == '-')
            .then_some(Cow::Borrowed(raw)),
    }
}

/// Returns the raw value of a member below an object, by the names on the way.
pub(crate) fn member<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
    let mut value = text;
    for name in path {
        let mut found = None;
        each_member(value, |known, raw| {
            if known == *name {
                found = Some(raw);
            }
        })
        .ok()?;
        value = found?;
    }
    Some(value)
}

/// Returns the text of a member below an object.
pub(crate) fn text_of<'a>(text: &'a str, path: &[&str]) -> Option<Cow<'a, str>> {
    scalar(member(text, path)?)
}

impl<'a> Frame<'a> {
    /// Looks at a text; `None` if it is no JSON object.
    pub(crate) fn new(protocol: Protocol, from: Side, text: &'a str) -> Option<Self> {
        let mut members = Vec::with_capacity(8);
        each_member(text, |name, raw| members.push((name, raw))).ok()?;
        let mut frame = Self {
            members,
            ..Self::default()
        };
        frame.id = frame.scalar(if protocol == Protocol::Snek {
            "callId"
        } else {
            "id"
        });
        let tag = |name: &str| scalar(frame.raw(name).filter(|raw| raw.starts_with('"'))?);
        let kind = match (protocol, from) {
            (Protocol::Snek, Side::Client) => tag("method"),
            (Protocol::Snek, Side::Server) => {
                tag("event").or_else(|| frame.raw("callId").map(|_| "answer".into()))
            }
            (Protocol::Exoclaw, Side::Client) => {
                tag("method").or_else(|| frame.raw("token").map(|_| "token".into()))
            }
            (Protocol::Exoclaw, Side::Server) => tag("event").or_else(|| {
                let kinds = [("error", "error"), ("ok", "hello"), ("result", "result")];
                let has = |name: &str| {
                    frame
                        .raw(name)
                        .is_some_and(|raw| raw != "null" || name == "result")
                };
                kinds
                    .into_iter()
                    .find(|(name, _)| has(name))
                    .map(|(_, kind)| kind.into())
            }),
            (Protocol::SmartHole, _) => {
                let payload = frame.raw("payload").unwrap_or("{}");
                let kind = tag("type");
                let of = if kind.as_deref() == Some("response") {
                    "messageId"
                } else {
                    "id"
                };
                let (id, inner) = (text_of(payload, &[of]), text_of(payload, &["type"]));
                frame.id = id;
                match inner.filter(|_| of == "messageId") {
                    Some(inner) => Some(format!("response/{inner}").into()),
                    None => kind,
                }
            }
            (Protocol::ConnectOnion, _) => {
                frame.id = None;
                frame.scalar("type")
            }
            (Protocol::Acolyte, _) => {
                let inner = frame
                    .raw("event")
                    .and_then(|event| text_of(event, &["type"]));
                match (tag("type"), inner) {
                    (Some(kind), Some(inner)) if kind == "chat.event" => {
                        Some(format!("{kind}/{inner}").into())
                    }
                    (kind, _) => kind,
                }
            }
        };
        frame.kind = kind.unwrap_or(Cow::Borrowed("?"));
        Some(frame)
    }

    /// Returns the raw value of a member.
    pub(crate) fn raw(&self, name: &str) -> Option<&'a str> {
        let found = self.members.iter().rev().find(|(known, _)| known == name);
        found.map(|(_, raw)| *raw)
    }

    fn scalar(&self, name: &str) -> Option<Cow<'a, str>> {
        scalar(self.raw(name)?)
    }

    /// Returns the id and the members in words, without the kind. Long ones are cut if `shortens`.
    pub(crate) fn words(&self, shortens: bool) -> String {
        let mut words = String::with_capacity(128);
        words.push_str(self.id.as_deref().unwrap_or_default());
        let most = if shortens { MAX_WORDS } else { usize::MAX };
        tell(&self.members, &mut words, most);
        words
    }
}

/// Adds members in words. Leaves out those without information, or shown elsewhere.
fn tell(members: &[(Cow<'_, str>, &str)], words: &mut String, most: usize) {
    let is_told = |(name, raw): &&(Cow<'_, str>, &str)| {
        let is_elsewhere = match &**name {
            "type" | "id" | "callId" | "method" | "messageId" => true,
            name => name == "event" && raw.starts_with('"'),
        };
        !is_elsewhere && !matches!(*raw, "null" | "{}" | "[]")
    };
    let told: Vec<_> = members.iter().filter(is_told).collect();
    for (name, raw) in &told {
        if words.len() > most {
            return;
        }
        let mut inner: Vec<(Cow<'_, str>, &str)> = Vec::new();
        if BOXES.contains(&&**name)
            && raw.starts_with('{')
            && each_member(raw, |name, raw| inner.push((name, raw))).is_ok()
        {
            tell(&inner, words, most);
            continue;
        }
        if !words.is_empty() {
            words.push(' ');
        }
        if told.len() > 1 || !is_one(name, ALONE) {
            words.push_str(name);
            words.push('=');
        }
        match raw.len() > most {
            true => words.push_str(rpc_core::text::beginning(raw, most)),
            false => words.push_str(raw),
        }
    }
}

/// Why a text is not a frame of its protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// What is wrong.
    pub error: String,
    /// The byte of the text where it is wrong, from 0.
    pub at: usize,
}

impl Fault {
    /// Says why a text is no JSON object.
    pub(crate) fn json(text: &str) -> Self {
        let Err(error) = Json::new(text) else {
            let error = "not an object".to_owned();
            return Self { error, at: 0 };
        };
        let line = text.split_inclusive('\n').take(error.line() - 1);
        let before: usize = line.map(str::len).sum();
        let words = error.to_string();
        Self {
            // The place is shown, not described.
            error: words.split(" (line ").next().unwrap_or_default().to_owned(),
            at: (before + error.column() - 1).min(text.len()),
        }
    }

    /// Says that a frame has no kind.
    pub(crate) fn kindless(protocol: Protocol, from: Side, frame: &Frame<'_>, text: &str) -> Self {
        let name = match (protocol, from) {
            (Protocol::Snek | Protocol::Exoclaw, Side::Client) => "method",
            (Protocol::Snek | Protocol::Exoclaw, Side::Server) => "event",
            _ => "type",
        };
        let raw = frame.raw(name);
        let why = if raw.is_some() {
            "not a string"
        } else {
            "missing"
        };
        Self {
            error: format!("member `{name}` is {why}"),
            at: raw.map_or(0, |raw| {
                raw.as_ptr().addr().saturating_sub(text.as_ptr().addr())
            }),
        }
    }
}
