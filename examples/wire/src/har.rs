//! [`transcript`] and [`Har`]: HTTP archives, as browsers save and open them, with their WebSockets and streams of events.

use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use rpc_core::testing::Side;
use rpc_core::{Limits, sse, timestamp};
use rustc_hash::FxHashMap;
use serde_json::{Value, json};

use crate::head::{Head, split};
use crate::secrets::{self, Shown};
use crate::transcript::{Entry, Header, Item, Kind, Reader};

/// Returns whether a file that begins with these bytes is one of HTTP archives.
pub(crate) fn is_har(begin: &[u8]) -> bool {
    let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin);
    let inner = begin.trim_ascii_start().strip_prefix(b"{");
    inner.is_some_and(|it| it.trim_ascii_start().starts_with(b"\"log\""))
}

/// Returns the WebSockets and the streams of events of a HAR file as a transcript.
pub(crate) fn transcript(har: &str) -> io::Result<String> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let har = har.strip_prefix('\u{feff}').unwrap_or(har);
    let har: Value = serde_json::from_str(har)
        .map_err(|error| wrong(format!("this HAR file cannot be read: {error}")))?;
    let (mut entries, mut conn) = (Vec::new(), 0);
    let exchanges = har.pointer("/log/entries").and_then(Value::as_array);
    for exchange in exchanges.into_iter().flatten() {
        let messages = exchange.get("_webSocketMessages").and_then(Value::as_array);
        let is_sse = text(exchange, "/response/content/mimeType").starts_with("text/event-stream");
        if messages.is_none() && !is_sse {
            continue;
        }
        conn += 1;
        let started = timestamp::parse(text(exchange, "/startedDateTime"));
        let started = started.and_then(|it| it.duration_since(UNIX_EPOCH).ok());
        let started = started.map_or(0.0, |it| it.as_secs_f64());
        let mut add = |at: f64, from, kind, data: String, code| {
            entries.push((at, conn, from, kind, data, code));
        };
        let (request, answer) = heads(exchange);
        add(started, Side::Client, Kind::Http, request, None);
        add(started, Side::Server, Kind::Http, answer, None);
        for message in messages.into_iter().flatten() {
            let from = match text(message, "/type") {
                "send" => Side::Client,
                _ => Side::Server,
            };
            let at = message["time"].as_f64().unwrap_or(started);
            let data = text(message, "/data");
            let bytes = || STANDARD.decode(data).unwrap_or_default();
            match message["opcode"].as_u64() {
                Some(2) => add(at, from, Kind::Binary, HEXLOWER.encode(&bytes()), None),
                Some(8) => add(at, from, Kind::Close, String::new(), None),
                _ => add(at, from, Kind::Text, data.to_owned(), None),
            }
        }
        let (mut decoder, mut body) = (
            sse::Decoder::new(&Limits::unlimited()),
            text(exchange, "/response/content/text").as_bytes(),
        );
        while is_sse && let Some(event) = decoder.decode(&mut body) {
            match event {
                Ok(event) => add(started, Side::Server, Kind::Sse, event.data, None),
                Err(error) => add(started, Side::Server, Kind::Note, error.to_string(), None),
            }
        }
    }
    if entries.is_empty() {
        let why = "this HAR file has neither WebSockets nor streams of events";
        return Err(wrong(why.to_owned()));
    }
    entries.sort_by(|one, other| one.0.total_cmp(&other.0));
    let first = entries.first().map_or(0.0, |it| it.0);
    let mut lines = String::new();
    Header::new().write(&mut lines);
    for (at, conn, from, kind, data, code) in entries {
        let at = Duration::try_from_secs_f64(at - first).unwrap_or_default();
        Entry::new(at, conn, Some(from), kind, data)
            .with_code(code)
            .write(&mut lines);
    }
    Ok(lines)
}

fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value
        .pointer(path)
        .and_then(Value::as_str)
        .unwrap_or_default()
}

