//! [`Entry`]: what passed between a client and a server, as a file that programs share.
//!
//! A transcript is a file of lines, each of them a JSON object. The first one is the header, every
//! other one an entry: a frame, or something else that happened to a connection.
//!
//! ```json
//! {"transcript":1,"protocol":"exoclaw","created":"2026-11-25T11:12:18Z","server":"ws://127.0.0.1:7200"}
//! {"at":0.000000,"conn":1,"dir":"c2s","kind":"open","data":"/ws"}
//! {"at":0.001250,"conn":1,"dir":"s2c","kind":"text","data":"{\"ok\":true,\"version\":\"0.1.0\"}"}
//! {"at":0.002000,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"1\",\"method\":\"ping\"}"}
//! {"at":0.950000,"conn":1,"dir":"c2s","kind":"close","code":1000,"data":"bye"}
//! ```
//!
//! | Member of the header | What it is |
//! |---|---|
//! | `transcript` | the version of this format: 1 |
//! | `protocol` | the protocol, in lower case |
//! | `created` | when the recording began, as in RFC 3339 |
//! | `client`, `server` | the peers, in any words; of a server usually its URL |
//!
//! | Member of an entry | What it is |
//! |---|---|
//! | `at` | seconds since the recording began |
//! | `conn` | the number of the connection, from 1 |
//! | `dir` | `c2s` if the client sent it, `s2c` if the server did; absent if neither |
//! | `kind` | one of the table below |
//! | `data` | the contents, by kind; empty if absent |
//! | `code` | the code of a Close |
//!
//! | `kind` | `data` |
//! |---|---|
//! | `open` | the path of a new WebSocket, if its `http` is not recorded |
//! | `http` | the head of a request or an answer, verbatim; its body may follow the empty line |
//! | `body` | a piece of the body of the last `http` |
//! | `sse` | the data of a server-sent event |
//! | `text` | a text message, verbatim |
//! | `binary`, `ping`, `pong` | the payload in hexadecimal digits |
//! | `close` | the reason; without a `code`, the Close had none |
//! | `eof` | empty: the connection ended without a Close |
//! | `fault` | what a proxy did to the connection on purpose |
//! | `note` | a remark |
//!
//! A reader ignores other members. A later version may change the meaning of those that are here,
//! and has another number.

mod written;

use std::borrow::Cow;
use std::fmt::Write as _;
use std::time::Duration;

use data_encoding::HEXLOWER_PERMISSIVE;
use rpc_core::encode::{encode, encode_into};
use rpc_core::testing::Side;
use rpc_core::{Limits, json};
use serde::{Deserialize, Serialize};

/// The version of the format.
pub(crate) const VERSION: u32 = 1;

/// The first line of a transcript.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Header {
    /// The version of the format.
    pub transcript: u32,
    /// The protocol, in lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// When the recording began, as in RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
    /// The client, in any words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The server, in any words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

rpc_core::words! {
    /// The kind of an [`Entry`].
    pub enum Kind {
        /// A new WebSocket.
        "open" => Open,
        /// The head of an HTTP message.
        "http" => Http,
        /// A piece of the body of an HTTP message.
        "body" => Body,
        /// A server-sent event.
        "sse" => Sse,
        /// A text message.
        "text" => Text,
        /// A binary message.
        "binary" => Binary,
        /// A Ping.
        "ping" => Ping,
        /// A Pong.
        "pong" => Pong,
        /// A Close.
        "close" => Close,
        /// The end of the connection without a Close.
        "eof" => Eof,
        /// A fault that a proxy injected.
        "fault" => Fault,
        /// A remark.
        "note" => Note,
    }
}

/// A line of a transcript: a frame, or something else that happened to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// The time since the recording began.
    pub at: Duration,
    /// The number of the connection, from 1.
    pub conn: u32,
    /// The sender; `None` if neither side sent it.
    pub from: Option<Side>,
    /// The kind of entry.
    pub kind: Kind,
    /// The contents: see the table [above](self).
    pub data: Cow<'a, str>,
    /// The code of a Close.
    pub code: Option<u16>,
}

impl<'a> Entry<'a> {
    /// Creates an entry.
    pub(crate) fn new(
        at: Duration,
        conn: u32,
        from: Option<Side>,
        kind: Kind,
        data: impl Into<Cow<'a, str>>,
    ) -> Self {
        Self {
            at,
            conn,
            from,
            kind,
            data: data.into(),
            code: None,
        }
    }

    /// Sets the [`code`](Self::code).
    pub(crate) const fn with_code(mut self, code: Option<u16>) -> Self {
        self.code = code;
        self
    }

    /// Returns the payload of a binary message, a Ping or a Pong; `None` if this is none of them, or
    /// its digits are not hexadecimal.
    pub(crate) fn payload(&self) -> Option<Vec<u8>> {
        let has_one = matches!(self.kind, Kind::Binary | Kind::Ping | Kind::Pong);
        let digits = self.data.as_bytes();
        HEXLOWER_PERMISSIVE.decode(digits).ok().filter(|_| has_one)
    }

