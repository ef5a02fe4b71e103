//! [`Recorder`]: the transcript that a proxy writes.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use crate::lock;
use crate::transcript::{Entry, Header, Kind};
use rpc_core::testing::Side;
use rpc_core::{Limits, sse};

use super::scan::{Message, Scanner};

/// The longest line with the size of a chunk that is read.
const MAX_SIZE_LINE: usize = 256;

/// A writer of a transcript, for all connections. Clones write to the same one.
#[derive(Clone)]
pub(crate) struct Recorder {
    out: Arc<Mutex<Out>>,
    start: Instant,
}

struct Out {
    out: Box<dyn Write + Send>,
    line: String,
    failed: Option<io::Error>,
}

impl Recorder {
    /// Begins a transcript.
    pub(crate) fn new(out: impl Write + Send + 'static, header: &Header) -> Self {
        let mut line = String::new();
        header.write(&mut line);
        let mut out: Box<dyn Write + Send> = Box::new(out);
        let failed = out.write_all(line.as_bytes()).err();
        Self {
            out: Arc::new(Mutex::new(Out { out, line, failed })),
            start: Instant::now(),
        }
    }

    /// Writes an entry. An error stays for [`flush`](Self::flush).
    pub(crate) fn entry(
        &self,
        conn: u32,
        from: Option<Side>,
        kind: Kind,
        data: &str,
        code: Option<u16>,
    ) {
        let mut out = lock(&self.out);
        let Out { out, line, failed } = &mut *out;
        if failed.is_some() {
            return;
        }
        line.clear();
        // In the lock, so that times do not go back from line to line.
        let at = self.start.elapsed();
        Entry::new(at, conn, from, kind, data)
            .with_code(code)
            .write(line);
        *failed = out.write_all(line.as_bytes()).err();
    }

    /// Writes everything out.
    ///
    /// # Errors
    /// The first error since the beginning: the transcript ends there.
    pub(crate) fn flush(&self) -> io::Result<()> {
        let mut out = lock(&self.out);
        match &out.failed {
            Some(error) => Err(io::Error::new(error.kind(), error.to_string())),
            None => out.out.flush(),
        }
    }
}

/// What one side of a connection sends, for a recorder.
pub(super) struct Tap {
    pub(super) recorder: Recorder,
    pub(super) conn: u32,
    pub(super) from: Side,
    stream: Stream,
    /// The chunks of the body, if it comes in some.
    chunks: Option<Chunks>,
    is_closed: bool,
}

enum Stream {
    WebSocket(Scanner),
    Sse(Box<sse::Decoder>),
    Body,
}

/// A remover of the chunks of a body.
#[derive(Default)]
struct Chunks {
    /// Bytes of the chunk that are still to come.
    left: u64,
    /// The line of a size so far.
    line: String,
}

impl Chunks {
    /// Calls `data` with the parts of the bytes that are not sizes.
    fn decode<'a>(&mut self, mut bytes: &'a [u8], mut data: impl FnMut(&'a [u8])) {
        while let Some(first) = bytes.first() {
            if self.left > 0 {
                let len = usize::try_from(self.left)
                    .unwrap_or(usize::MAX)
                    .min(bytes.len());
                let (part, rest) = bytes.split_at(len);
                data(part);
                self.left -= len as u64;
                bytes = rest;
                continue;
            }
            if *first == b'\n' {
                let size = self.line.split(';').next().unwrap_or_default().trim();
                self.left = u64::from_str_radix(size, 16).unwrap_or(0);
                self.line.clear();
            } else if self.line.len() < MAX_SIZE_LINE {
                self.line.push(char::from(*first));
            }
            bytes = bytes.get(1..).unwrap_or_default();
        }
    }
}

impl Tap {
    /// Reads the bytes of a side as messages.
    pub(super) fn web_socket(recorder: Recorder, conn: u32, from: Side) -> Self {
        Self {
            recorder,
            conn,
            from,
            stream: Stream::WebSocket(Scanner::default()),
            chunks: None,
            is_closed: false,
        }
    }

    /// Reads the bytes of a side as a body, or as server-sent events.
    pub(super) fn body(
        recorder: Recorder,
        conn: u32,
        from: Side,
        is_sse: bool,
        in_chunks: bool,
    ) -> Self {
        Self {
            stream: match is_sse {
                true => Stream::Sse(Box::new(sse::Decoder::new(&Limits::default()))),
                false => Stream::Body,
            },
            chunks: in_chunks.then(Chunks::default),
            ..Self::web_socket(recorder, conn, from)
        }
    }

    /// Records bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        let (recorder, conn, from) = (&self.recorder, self.conn, self.from);
        let (stream, is_closed) = (&mut self.stream, &mut self.is_closed);
        let mut record = |mut bytes: &[u8]| match stream {
            Stream::WebSocket(scanner) => {
                scanner.push(bytes);
                while let Some(message) = scanner.next_message() {
                    let Message { kind, data, code } = message;
                    *is_closed |= kind == Kind::Close;
                    recorder.entry(conn, Some(from), kind, &data, code);
                }
            }
            Stream::Sse(decoder) => {
                while let Some(event) = decoder.decode(&mut bytes) {
                    match event {
                        Ok(event) => recorder.entry(conn, Some(from), Kind::Sse, &event.data, None),
                        Err(error) => {
                            recorder.entry(conn, Some(from), Kind::Note, &error.to_string(), None);
                        }
                    }
                }
            }
            Stream::Body => {
                let text = String::from_utf8_lossy(bytes);
                recorder.entry(conn, Some(from), Kind::Body, &text, None);
            }
        };
        match &mut self.chunks {
            Some(chunks) => chunks.decode(bytes, record),
            None => record(bytes),
        }
    }

    /// Records the end of the stream.
    pub(super) fn end(&self) {
        if !self.is_closed {
            self.recorder
                .entry(self.conn, Some(self.from), Kind::Eof, "", None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunk_sizes_are_not_data() {
        let bytes = b"5;x=1\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\n\r\n";
        for step in [1, 4, 100] {
            let (mut chunks, mut all) = (Chunks::default(), Vec::new());
            for part in bytes.chunks(step) {
                chunks.decode(part, |data| all.extend_from_slice(data));
            }
            assert_eq!(all, b"hello 0123456789", "{step}");
        }
    }
}
