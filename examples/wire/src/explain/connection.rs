//! [`Connection`]: what is known of a connection: what was asked on it, and how it ended.

use std::borrow::Cow;
use std::time::Duration;

use rpc_core::json::each_member;
use rpc_core::testing::Side;
use rpc_core::testing::transcript::{Entry, Kind};

use super::{Answers, Explained};
use crate::Protocol;
use crate::dialect::{Dialect, Link};
use crate::screen::recent::Recent;
use crate::stage::{Stage, ends};

/// Most open requests of a connection that are remembered, in each half of [`Recent`].
const MAX_ASKED: usize = 4096;
/// Who asks may end the connection before the answer to this one.
const KEEPALIVE: &str = "PING";
/// The codes of a Close that nobody has to explain; none is one of them.
const USUAL: [u16; 3] = [1000, 1001, 1005];

/// The state of one connection.
#[derive(Default)]
pub(super) struct Connection {
    pub(super) dialect: Option<Dialect>,
    /// Who asked what, by the asker and the id.
    asked: Recent<(Side, Cow<'static, str>), Asked, MAX_ASKED>,
    /// Whether all that was asked is known: the recording has its beginning, and nothing open was forgotten.
    is_whole: bool,
    is_socket: bool,
    is_closed: bool,
    /// Whether it is over, as far as frames are concerned.
    pub(super) is_over: bool,
}

#[derive(Clone)]
struct Asked {
    line: usize,
    kind: String,
    at: Duration,
    /// Whether all of an answer has come.
    is_answered: bool,
    /// How many requests with this id have not ended.
    open: u32,
}

/// A frame of a connection.
pub(super) struct Place<'a> {
    pub(super) protocol: Protocol,
    pub(super) from: Side,
    pub(super) line: usize,
    pub(super) at: Duration,
    pub(super) kind: &'a str,
    pub(super) stage: Stage,
}

impl Connection {
    /// Notes a line that is no frame. Returns the requests that nobody will answer any more.
    pub(super) fn other(&mut self, entry: &Entry<'_>) -> Vec<Answers> {
        match entry.kind {
            Kind::Open => self.begin(true),
            Kind::Http if entry.from == Some(Side::Client) => self.begin(false),
            Kind::Http => self.is_socket |= status(&entry.data) == Some(101),
            Kind::Close | Kind::Eof => {
                self.is_closed |= entry.kind == Kind::Close;
                return self.end(entry.at);
            }
            _ => {}
        }
        Vec::new()
    }

    fn begin(&mut self, is_socket: bool) {
        *self = Self {
            is_whole: true,
            is_socket,
            ..Self::default()
        };
    }

    fn end(&mut self, now: Duration) -> Vec<Answers> {
        let unanswered = self.unanswered(now);
        // What comes behind the end, the other side has sent before it knew.
        (self.dialect, self.is_whole, self.is_over) = (None, false, true);
        self.asked.clear();
        unanswered
    }

    /// Returns the requests that wait for an answer, in their order.
    pub(super) fn unanswered(&self, now: Duration) -> Vec<Answers> {
        let open = self.asked.values();
        let open = open.filter(|it| !it.is_answered && it.kind != KEEPALIVE);
        let mut open: Vec<_> = open.map(|it| it.answered(now)).collect();
        open.sort_by_key(|it| it.line);
        open
    }

    /// Notes the first look at a frame.
    pub(super) const fn frame(&mut self, kind: Kind) {
        self.is_over = false;
        if matches!(kind, Kind::Text) {
            self.is_socket = true;
        }
    }

    /// Remembers what a frame asks although it is not valid: the other side may have taken it.
    pub(super) fn faulty(&mut self, place: &Place<'_>, text: &str) {
        let mut id = None;
        let _ = each_member(text, |name, raw| {
            if name == "id" || name == "callId" {
                let is_text = place.protocol != Protocol::Snek;
                let inner = raw.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
                id = Some(inner.filter(|_| is_text).unwrap_or(raw).to_owned());
            }
        });
        if let Some(id) = id {
            self.ask(place, id.into(), true);
        }
    }

