//! [`Recording`]: a transcript as what has to be played and what has to come.

use std::time::Duration;

use super::Difference;
use crate::testing::Side;
use crate::testing::transcript::{BadLine, Entry, Header, Item, Kind, Reader};

/// A transcript that can be replayed.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Recording {
    /// The first line.
    pub header: Header,
    /// The connections, in the order in which they were opened.
    pub connections: Vec<Script>,
}

/// What passed on one connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Script {
    /// The number of the connection in the recording.
    pub number: u32,
    /// The line of its first entry, from 1.
    pub line: usize,
    /// The time of its first entry.
    pub at: Duration,
    /// The path and the query of the request; empty if they are not recorded.
    pub path: String,
    /// The head of the request, verbatim, its body behind it; empty if only the path is recorded.
    pub request: String,
    /// The head of the answer, verbatim; empty if it is not recorded.
    pub answer: String,
    /// Whether this is a plain HTTP request and not a WebSocket.
    pub is_plain: bool,
    pub(super) steps: Vec<Step>,
}

/// One thing that a side did.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) line: usize,
    pub(super) at: Duration,
    pub(super) from: Side,
    pub(super) act: Act,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Act {
    Text(String),
    Binary(Vec<u8>),
    Close(Option<u16>, String),
    Eof,
}

impl Recording {
    /// Parses a file.
    ///
    /// # Errors
    /// The first line that is none of a transcript, or cannot be played.
    pub fn parse(text: &str) -> Result<Self, BadLine> {
        let (mut this, mut reader) = (Self::default(), Reader::new());
        for line in text.lines() {
            match reader.read(line)? {
                Some(Item::Header(header)) => this.header = header,
                Some(Item::Entry(entry)) => this.add(reader.line_number(), &entry)?,
                None => {}
            }
        }
        // Nothing but an attempt that never became a connection.
        this.connections
            .retain(|script| !script.request.is_empty() || !script.steps.is_empty());
        Ok(this)
    }

    fn add(&mut self, line: usize, entry: &Entry<'_>) -> Result<(), BadLine> {
        let Some(from) = entry.from else {
            return Ok(());
        };
        let known = self
            .connections
            .iter()
            .position(|it| it.number == entry.conn);
        let place = known.unwrap_or_else(|| {
            self.connections.push(Script {
                number: entry.conn,
                line,
                at: entry.at,
                path: String::new(),
                request: String::new(),
                answer: String::new(),
                is_plain: false,
                steps: Vec::new(),
            });
            self.connections.len() - 1
        });
        let bad = || BadLine {
            line,
            why: "the digits of the payload are not hexadecimal".to_owned(),
        };
        let Some(script) = self.connections.get_mut(place) else {
            return Ok(());
        };
        let data = || entry.data.clone().into_owned();
        let act = match entry.kind {
            Kind::Text | Kind::Sse => Act::Text(data()),
            Kind::Binary => Act::Binary(entry.payload().ok_or_else(bad)?),
            // Some libraries report an end without a Close as this code.
            Kind::Close if entry.code == Some(1006) => Act::Eof,
            Kind::Close => Act::Close(entry.code.filter(|code| *code != 1005), data()),
            // A client of plain HTTP may close when it likes.
            Kind::Eof if script.is_plain && from == Side::Client => return Ok(()),
            Kind::Eof => Act::Eof,
            Kind::Open => {
                script.path = data();
                return Ok(());
            }
            Kind::Http => {
                script.head(from, &entry.data, line, entry.at);
                return Ok(());
            }
            Kind::Body if from == Side::Client => {
                script.request.push_str(&entry.data);
                return Ok(());
            }
            Kind::Body => {
                script.body(&entry.data, line, entry.at);
                return Ok(());
            }
            // Transports answer pings, and programs send them by their own clocks.
            _ => return Ok(()),
        };
        script.steps.push(Step {
            line,
            at: entry.at,
            from,
            act,
        });
        Ok(())
    }
}