/// Returns the heads of a request and of its answer.
fn heads(exchange: &Value) -> (String, String) {
    let url = text(exchange, "/request/url");
    let target = url.split_once("://").map_or(url, |(_, rest)| rest);
    let target = target.find('/').and_then(|at| target.get(at..));
    let target = target.unwrap_or("/");
    let status = exchange["response"]["status"].as_u64().unwrap_or(0);
    let head = |first: String, path: &str| {
        let headers = exchange.pointer(path).and_then(Value::as_array);
        let lines = headers.into_iter().flatten().filter_map(|header| {
            // Those of HTTP/2 stand in the first line.
            let name = text(header, "/name");
            let is_one = !name.starts_with(':');
            is_one.then(|| format!("{name}: {}\r\n", text(header, "/value")))
        });
        format!("{first}\r\n{}\r\n", lines.collect::<String>())
    };
    let method = text(exchange, "/request/method");
    let request = head(format!("{method} {target} HTTP/1.1"), "/request/headers");
    (
        request,
        head(format!("HTTP/1.1 {status}"), "/response/headers"),
    )
}

/// An HTTP archive that is being written, without secrets but for those that are shown.
#[derive(Debug, Default)]
pub(crate) struct Har {
    reader: Reader,
    /// When the recording began.
    start: Duration,
    exchanges: Vec<Value>,
    /// The place of the last one of each connection of the recording.
    last: FxHashMap<u32, usize>,
}

impl Har {
    /// Begins another recording.
    pub(crate) fn begin(&mut self) {
        self.reader = Reader::default();
        self.last.clear();
    }

    /// Adds a line of a recording. What is no line is left out.
    pub(crate) fn line(&mut self, line: &str, shown: &Shown) {
        let entry = match self.reader.read(line) {
            Ok(Some(Item::Entry(entry))) => entry,
            Ok(Some(Item::Header(header))) => {
                let created = header.created.as_deref().and_then(timestamp::parse);
                let created = created.and_then(|it| it.duration_since(UNIX_EPOCH).ok());
                self.start = created.unwrap_or_default();
                return;
            }
            _ => return,
        };
        let at = self.start + entry.at;
        let is_client = entry.from == Some(Side::Client);
        let is_opening = entry.kind == Kind::Open || entry.kind == Kind::Http && is_client;
        let last = self.last.get(&entry.conn).filter(|_| !is_opening);
        let place = last.copied().unwrap_or(self.exchanges.len());
        if place == self.exchanges.len() {
            let head = match entry.kind {
                Kind::Http => secrets::head(split(&entry.data).0),
                Kind::Open => format!("GET {} HTTP/1.1", secrets::within(&entry.data)),
                _ => "GET / HTTP/1.1".to_owned(),
            };
            self.exchanges.push(exchange(at, &Head::of(&head)));
            self.last.insert(entry.conn, place);
        }
        if let Some(exchange) = self.exchanges.get_mut(place).filter(|_| !is_opening) {
            add(exchange, &entry, at, shown);
        }
    }

    /// Returns the archive.
    pub(crate) fn text(self) -> String {
        let creator = json!({ "name": "switchboard wire", "version": env!("CARGO_PKG_VERSION") });
        let log = json!({ "version": "1.2", "creator": creator, "entries": self.exchanges });
        json!({ "log": log }).to_string()
    }
}

/// Returns an exchange that begins with this request.
fn exchange(at: Duration, head: &Head) -> Value {
    let target = head.target();
    // Whether it was answered, only what is recorded of HTTP says.
    let (host, status) = head
        .header("host")
        .map_or(("localhost", 101), |host| (host, 0));
    let is_socket = head.is_upgrade() || status == 101;
    let scheme = if is_socket { "ws" } else { "http" };
    json!({
        "startedDateTime": timestamp::format(SystemTime::UNIX_EPOCH + at),
        "time": 0,
        "request": {
            "method": head.method(), "url": format!("{scheme}://{host}{target}"), "httpVersion": "HTTP/1.1",
            "cookies": [], "headers": headers(head), "queryString": [], "headersSize": -1, "bodySize": -1,
        },
        "response": {
            "status": status, "statusText": "", "httpVersion": "HTTP/1.1", "cookies": [], "headers": [],
            "content": { "size": 0, "mimeType": "" }, "redirectURL": "", "headersSize": -1, "bodySize": -1,
        },
        "cache": {},
        "timings": { "send": 0, "wait": 0, "receive": 0 },
        "_webSocketMessages": [],
    })
}

