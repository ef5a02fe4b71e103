//! [`open`]: recordings as people have them: transcripts, also compressed with gzip, and HAR files of browsers.

use std::io::{self, BufRead, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use crate::har::{is_har, transcript};

/// How much is read at once, in bytes.
const BUFFER: usize = 256 * 1024;
/// The longest line of a recording, in bytes.
const MAX_LINE: u64 = 256 * 1024 * 1024;
/// The largest HAR file, in bytes.
pub(crate) const MAX_HAR: u64 = 256 * 1024 * 1024;

/// Returns the lines of a recording, whatever it is stored in.
///
/// # Errors
/// It cannot be read.
pub(crate) fn open<'r>(input: impl Read + 'r) -> io::Result<Box<dyn BufRead + 'r>> {
    let mut input = BufReader::with_capacity(BUFFER, input);
    let mut plain: Box<dyn BufRead + 'r> = match input.fill_buf()?.starts_with(b"\x1f\x8b") {
        true => Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(input))),
        false => Box::new(input),
    };
    if let [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [b'{', 0, ..] | [0, b'{', ..] = plain.fill_buf()? {
        return Err(io::Error::other("this file is UTF-16: write it as UTF-8"));
    }
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
pub(crate) fn each_line(
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

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use crate::transcript::{Kind, Transcript};
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
