//! [`parse`]: transcripts, and the recordings of this workspace that are older than their format.
//!
//! Three programs wrote them, each in a way of its own. What they have in common: a line is an
//! object with `dir` or `event`, perhaps with the time `t` and the connection `conn`.

use std::borrow::Cow;
use std::time::Duration;

use data_encoding::HEXLOWER;

use rpc_core::Json;
use rpc_core::json::each_member;
use rpc_core::testing::Side;

use crate::transcript::{BadLine, Entry, Header, Item, Kind, Reader, Transcript};

/// Parses a recording of either form.
///
/// # Errors
/// The first line that has neither.
pub(crate) fn parse(text: &str) -> Result<Transcript, BadLine> {
    let (mut reader, mut earlier) = (Reader::default(), Earlier::default());
    let mut transcript = Transcript::new(Header::new());
    for line in text.lines() {
        let item = match reader.read(line) {
            Err(error) => Some(earlier.read(line).ok_or(error)?),
            Ok(item) => item,
        };
        match item {
            Some(Item::Header(header)) => transcript.header = header,
            Some(Item::Entry(entry)) => transcript.entries.push(entry.into_owned()),
            _ => {}
        }
    }
    Ok(transcript)
}

/// What has to be remembered from line to line.
#[derive(Default)]
struct Earlier {
    /// The last connection of a recording that does not number them.
    last: u32,
}

/// The members of a line that matter, raw.
#[derive(Default)]
struct Members<'a> {
    all: Vec<(Cow<'a, str>, &'a str)>,
}

impl<'a> Members<'a> {
    fn raw(&self, name: &str) -> Option<&'a str> {
        let found = self.all.iter().find(|(known, _)| known == name);
        found.map(|(_, raw)| *raw).filter(|raw| *raw != "null")
    }

    fn text(&self, name: &str) -> Option<String> {
        let json = Json::new(self.raw(name)?).ok()?;
        json.as_str().map(Cow::into_owned)
    }

    fn first_text(&self, names: &[&str]) -> String {
        let mut found = names.iter().filter_map(|name| self.text(name));
        found.next().unwrap_or_default()
    }

    /// Returns the code of a Close, if there is one; `None` if it is not a number.
    fn code(&self) -> Option<Option<u16>> {
        match self.raw("code") {
            Some(raw) => raw.parse().ok().map(Some),
            None => Some(None),
        }
    }
}

impl Earlier {
    /// Reads a line; `None` if it is of no kind that there was.
    fn read<'a>(&mut self, line: &'a str) -> Option<Item<'a>> {
        let mut members = Members::default();
        each_member(line, |name, raw| members.all.push((name, raw))).ok()?;
        if let Some(header) = members.raw("header") {
            let peer = Json::new(header).ok()?.member("peer");
            let server = peer.and_then(|peer| peer.as_str().map(Cow::into_owned));
            let mut header = Header::new();
            header.server = server;
            return Some(Item::Header(header));
        }
        let dir = members.text("dir");
        let from = match dir.as_deref() {
            Some("c2s") => Some(Side::Client),
            Some("s2c") => Some(Side::Server),
            _ => None,
        };
        let entry = |from, kind, data: String| {
            let at = time(&members);
            Entry::new(at, 1, from, kind, data)
        };
        let is_note = dir.as_deref() == Some("note") || members.raw("note").is_some();
        let mut entry = if is_note {
            let text = members.first_text(&["note", "text", "data"]);
            entry(None, Kind::Note, text)
        } else if let Some(event) = members.text("event").filter(|_| from.is_none()) {
            let (from, kind, data) = happened(&event, &members)?;
            entry(Some(from), kind, data).with_code(members.code()?)
        } else {
            let from = from?;
            let (kind, data) = frame(&members)?;
            entry(Some(from), kind, data).with_code(members.code()?)
        };
        entry.conn = self.connection(&members, &entry);
        Some(Item::Entry(entry))
    }

    /// Returns the connection of a line: a number, or a letter, or what the requests before tell.
    fn connection(&mut self, members: &Members<'_>, entry: &Entry<'_>) -> u32 {
        let named = members.raw("conn");
        if let Some(number) = named.and_then(|raw| raw.parse().ok()) {
            return number;
        }
        let letter = named.and_then(|raw| raw.as_bytes().get(1).copied());
        if let Some(letter) = letter.filter(u8::is_ascii_lowercase) {
            return 1 + u32::from(letter - b'a');
        }
        if entry.kind == Kind::Http && entry.from == Some(Side::Client) {
            self.last += 1;
        }
        self.last.max(1)
    }
}

fn time(members: &Members<'_>) -> Duration {
    let time: f64 = members
        .raw("t")
        .and_then(|raw| raw.parse().ok())
        .unwrap_or(0.0);
    // Only one of the programs had milliseconds: the one that names kinds, but does not count lines.
    let is_millis = members.raw("kind").is_some() && members.raw("n").is_none();
    let seconds = if is_millis { time / 1000.0 } else { time };
    Duration::try_from_secs_f64(seconds).unwrap_or_default()
}

/// What happened to a connection.
fn happened(event: &str, members: &Members<'_>) -> Option<(Side, Kind, String)> {
    Some(match event {
        "open" => {
            let path = members.first_text(&["path", "url_path"]);
            (Side::Client, Kind::Open, path)
        }
        "closed_by_client" => (Side::Client, Kind::Close, String::new()),
        "closed_by_host" | "closed_by_server" => {
            (Side::Server, Kind::Close, members.first_text(&["reason"]))
        }
        "cut" | "tcp_dropped_by_client" => (Side::Client, Kind::Eof, String::new()),
        "rejected" => {
            let status = members.raw("status").unwrap_or("403");
            (
                Side::Server,
                Kind::Http,
                format!("HTTP/1.1 {status}\r\n\r\n"),
            )
        }
        _ => return None,
    })
}

/// What one side sent.
fn frame(members: &Members<'_>) -> Option<(Kind, String)> {
    let kind = members.text("kind");
    Some(match kind.as_deref() {
        None | Some("text") => {
            if let Some(bytes) = members.text("binary") {
                return Some((Kind::Binary, HEXLOWER.encode(bytes.as_bytes())));
            }
            let raw = members.raw("frame").or_else(|| members.raw("msg"));
            let text = raw.map(str::to_owned);
            let text = text.or_else(|| members.text("raw"));
            (Kind::Text, text.or_else(|| members.text("data"))?)
        }
        Some("sse") => (Kind::Sse, members.raw("data")?.to_owned()),
        Some("open") => {
            let line = members.text("data")?;
            let path = line.strip_prefix("GET ").unwrap_or(&line);
            (Kind::Open, path.to_owned())
        }
        Some("http") => (
            Kind::Http,
            format!("HTTP/1.1 {}\r\n\r\n", members.text("data")?),
        ),
        Some("http-request" | "http-response") => (Kind::Http, head(members)?),
        Some("close") => (Kind::Close, members.first_text(&["reason"])),
        Some("eof") => (Kind::Eof, String::new()),
        Some(_) => return None,
    })
}

/// An HTTP message from its parts.
fn head(members: &Members<'_>) -> Option<String> {
    let mut head = members.text("line")?;
    let headers: Vec<(String, String)> = Json::new(members.raw("headers")?).ok()?.parse().ok()?;
    for (name, value) in headers {
        head = format!("{head}\r\n{name}: {value}");
    }
    Some(format!("{head}\r\n\r\n{}", members.first_text(&["body"])))
}
