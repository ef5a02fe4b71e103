//! [`Explainer`]: the lines of a transcript in words: what each frame is, what it belongs to, and what
//! is wrong with it.

mod connection;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::time::Duration;

use rpc_core::testing::Side;
use rpc_core::testing::transcript::{Entry, Kind};
use serde::{Serialize, Serializer};

use self::connection::{Connection, Place};
use super::dialect::{Fault, Link, Reading, read_sse, redact};
use super::members::{Known, Quick};
use super::shape::Shape;
use super::stage::{Stage, stage};
use super::{Protocol, heads};

/// Most connections that are followed at once.
const MAX_CONNECTIONS: usize = 4096;

/// The explanation of a line.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Explained {
    /// The kind of the frame, or of the entry if it is no frame.
    pub kind: String,
    /// What it says, in a few words, or its text. Without secrets, unless they are wanted; may hold any
    /// characters.
    pub words: String,
    /// The id of the call that it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<Cow<'static, str>>,
    /// Whether it begins the call.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// The line that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answers: Option<Answers>,
    /// Whether more answers follow.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub partial: bool,
    /// Whether it says that something has failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Whether the kind is none that the protocol's crate knows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unknown_kind: bool,
    /// The members that the protocol's crate does not know, as paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Why it is no frame of the protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// What is wrong with its place among the frames of its call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub order: Option<String>,
    /// What went wrong, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The requests that nobody answers any more because the connection has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<Answers>,
    /// Whether the entry holds secrets that are not shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}

/// The line that a frame answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Answers {
    /// The number of the line.
    pub line: usize,
    /// The kind of its frame.
    pub kind: String,
    /// The time since then, in seconds.
    #[serde(serialize_with = "seconds")]
    pub after: Duration,
}

fn seconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64())
}

impl Explained {
    /// Returns whether something went wrong, or is not known.
    #[must_use]
    pub const fn is_problem(&self) -> bool {
        self.problem.is_some() || !self.unanswered.is_empty()
    }

    /// Returns whether it is a frame of the protocol, at its place, of which all is known.
    #[must_use]
    pub const fn is_known(&self) -> bool {
        let is_known = !self.unknown_kind && self.unknown.is_empty();
        is_known && self.fault.is_none() && self.order.is_none()
    }

    pub(super) fn plain(kind: impl Into<String>, words: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            words: words.into(),
            call: None,
            asks: false,
            answers: None,
            partial: false,
            failed: false,
            unknown_kind: false,
            unknown: Vec::new(),
            fault: None,
            order: None,
            problem: None,
            unanswered: Vec::new(),
            redacted: false,
        }
    }
}

/// An explainer of the lines of a transcript, in their order.
pub struct Explainer {
    /// The protocol that the user named.
    named: Option<Protocol>,
    /// The protocol that the frames have shown.
    found: Option<Protocol>,
    shows_secrets: bool,
    connections: HashMap<u32, Connection, Quick>,
    known: Known,
    shape: Shape,
    shortens: bool,
}

impl Explainer {
    /// Creates an explainer for this protocol, or for the one that the frames show. Replaces secrets
    /// unless they are wanted.
    #[must_use]
    pub fn new(protocol: Option<Protocol>, shows_secrets: bool) -> Self {
        Self {
            named: protocol,
            found: None,
            shows_secrets,
            connections: HashMap::default(),
            known: Known::default(),
            shape: Shape::default(),
            shortens: false,
        }
    }

    /// Leaves only the beginning of long texts in the words, which is faster.
    #[must_use]
    pub const fn shortening(mut self) -> Self {
        self.shortens = true;
        self
    }

    /// Begins another transcript, which says that it is of this protocol.
    pub fn begin(&mut self, protocol: Option<Protocol>) {
        self.connections.clear();
        self.found = protocol;
    }

    /// Returns the protocol, as far as it is known.
    #[must_use]
    pub fn protocol(&self) -> Option<Protocol> {
        self.named.or(self.found)
    }

    /// Returns whether secrets are shown.
    #[must_use]
    pub const fn shows_secrets(&self) -> bool {
        self.shows_secrets
    }

    /// Explains the entry in this line.
    pub fn explain(&mut self, line: usize, entry: &Entry<'_>) -> Explained {
        if self.connections.len() >= MAX_CONNECTIONS && !self.connections.contains_key(&entry.conn)
        {
            self.connections.retain(|_, it| !it.is_over);
            if self.connections.len() >= MAX_CONNECTIONS {
                self.connections.clear();
            }
        }
        let mut explained = self.words(line, entry);
        let connection = self.connections.entry(entry.conn).or_default();
        explained.unanswered = connection.other(entry);
        explained.problem = connection.problem(entry, &explained);
        explained
    }

    /// Returns the requests that wait for an answer, for a transcript that has ended at this time.
    #[must_use]
    pub fn unanswered(&self, now: Duration) -> Vec<Answers> {
        let open = self.connections.values();
        let mut open: Vec<_> = open.flat_map(|it| it.unanswered(now)).collect();
        open.sort_by_key(|it| it.line);
        open
    }

    fn words(&mut self, line: usize, entry: &Entry<'_>) -> Explained {
        match entry.kind {
            Kind::Text | Kind::Sse => self.frame(line, entry),
            Kind::Http | Kind::Open => self.head(entry),
            Kind::Binary => {
                let len = entry.data.len() / 2;
                Explained::plain(
                    entry.kind.name(),
                    format!("{len} bytes; only text is allowed"),
                )
            }
            Kind::Ping | Kind::Pong => {
                Explained::plain(entry.kind.name(), format!("{} bytes", entry.data.len() / 2))
            }
            Kind::Close => {
                let code = entry
                    .code
                    .map_or_else(|| "without a code".to_owned(), |it| it.to_string());
                Explained::plain(
                    entry.kind.name(),
                    format!("{code} {}", entry.data).trim_end(),
                )
            }
            Kind::Eof => {
                Explained::plain(entry.kind.name(), "the connection ended without a Close")
            }
            Kind::Body if self.shows_secrets => Explained::plain(entry.kind.name(), &*entry.data),
            Kind::Body => {
                Explained::plain(entry.kind.name(), format!("{} bytes", entry.data.len()))
            }
            kind => Explained::plain(kind.name(), &*entry.data),
        }
    }