fn headers(head: &Head) -> Vec<Value> {
    let headers = head.headers();
    headers
        .map(|(name, value)| json!({ "name": name, "value": value }))
        .collect()
}

/// Adds what came behind the request.
fn add(exchange: &mut Value, entry: &Entry<'_>, at: Duration, shown: &Shown) {
    let shown_text = || secrets::frame(&entry.data, shown);
    let (opcode, data) = match entry.kind {
        Kind::Http => {
            let head = Head::of(&secrets::head(split(&entry.data).0));
            let kind = head.header("content-type").unwrap_or_default();
            let response = &mut exchange["response"];
            response["status"] = head.status().into();
            response["headers"] = headers(&head).into();
            response["content"]["mimeType"] = kind.into();
            return;
        }
        Kind::Sse => {
            let content = &mut exchange["response"]["content"];
            let mut text = content["text"].as_str().unwrap_or_default().to_owned();
            for line in shown_text().lines() {
                text += &format!("data: {line}\n");
            }
            content["text"] = (text + "\n").into();
            return;
        }
        Kind::Text => (1, shown_text().into_owned()),
        Kind::Binary => {
            let payload = entry.payload().filter(|_| shown.is_all());
            (2, STANDARD.encode(payload.unwrap_or_default()))
        }
        Kind::Close => (8, String::new()),
        _ => return,
    };
    let is_client = entry.from == Some(Side::Client);
    let kind = if is_client { "send" } else { "receive" };
    if let Some(messages) = exchange["_webSocketMessages"].as_array_mut() {
        messages.push(
            json!({ "type": kind, "time": at.as_secs_f64(), "opcode": opcode, "data": data }),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_the_same_after_a_way_through_an_archive_but_for_its_secrets() {
        let lines = [
            r#"{"transcript":1,"created":"2026-01-01T00:00:00Z"}"#,
            r#"{"at":0.000000,"conn":1,"dir":"c2s","kind":"http","data":"GET /rpc.ws?token=hunter2 HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\n\r\n"}"#,
            r#"{"at":0.100000,"conn":1,"dir":"s2c","kind":"http","data":"HTTP/1.1 101 Switching\r\n\r\n"}"#,
            r#"{"at":1.500000,"conn":1,"dir":"c2s","kind":"text","data":"{\"method\":\"ping\"}"}"#,
            r#"{"at":2.000000,"conn":1,"dir":"s2c","kind":"text","data":"{\"token\":\"hunter2\"}"}"#,
            r#"{"at":3.000000,"conn":2,"dir":"c2s","kind":"http","data":"POST /v1/chat/stream HTTP/1.1\r\nHost: h\r\n\r\n"}"#,
            r#"{"at":3.000000,"conn":2,"dir":"s2c","kind":"http","data":"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"}"#,
            r#"{"at":3.500000,"conn":2,"dir":"s2c","kind":"sse","data":"{\"type\":\"done\"}"}"#,
        ];
        let mut har = Har::default();
        har.begin();
        for line in lines {
            har.line(line, &Shown::default());
        }
        let text = har.text();
        assert!(
            is_har(text.as_bytes()) && !text.contains("hunter2"),
            "{text}"
        );
        let back = transcript(&text).unwrap();
        let kinds: Vec<_> = back
            .lines()
            .skip(1)
            .map(|line| line.split("\"kind\":").nth(1).unwrap())
            .collect();
        assert_eq!(kinds.len(), 7, "{back}");
        assert!(
            kinds[2].starts_with("\"text\"") && kinds[6].starts_with("\"sse\""),
            "{back}"
        );
        assert!(back.contains(r#""at":1.500000"#), "{back}");
    }
}
