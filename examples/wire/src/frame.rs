//! `Frame`: what a text is as a frame of a protocol: its kind, its id, and its members in words.

use std::borrow::Cow;

use rpc_core::Json;
use rpc_core::testing::Side;
use serde::Serialize;

use super::Protocol;
use super::pattern::{Member, Members, members_of};

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
    pub(super) members: Members<'a>,
    /// The first box, and its members.
    pub(super) inner: Option<(&'a str, Members<'a>)>,
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

/// Returns the raw value of the last member of this name.
pub(crate) fn last<'a>(members: &[Member<'a>], name: &str) -> Option<&'a str> {
    let found = members.iter().rev().find(|(known, _)| known == name);
    found.map(|(_, raw)| *raw)
}

/// Returns the raw value of a member below an object, by the names on the way.
pub(crate) fn member<'a>(text: &'a str, path: &[&str]) -> Option<&'a str> {
    let mut path = path.iter();
    path.try_fold(text, |value, name| last(&members_of(value)?, name))
}

impl<'a> Frame<'a> {
    /// Looks at a text; `None` if it is no JSON object.
    pub(crate) fn new(protocol: Protocol, from: Side, text: &'a str) -> Option<Self> {
        let members = members_of(text)?;
        let is_box = |(name, raw): &&Member<'_>| BOXES.contains(&&**name) && raw.starts_with('{');
        let inner = members.iter().find(is_box).map(|(_, raw)| *raw);
        let mut frame = Self {
            inner: inner.and_then(|raw| Some((raw, members_of(raw)?))),
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
                let kind = tag("type");
                let of = if kind.as_deref() == Some("response") {
                    "messageId"
                } else {
                    "id"
                };
                let (id, inner) = (
                    frame.text_at("payload", of),
                    frame.text_at("payload", "type"),
                );
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
                let inner = frame.text_at("event", "type");
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
        last(&self.members, name)
    }

    /// Returns the raw value of a member below a member.
    pub(crate) fn at(&self, name: &str, below: &str) -> Option<&'a str> {
        let raw = self.raw(name)?;
        match &self.inner {
            Some((known, members)) if std::ptr::eq(*known, raw) => last(members, below),
            _ => member(raw, &[below]),
        }
    }

    /// Returns the text of a member below a member.
    pub(crate) fn text_at(&self, name: &str, below: &str) -> Option<Cow<'a, str>> {
        scalar(self.at(name, below)?)
    }

    pub(crate) fn scalar(&self, name: &str) -> Option<Cow<'a, str>> {
        scalar(self.raw(name)?)
    }

    /// Returns the id and the members in words, without the kind. Long ones are cut if `shortens`.
    pub(crate) fn words(&self, shortens: bool) -> String {
        let mut words = String::with_capacity(128);
        words.push_str(self.id.as_deref().unwrap_or_default());
        let most = if shortens { MAX_WORDS } else { usize::MAX };
        describe(&self.members, self.inner.as_ref(), &mut words, most);
        words
    }
}

/// Adds members in words. Leaves out those without information, or shown elsewhere.
fn describe(
    members: &[Member<'_>],
    known: Option<&(&str, Members<'_>)>,
    words: &mut String,
    most: usize,
) {
    let is_told = |(name, raw): &&Member<'_>| {
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
        if BOXES.contains(&&**name) && raw.starts_with('{') {
            match known.filter(|(known, _)| std::ptr::eq(*known, *raw)) {
                Some((_, inner)) => describe(inner, None, words, most),
                None => describe(&members_of(raw).unwrap_or_default(), None, words, most),
            }
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
