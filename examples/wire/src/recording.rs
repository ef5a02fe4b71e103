//! [`open`]: recordings as people have them: transcripts, also compressed with gzip, and HAR files of browsers.

use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::time::{Duration, UNIX_EPOCH};

use crate::transcript::{Entry, Header, Kind, hex};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::bufread::MultiGzDecoder;
use rpc_core::testing::Side;
use rpc_core::{Limits, sse, timestamp};
use serde_json::Value;

/// How much is read at once, in bytes.
const BUFFER: usize = 256 * 1024;
/// The longest line of a recording, in bytes.
const MAX_LINE: u64 = 256 * 1024 * 1024;
/// The largest HAR file, in bytes.
pub const MAX_HAR: u64 = 256 * 1024 * 1024;

/// Returns the lines of a recording, whatever it is stored in.
///
/// # Errors
/// It cannot be read.
pub fn open<'r>(input: impl Read + 'r) -> io::Result<Box<dyn BufRead + 'r>> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    let mut plain: Box<dyn BufRead + 'r> = match input.fill_buf()?.starts_with(b"\x1f\x8b") {
        true => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(input))),
        false => Box::new(input),
    };
    if !is_har(plain.fill_buf()?) {
        return Ok(plain);
    }
    let mut text = String::new();
    plain.take(MAX_HAR + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_HAR {
        return Err(io::Error::other("this HAR file is larger than 256 MiB"));
    }
    Ok(Box::new(Cursor::new(transcript(&text)?)))
}

/// Passes each line with its number, from 1.
///
/// # Errors
/// It cannot be read, or what takes the lines fails.
pub fn each_line(
    mut input: impl BufRead,
    mut take: impl FnMut(usize, &str) -> io::Result<()>,
) -> io::Result<()> {
    let mut bytes = Vec::new();
    for n in 1.. {
        bytes.clear();
        if input
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut bytes)?
            == 0
        {
            break;
        }
        // The check that most lines pass is much faster.
        match std::str::from_utf8(&bytes) {
            Ok(line) => take(n, line)?,
            Err(_) => take(n, &String::from_utf8_lossy(&bytes))?,
        }
    }
    Ok(())
}

/// Returns whether a file that begins with these bytes is one of HTTP archives.
fn is_har(begin: &[u8]) -> bool {
    let begin = begin.strip_prefix(b"\xef\xbb\xbf").unwrap_or(begin);
    let inner = begin.trim_ascii_start().strip_prefix(b"{");
    inner.is_some_and(|it| it.trim_ascii_start().starts_with(b"\"log\""))
}

/// Returns the WebSockets and the streams of events of a HAR file as a transcript.
fn transcript(har: &str) -> io::Result<String> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
    let har = har.strip_prefix('\u{feff}').unwrap_or(har);
    let har: Value = serde_json::from_str(har)
        .map_err(|error| wrong(format!("this HAR file cannot be read: {error}")))?;
    let mut entries = Vec::new();
    let mut conn = 0;
    for exchange in har
        .pointer("/log/entries")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
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
            let at = message
                .get("time")
                .and_then(Value::as_f64)
                .unwrap_or(started);
            let data = text(message, "/data");
            let bytes = || STANDARD.decode(data).unwrap_or_default();
            match message.get("opcode").and_then(Value::as_u64) {
                Some(2) => add(at, from, Kind::Binary, hex(&bytes()), None),
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
    let target = target
        .find('/')
        .and_then(|at| target.get(at..))
        .unwrap_or("/");
    let status = exchange
        .pointer("/response/status")
        .and_then(Value::as_u64)
        .unwrap_or(0);
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
    (
        head(
            format!("{} {target} HTTP/1.1", text(exchange, "/request/method")),
            "/request/headers",
        ),
        head(format!("HTTP/1.1 {status}"), "/response/headers"),
    )
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use crate::transcript::Transcript;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    const HAR: &str = r#"{"log":{"version":"1.2","entries":[
        {"startedDateTime":"2026-01-01T00:00:00.000Z","request":{"method":"GET","url":"https://h/page","headers":[]},"response":{"status":200,"headers":[],"content":{"mimeType":"text/html","text":"x"}}},
        {"startedDateTime":"2026-01-01T00:00:01.000Z","request":{"method":"GET","url":"wss://h/rpc.ws?a=1","headers":[{"name":"Host","value":"h"},{"name":":path","value":"/"}]},
         "response":{"status":101,"headers":[],"content":{}},"_webSocketMessages":[
            {"type":"send","time":1767225602.5,"opcode":1,"data":"{\"method\":\"login\"}"},
            {"type":"receive","time":1767225603,"opcode":2,"data":"AQI="}]},
        {"startedDateTime":"2026-01-01T00:00:04.000Z","request":{"method":"POST","url":"http://h/v1/chat/stream","headers":[]},
         "response":{"status":200,"headers":[],"content":{"mimeType":"text/event-stream","text":"data: {}\n\n"}}}]}}"#;

    fn read(bytes: &[u8]) -> io::Result<String> {
        let mut text = String::new();
        open(bytes)?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn compressed(text: &str) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn a_recording_is_read_compressed_or_not() {
        for text in ["", "x", "{\"transcript\":1}\n{}\n"] {
            assert_eq!(read(text.as_bytes()).unwrap(), text);
            assert_eq!(read(&compressed(text)).unwrap(), text);
        }
    }

    #[test]
    fn the_sockets_and_streams_of_a_browser_are_a_transcript() {
        for text in [
            read(HAR.as_bytes()).unwrap(),
            read(&compressed(HAR)).unwrap(),
        ] {
            let entries = Transcript::parse(&text).unwrap().entries;
            let entries: Vec<_> = entries
                .iter()
                .map(|it| {
                    (
                        it.at.as_secs_f32(),
                        it.conn,
                        it.kind,
                        it.data.split("\r\n").next().unwrap(),
                    )
                })
                .collect();
            assert_eq!(
                entries,
                [
                    (0.0, 1, Kind::Http, "GET /rpc.ws?a=1 HTTP/1.1"),
                    (0.0, 1, Kind::Http, "HTTP/1.1 101"),
                    (1.5, 1, Kind::Text, r#"{"method":"login"}"#),
                    (2.0, 1, Kind::Binary, "0102"),
                    (3.0, 2, Kind::Http, "POST /v1/chat/stream HTTP/1.1"),
                    (3.0, 2, Kind::Http, "HTTP/1.1 200"),
                    (3.0, 2, Kind::Sse, "{}"),
                ]
            );
            assert!(
                text.contains(r"Host: h\r\n") && !text.contains(":path"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_har_file_without_frames_is_reported() {
        for (text, why) in [
            (
                r#"{"log":{"entries":[]}}"#,
                "neither WebSockets nor streams",
            ),
            (r#" { "log": {"#, "cannot be read"),
        ] {
            let error = read(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
