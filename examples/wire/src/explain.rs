//! [`Explainer`]: the lines of a transcript in words: what each frame is, what it belongs to, and what is wrong with it.

use std::borrow::Cow;
use std::time::Duration;

use crate::transcript::{BadLine, Entry, Header, Item, Kind, Reader};
use rpc_core::testing::Side;
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::frame::{Fault, Frame, is_one};
use super::head::{Head, split};
use super::order::{Answers, Observed, Order, Relations};
use super::secrets::Shown;
use super::{Protocol, secrets};

/// Most connections that are followed at once.
const MAX_CONNECTIONS: usize = 4096;
/// The most bytes of a Ping, a Pong or a Close (RFC 6455, section 5.5).
const MAX_CONTROL: usize = 125;
/// The codes of a Close that need no explanation; no code is one of them.
const USUAL: [u16; 3] = [1000, 1001, 1005];

/// The explanation of a line.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Explained {
    /// The kind of the frame, or of the entry if it is not a frame.
    pub kind: String,
    /// What it says, in a few words, or its text. Without secrets, unless they are wanted; may hold any
    /// characters.
    pub words: String,
    /// Its place among the others.
    #[serde(flatten)]
    pub relations: Relations,
    /// Whether the kind is not known, which the protocol may allow.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unknown_kind: bool,
    /// The members that are not known, as paths.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Why it is not a frame of the protocol.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<Fault>,
    /// What went wrong, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// The requests that stay unanswered because the connection has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<Answers>,
    /// Whether the entry holds secrets that are not shown.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
}

impl Explained {
    /// Returns whether something went wrong.
    pub(crate) const fn is_problem(&self) -> bool {
        self.problem.is_some() || !self.unanswered.is_empty()
    }

    /// Returns whether the frame, or a member of it, is not known.
    pub(crate) const fn is_unknown(&self) -> bool {
        self.unknown_kind || !self.unknown.is_empty()
    }

    pub(super) fn plain(kind: impl Into<String>, words: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            words: words.into(),
            ..Self::default()
        }
    }
}

/// A line of a transcript.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "there is one at a time")]
pub(crate) enum Line<'l> {
    /// The header, without secrets unless they are wanted.
    Header(Header),
    /// An entry, and its explanation.
    Entry(Entry<'l>, Explained),
}

/// What is known of a connection beside the order of its frames.
#[derive(Debug, Default)]
struct Connection {
    order: Order,
    is_socket: bool,
    /// The subprotocols that the client has offered, if its request is known.
    offers: Option<Vec<String>>,
    /// Who has sent a Close.
    closed: Vec<Side>,
    /// Whether it is over, as far as frames are concerned.
    is_over: bool,
}

/// An explainer of the lines of a transcript, in their order.
#[derive(Debug, Default)]
pub(crate) struct Explainer {
    /// The protocol that the user named.
    named: Option<Protocol>,
    /// The protocol that the frames have shown.
    found: Option<Protocol>,
    shown: Shown,
    connections: FxHashMap<u32, Connection>,
    shortens: bool,
    reader: Reader,
}

impl Explainer {
    /// Creates an explainer for this protocol, or for the one that the frames show. Replaces secrets,
    /// but for those that are `shown`.
    pub(crate) fn new(protocol: Option<Protocol>, shown: Shown) -> Self {
        Self {
            named: protocol,
            shown,
            ..Self::default()
        }
    }

    /// Leaves only the beginning of long texts in the words, which is faster.
    pub(crate) const fn shortening(mut self) -> Self {
        self.shortens = true;
        self
    }