    /// Returns the data of an entry without its secrets, unless they are wanted.
    #[must_use]
    pub fn data<'a>(&self, entry: &'a Entry<'_>) -> Cow<'a, str> {
        if self.shows_secrets {
            return Cow::Borrowed(&entry.data);
        }
        match (entry.kind, self.protocol().zip(entry.from)) {
            (Kind::Text | Kind::Sse, Some((protocol, from))) => redact(protocol, from, &entry.data),
            (Kind::Text | Kind::Sse | Kind::Body, _) => Cow::Borrowed(""),
            (Kind::Http | Kind::Open, _) => Cow::Owned(heads::redact(heads::split(&entry.data).0)),
            _ => Cow::Borrowed(&entry.data),
        }
    }

    /// The head of an HTTP message, or the path of a WebSocket.
    fn head(&mut self, entry: &Entry<'_>) -> Explained {
        let (head, body) = heads::split(&entry.data);
        let first = head.lines().next().unwrap_or_default();
        if entry.from == Some(Side::Client) {
            let path = first.split(' ').find(|word| word.starts_with('/'));
            let path = path.and_then(Protocol::of_path);
            self.found = self.found.or(path);
        }
        let shown = match self.shows_secrets {
            true => head.to_owned(),
            false => heads::redact(head),
        };
        let mut lines = shown.lines();
        let mut words = lines.next().unwrap_or_default().to_owned();
        let told = lines.filter(|line| {
            let line = line.to_ascii_lowercase();
            ["sec-websocket-protocol:", "origin:", "location:"]
                .iter()
                .any(|it| line.starts_with(it))
        });
        for line in told {
            words = format!("{words}; {line}");
        }
        if !body.is_empty() {
            words = match self.shows_secrets {
                true => format!("{words}; {body}"),
                false => format!("{words}; a body of {} bytes", body.len()),
            };
        }
        Explained {
            redacted: shown != head,
            ..Explained::plain(entry.kind.name(), words)
        }
    }

    fn frame(&mut self, line: usize, entry: &Entry<'_>) -> Explained {
        let text = &*entry.data;
        let Some(from) = entry.from else {
            return Explained::plain(entry.kind.name(), "a frame that nobody sent");
        };
        if self.protocol().is_none() {
            self.found = match entry.kind {
                Kind::Sse => Some(Protocol::Acolyte),
                _ => Protocol::of_frame(text),
            };
        }
        let Some(protocol) = self.protocol() else {
            let words = match self.shows_secrets {
                true => text.to_owned(),
                false => format!("{} bytes of a protocol that is not known yet", text.len()),
            };
            return Explained::plain(entry.kind.name(), words);
        };
        let look = self.shape.of(protocol, from, text);
        let mut shown = match !self.shows_secrets && look.may_hold_secret {
            true => redact(protocol, from, text),
            false => Cow::Borrowed(text),
        };
        let connection = self.connections.entry(entry.conn).or_default();
        connection.frame(entry.kind);
        let is_sse = entry.kind == Kind::Sse;
        let other = match &shown {
            Cow::Borrowed(_) if self.shortens => look.short,
            Cow::Borrowed(_) => None,
            Cow::Owned(shown) => Some(shown.as_str()),
        };
        let read = match is_sse {
            true => read_sse(text),
            false => {
                let dialect = connection.dialect.get_or_insert_with(|| protocol.into());
                dialect.read(from, text, other)
            }
        };
        if read.is_err() && !self.shows_secrets {
            shown = redact(protocol, from, text);
        }
        let redacted = matches!(shown, Cow::Owned(_));
        let mut place = Place {
            protocol,
            from,
            line,
            at: entry.at,
            kind: "?",
            stage: Stage::Partial,
        };
        let Reading {
            kind,
            is_known,
            link,
            words,
        } = match read {
            Ok(reading) => reading,
            Err(fault) => {
                let kind = super::tag(text).unwrap_or(Cow::Borrowed("?"));
                place.kind = &kind;
                connection.faulty(&place, text);
                return Explained {
                    fault: Some(fault),
                    redacted,
                    ..Explained::plain(kind, &*shown)
                };
            }
        };
        let (call, asks) = match &link {
            Link::None => (None, false),
            Link::Asks(id) => (Some(id.clone()), true),
            Link::Answers(id) => (Some(id.clone()), false),
        };
        let stage = match is_known || protocol == Protocol::SmartHole {
            true => stage(protocol, is_sse, &kind, text),
            // It may be anything; the end is known.
            false => Stage::Partial,
        };
        (place.kind, place.stage) = (&kind, stage);
        let (answers, order) = connection.link(&place, link);
        Explained {
            call,
            asks,
            answers,
            order,
            partial: !asks && stage == Stage::Partial,
            failed: stage == Stage::Failed,
            unknown_kind: !is_known,
            unknown: self.known.unknown(look.shape, protocol, from, is_sse, text),
            redacted,
            ..Explained::plain(kind, words.unwrap_or_else(|| shown.into_owned()))
        }
    }
}

impl fmt::Debug for Explainer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Explainer")
            .field("protocol", &self.protocol())
            .field("connections", &self.connections.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