    /// Copies what is borrowed.
    pub(crate) fn into_owned(self) -> Entry<'static> {
        Entry {
            data: Cow::Owned(self.data.into_owned()),
            ..self
        }
    }

    /// Appends the line, with its end.
    pub(crate) fn write(&self, line: &mut String) {
        let (seconds, micros) = (self.at.as_secs(), self.at.subsec_micros());
        // Writing to a string does not fail.
        let _ = write!(line, r#"{{"at":{seconds}.{micros:06},"conn":{}"#, self.conn);
        match self.from {
            Some(Side::Client) => line.push_str(r#","dir":"c2s""#),
            Some(Side::Server) => line.push_str(r#","dir":"s2c""#),
            None => {}
        }
        let _ = write!(line, r#","kind":"{}""#, self.kind.name());
        if let Some(code) = self.code {
            let _ = write!(line, r#","code":{code}"#);
        }
        if !self.data.is_empty() {
            line.push_str(r#","data":"#);
            // A text is always JSON.
            let _ = encode_into(&*self.data, line);
        }
        line.push_str("}\n");
    }
}

impl Header {
    /// Creates the header of a transcript that begins now.
    pub(crate) fn new() -> Self {
        Self {
            transcript: VERSION,
            ..Self::default()
        }
    }

    /// Appends the line, with its end.
    pub(crate) fn write(&self, line: &mut String) {
        if let Ok(text) = encode(self) {
            line.push_str(text.as_str());
        }
        line.push('\n');
    }
}

/// An invalid line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {why}")]
pub struct BadLine {
    /// The number of the line, from 1.
    pub line: usize,
    /// The reason, without contents of the line.
    pub why: String,
}

/// A line of a transcript.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Item<'a> {
    /// The header.
    Header(Header),
    /// An entry.
    Entry(Entry<'a>),
}

/// A reader of lines: for transcripts that are too large for memory, or not complete yet.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reader {
    line: usize,
}

/// The members of an entry.
#[derive(Deserialize)]
struct Line<'a> {
    at: f64,
    conn: u32,
    #[serde(borrow)]
    dir: Option<Cow<'a, str>>,
    kind: Kind,
    #[serde(borrow, default)]
    data: Cow<'a, str>,
    code: Option<u16>,
}

impl Reader {
    /// Returns the number of the last line, from 1.
    pub(crate) const fn line_number(&self) -> usize {
        self.line
    }

    /// Reads the next line; `None` if it is blank.
    ///
    /// # Errors
    /// [`BadLine`] if it is not a line of a transcript. The reader can go on with the next one.
    pub(crate) fn read<'a>(&mut self, line: &'a str) -> Result<Option<Item<'a>>, BadLine> {
        self.line += 1;
        // Some editors begin a file with a mark of its encoding.
        let line = match self.line {
            1 => line.strip_prefix('\u{feff}').unwrap_or(line),
            _ => line,
        };
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        // Hardly any line has another form.
        if let Some(entry) = written::entry(line) {
            return Ok(Some(Item::Entry(entry)));
        }
        let limits = Limits::unlimited();
        let bad = |why: String| BadLine {
            line: self.line,
            why,
        };
        let error = match json::decode::<Line<'a>>(line, &limits) {
            Ok(line) => {
                return line
                    .entry()
                    .map(|entry| Some(Item::Entry(entry)))
                    .map_err(bad);
            }
            Err(error) => error,
        };
        if let Ok(header) = json::decode::<Header>(line, &limits) {
            return match header.transcript {
                VERSION => Ok(Some(Item::Header(header))),
                other => Err(bad(format!(
                    "this is version {other} of the format, and only {VERSION} is known here"
                ))),
            };
        }
        Err(bad(format!("not a line of a transcript: {error}")))
    }
}

impl<'a> Line<'a> {
    fn entry(self) -> Result<Entry<'a>, String> {
        let from = match self.dir.as_deref() {
            Some("c2s") => Some(Side::Client),
            Some("s2c") => Some(Side::Server),
            None => None,
            Some(_) => return Err("`dir` is neither c2s nor s2c".to_owned()),
        };
        let at = Duration::try_from_secs_f64(self.at);
        let at = at.map_err(|_| "`at` is not a time".to_owned())?;
        // A float is not exact to the nanosecond.
        let micros = (at + Duration::from_nanos(500)).as_micros();
        let at = Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX));
        Ok(Entry::new(at, self.conn, from, self.kind, self.data).with_code(self.code))
    }
}

/// A whole transcript, as tests have it. Its [`Display`](std::fmt::Display) is the file.
#[cfg(test)]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Transcript {
    /// The first line.
    pub header: Header,
    /// The other lines.
    pub entries: Vec<Entry<'static>>,
}

#[cfg(test)]
impl Transcript {
    /// Creates a transcript without entries.
    pub(crate) const fn new(header: Header) -> Self {
        Self {
            header,
            entries: Vec::new(),
        }
    }

    /// Parses a file.
    ///
    /// # Errors
    /// The first invalid line.
    pub(crate) fn parse(text: &str) -> Result<Self, BadLine> {
        let (mut this, mut reader) = (Self::default(), Reader::default());
        for line in text.lines() {
            match reader.read(line)? {
                Some(Item::Header(header)) => this.header = header,
                Some(Item::Entry(entry)) => this.entries.push(entry.into_owned()),
                None => {}
            }
        }
        Ok(this)
    }
}

#[cfg(test)]
impl std::fmt::Display for Transcript {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut line = String::new();
        self.header.write(&mut line);
        for entry in &self.entries {
            f.write_str(&line)?;
            line.clear();
            entry.write(&mut line);
        }
        f.write_str(&line)
    }
}

#[cfg(test)]
pub(crate) mod tests;