impl Script {
    fn head(&mut self, from: Side, head: &str, line: usize, at: Duration) {
        if from == Side::Client {
            let target = head.split(' ').nth(1).unwrap_or_default();
            self.path = target.split("\r\n").next().unwrap_or_default().to_owned();
            head.clone_into(&mut self.request);
            self.is_plain = header(head, "upgrade").is_none();
        } else if self.answer.is_empty() || self.is_interim() {
            let (head, body) = head.split_once("\r\n\r\n").unwrap_or((head, ""));
            self.answer = format!("{head}\r\n\r\n");
            if !body.is_empty() && self.is_plain {
                self.body(body, line, at);
            }
        }
    }

    /// Adds a piece of the answer's body, which is compared as a whole.
    fn body(&mut self, piece: &str, line: usize, at: Duration) {
        if !self.is_plain {
            return;
        }
        if let Some(Step {
            act: Act::Text(body),
            from: Side::Server,
            ..
        }) = self.steps.last_mut()
        {
            body.push_str(piece);
            return;
        }
        self.steps.push(Step {
            line,
            at,
            from: Side::Server,
            act: Act::Text(piece.to_owned()),
        });
    }

    /// Lets the end of an answer follow its last piece, for clients that are told no length. The recorded one
    /// was, and may have gone on at another connection before the end was recorded, if it was at all.
    pub(super) fn hasten_end(&mut self) {
        if !self.is_plain || self.is_stream() {
            return;
        }
        let end = self.steps.pop_if(|step| step.act == Act::Eof);
        let last = self.steps.last();
        let line = last.map_or(self.line, |step| step.line);
        let at = end
            .or_else(|| last.cloned())
            .map_or(self.at, |step| step.at);
        self.steps.push(Step {
            line,
            at,
            from: Side::Server,
            act: Act::Eof,
        });
    }

    /// Returns whether the answer is a stream of server-sent events.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        let kind = self.answer_header("content-type");
        kind.is_some_and(|kind| kind.starts_with("text/event-stream"))
    }

    /// Returns the status of the answer; `None` if it is not recorded.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        let status = self.answer.split_once(' ')?.1;
        status.get(..3)?.parse().ok()
    }

    /// Returns whether another answer follows: the recorded one says "continue", or gives hints.
    fn is_interim(&self) -> bool {
        matches!(self.status(), Some(100 | 102..200))
    }

    /// Returns whether the upgrade to a WebSocket was refused.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        !self.is_plain && self.status().is_some_and(|status| status != 101)
    }

    /// Returns the value of a header of the request; of several, the first.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        header(&self.request, name)
    }

    /// Returns the value of a header of the answer; of several, the first.
    #[must_use]
    pub fn answer_header(&self, name: &str) -> Option<&str> {
        header(&self.answer, name)
    }

    /// Returns the text messages of a side, in their order.
    pub fn texts(&self, from: Side) -> impl Iterator<Item = &str> {
        let steps = self.steps.iter().filter(move |step| step.from == from);
        steps.filter_map(|step| match &step.act {
            Act::Text(text) => Some(text.as_str()),
            _ => None,
        })
    }

    /// Returns the body of the request.
    #[must_use]
    pub fn body_of_request(&self) -> &str {
        let parts = self.request.split_once("\r\n\r\n");
        parts.map_or("", |(_, body)| body)
    }
}

impl Script {
    /// Returns what is wrong with the way in which this connection was opened.
    #[must_use]
    pub fn differs(&self, what: impl Into<String>) -> Difference {
        Difference {
            line: self.line,
            connection: self.number,
            what: what.into(),
            changes: Vec::new(),
        }
    }
}

fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let head = head.split("\r\n\r\n").next()?;
    head.split("\r\n").skip(1).find_map(|line| {
        let (known, value) = line.split_once(':')?;
        known.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}