    fn ask(&mut self, place: &Place<'_>, id: Cow<'static, str>, is_answered: bool) {
        let key = (place.from, id);
        let open = self.asked.get(&key).map_or(0, |it| it.open);
        let asked = Asked {
            line: place.line,
            kind: place.kind.to_owned(),
            at: place.at,
            is_answered,
            open: open.saturating_add(1),
        };
        let forgotten = self.asked.insert(key, asked);
        self.is_whole &= forgotten.values().all(|it| it.open == 0);
    }

    /// Remembers a question, or finds the one that is answered. Returns it, and what is wrong with the order.
    pub(super) fn link(
        &mut self,
        place: &Place<'_>,
        link: Link,
    ) -> (Option<Answers>, Option<String>) {
        let id = match link {
            Link::None => return (None, None),
            Link::Asks(id) => {
                self.ask(place, id, false);
                return (None, None);
            }
            Link::Answers(id) => id,
        };
        // What has no id in the protocol may come unasked, and more than once.
        let has_id = matches!(id, Cow::Owned(_)) && place.protocol != Protocol::ConnectOnion;
        let asker = match place.from {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        };
        let Some(asked) = self.asked.get_mut(&(asker, id)) else {
            // An error may answer what could not be read.
            let is_stray = has_id && self.is_whole && place.stage != Stage::Failed;
            let order = is_stray.then(|| "answers nothing that was asked".to_owned());
            return (None, order);
        };
        let is_late = has_id && asked.open == 0;
        let order =
            is_late.then(|| format!("comes behind the end of what line {} asked", asked.line));
        asked.is_answered |= place.stage != Stage::Partial;
        if ends(place.protocol, place.kind, place.stage) {
            asked.open = asked.open.saturating_sub(1);
        }
        (Some(asked.answered(place.at)), order)
    }

    /// Returns what is wrong with an entry, in a few words.
    pub(super) fn problem(&self, entry: &Entry<'_>, explained: &Explained) -> Option<String> {
        match entry.kind {
            Kind::Text | Kind::Sse => {
                if let Some(fault) = &explained.fault {
                    return Some(format!("not a valid frame: {}", fault.error));
                }
                if explained.order.is_some() {
                    return explained.order.clone();
                }
                if explained.unknown_kind {
                    return Some("the kind is not known".to_owned());
                }
                match &explained.unknown[..] {
                    _ if explained.failed => Some("says that it failed".to_owned()),
                    [] => None,
                    [path] => Some(format!("the member `{path}` is not known")),
                    [path, ..] => Some(format!("the member `{path}` and others are not known")),
                }
            }
            Kind::Http if entry.from == Some(Side::Server) => {
                let status = status(&entry.data)?;
                (status >= 400).then(|| format!("HTTP status {status}"))
            }
            Kind::Binary => Some("a binary message: only text is allowed".to_owned()),
            Kind::Close => {
                let code = entry.code.filter(|code| !USUAL.contains(code))?;
                Some(format!("closed with {code}"))
            }
            Kind::Eof => {
                let is_cut = self.is_socket && !self.is_closed;
                is_cut.then(|| "ended without a Close".to_owned())
            }
            Kind::Fault => Some("done on purpose by the proxy".to_owned()),
            // What the proxy says of a connection.
            Kind::Note if entry.conn > 0 => Some(entry.data.to_string()),
            _ => None,
        }
    }
}

impl Asked {
    fn answered(&self, now: Duration) -> Answers {
        Answers {
            line: self.line,
            kind: self.kind.clone(),
            after: now.saturating_sub(self.at),
        }
    }
}

fn status(head: &str) -> Option<u16> {
    head.split(' ').nth(1)?.get(..3)?.parse().ok()
}