    /// Reads and explains the line with this number; `None` if it is blank. After a header, another transcript
    /// begins.
    ///
    /// # Errors
    /// [`BadLine`] if it is not a line of a transcript.
    pub(crate) fn read<'l>(
        &mut self,
        n: usize,
        line: &'l str,
    ) -> Result<Option<Line<'l>>, BadLine> {
        Ok(match self.reader.read(line)? {
            Some(Item::Entry(entry)) => {
                let explained = self.explain(n, &entry);
                Some(Line::Entry(entry, explained))
            }
            Some(Item::Header(mut header)) => {
                self.connections.clear();
                self.found = header.protocol.as_deref().and_then(Protocol::parse);
                let words = [&mut header.client, &mut header.server].into_iter();
                for words in words.flatten().filter(|_| !self.shown.is_all()) {
                    *words = secrets::within(words).into_owned();
                }
                Some(Line::Header(header))
            }
            _ => None,
        })
    }

    /// Returns the protocol, as far as it is known.
    pub(crate) fn protocol(&self) -> Option<Protocol> {
        self.named.or(self.found)
    }

    /// Explains the entry in this line.
    pub(crate) fn explain(&mut self, line: usize, entry: &Entry<'_>) -> Explained {
        if self.connections.len() >= MAX_CONNECTIONS && !self.connections.contains_key(&entry.conn)
        {
            self.connections.retain(|_, it| !it.is_over);
            if self.connections.len() >= MAX_CONNECTIONS {
                self.connections.clear();
            }
        }
        let mut explained = match entry.kind {
            Kind::Text | Kind::Sse => self.frame(line, entry),
            Kind::Http | Kind::Open => self.head(entry),
            Kind::Binary => Explained::plain(
                "binary",
                format!("{} bytes; only text is allowed", entry.data.len() / 2),
            ),
            Kind::Ping | Kind::Pong => {
                Explained::plain(entry.kind.name(), format!("{} bytes", entry.data.len() / 2))
            }
            Kind::Close => {
                let code = entry
                    .code
                    .map_or_else(|| "without a code".to_owned(), |it| it.to_string());
                Explained::plain("close", format!("{code} {}", self.data(entry)).trim_end())
            }
            Kind::Eof => Explained::plain("eof", "the connection ended without a Close"),
            Kind::Body if !self.shown.is_all() => {
                Explained::plain("body", format!("{} bytes", entry.data.len()))
            }
            kind => Explained::plain(kind.name(), self.data(entry)),
        };
        let connection = self.connections.entry(entry.conn).or_default();
        explained.unanswered = connection.note(line, entry);
        explained.problem = connection.problem(entry, &explained);
        explained
    }

    /// Returns the requests that wait for an answer, for a transcript that has ended at this time.
    pub(crate) fn unanswered(&self, now: Duration) -> Vec<Answers> {
        let open = self.connections.values();
        let mut open: Vec<_> = open.flat_map(|it| it.order.unanswered(now)).collect();
        open.sort_by_key(|it| it.line);
        open
    }

    /// Returns the data of an entry without its secrets, unless they are wanted.
    pub(crate) fn data<'a>(&self, entry: &'a Entry<'_>) -> Cow<'a, str> {
        match entry.kind {
            _ if self.shown.is_all() => Cow::Borrowed(&entry.data),
            Kind::Text | Kind::Sse => secrets::frame(&entry.data, &self.shown),
            Kind::Body => Cow::Borrowed(""),
            // What is text may hold a secret as any other.
            Kind::Binary | Kind::Ping | Kind::Pong => {
                match entry.payload().map(String::from_utf8) {
                    Some(Ok(text)) if !secrets::may_hold(&text) => Cow::Borrowed(&entry.data),
                    _ => Cow::Owned(format!("(not shown, {} bytes)", entry.data.len() / 2)),
                }
            }
            Kind::Http | Kind::Open => Cow::Owned(secrets::head(split(&entry.data).0)),
            _ => secrets::within(&entry.data),
        }
    }

    /// The head of an HTTP message, or the path of a WebSocket.
    fn head(&mut self, entry: &Entry<'_>) -> Explained {
        let (head, body) = split(&entry.data);
        let first = head.lines().next().unwrap_or_default();
        if entry.from == Some(Side::Client) {
            let path = first.split(' ').find(|word| word.starts_with('/'));
            self.found = self.found.or_else(|| Protocol::of_path(path?));
        }
        let shown = match self.shown.is_all() {
            true => head.to_owned(),
            false => secrets::head(head),
        };
        let told = Head::of(&shown);
        let mut words = told.first.clone();
        for (name, value) in told.headers() {
            let telling = "sec-websocket-protocol origin location";
            if is_one(&name.to_ascii_lowercase(), telling) {
                words += &format!("; {name}: {value}");
            }
        }
        if !body.is_empty() {
            words = match self.shown.is_all() {
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
        let shown = secrets::frame(text, &self.shown);
        let redacted = matches!(shown, Cow::Owned(_));
        let is_sse = entry.kind == Kind::Sse;
        self.found = self.found.or_else(|| match is_sse {
            true => Some(Protocol::Acolyte),
            false => Protocol::of_frame(text),
        });
        let Some(protocol) = self.protocol() else {
            return Explained {
                redacted,
                ..Explained::plain(entry.kind.name(), shown)
            };
        };
        let connection = self.connections.entry(entry.conn).or_default();
        connection.is_over = false;
        connection.is_socket |= !is_sse;
        let whose = (protocol, from, is_sse);
        let Observed {
            frame,
            judged,
            mut relations,
        } = connection.order.observe(whose, text, line, entry.at);
        let is_closed = connection.closed.contains(&from);
        let closed = is_closed.then(|| "comes after the Close of the same side".to_owned());
        let closed = closed.and_then(|it| connection.order.once("", it));
        relations.wrong = relations.wrong.or(closed);
        let fault = judged.fault;
        let words = match (&shown, &fault) {
            (Cow::Borrowed(_), None) => frame.words(self.shortens),
            (Cow::Owned(shown), None) => Frame::new(protocol, from, shown)
                .map_or_else(|| shown.clone(), |it| it.words(self.shortens)),
            // What is wrong with it is seen in its text.
            (shown, Some(_)) => shown.to_string(),
        };
        Explained {
            relations,
            unknown_kind: fault.is_none() && !judged.is_known,
            unknown: judged.unknown,
            problem: judged.stray,
            fault,
            redacted,
            ..Explained::plain(frame.kind, words)
        }
    }
}

impl Connection {
    /// Notes a line that is not a frame. Returns the requests that stay unanswered.
    fn note(&mut self, line: usize, entry: &Entry<'_>) -> Vec<Answers> {
        let unanswered = match entry.kind {
            Kind::Open | Kind::Close | Kind::Eof => self.order.end(entry.at),
            Kind::Http if entry.from == Some(Side::Client) => self.order.end(entry.at),
            _ => Vec::new(),
        };
        match entry.kind {
            Kind::Open | Kind::Http if entry.from != Some(Side::Server) => {
                let first = entry.data.lines().next().unwrap_or_default();
                let is_stream = first.starts_with("POST ") && first.contains("/chat/stream");
                *self = Self {
                    order: match is_stream {
                        true => Order::streamed(line, entry.at),
                        false => Order::opened(),
                    },
                    is_socket: entry.kind == Kind::Open,
                    offers: (entry.kind == Kind::Http).then(|| {
                        subprotocols(&Head::of(&entry.data))
                            .map(str::to_owned)
                            .collect()
                    }),
                    ..Self::default()
                };
            }
            Kind::Http => match Head::of(&entry.data).status() {
                Some(101) => self.is_socket = true,
                Some(400..) => self.order = Order::opened(),
                _ => {}
            },
            Kind::Close => self.closed.extend(entry.from),
            _ => {}
        }
        self.is_over |= matches!(entry.kind, Kind::Close | Kind::Eof);
        unanswered
    }

    /// Returns what is wrong with an entry, in a few words.
    fn problem(&self, entry: &Entry<'_>, explained: &Explained) -> Option<String> {
        let too_long = || Some(format!("carries more than {MAX_CONTROL} bytes"));
        match entry.kind {
            Kind::Text | Kind::Sse => match (&explained.fault, &explained.relations.wrong) {
                (Some(fault), _) => Some(format!("not a valid frame: {}", fault.error)),
                (_, Some(order)) => Some(order.clone()),
                _ if explained.relations.failed => Some("says that it failed".to_owned()),
                _ => explained.problem.clone(),
            },
            Kind::Http if entry.from == Some(Side::Server) => {
                let head = Head::of(&entry.data);
                let status = head.status()?;
                let mut selected = subprotocols(&head);
                let offers = self.offers.as_deref();
                let has =
                    |it: &str| offers.is_none_or(|offers| offers.iter().any(|offer| offer == it));
                match selected.find(|it| !has(it)).filter(|_| status == 101) {
                    Some(_) => Some("selects a subprotocol that nobody offered".to_owned()),
                    None => (status >= 400).then(|| format!("HTTP status {status}")),
                }
            }
            Kind::Binary => Some("a binary message: only text is allowed".to_owned()),
            Kind::Ping | Kind::Pong if entry.data.len() > 2 * MAX_CONTROL => too_long(),
            // Two bytes are its code.
            Kind::Close if entry.data.len() > MAX_CONTROL - 2 => too_long(),
            Kind::Close => {
                let code = entry.code.filter(|code| !USUAL.contains(code))?;
                Some(format!("closed with {code}"))
            }
            Kind::Eof => {
                let is_cut = self.is_socket && self.closed.is_empty();
                is_cut.then(|| "ended without a Close".to_owned())
            }
            Kind::Fault => Some("done on purpose by the proxy".to_owned()),
            // What the proxy says of a connection.
            Kind::Note if entry.conn > 0 => Some(explained.words.clone()),
            _ => None,
        }
    }
}

/// Returns the subprotocols in a head.
fn subprotocols(head: &Head) -> impl Iterator<Item = &str> {
    let headers = head.headers();
    let headers = headers.filter(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-protocol"));
    headers.flat_map(|(_, value)| value.split(',').map(str::trim))
}

#[cfg(test)]
mod tests;
