//! [`Output`]: what a program has said, cut to a length.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::process::ExitStatus;

use memchr::{memchr, memchr_iter, memrchr_iter};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{ChildStderr, ChildStdout};

/// The longest line, in bytes.
const MAX_LINE: usize = 2_000;
/// So many of the first lines are kept, and so many of the last: there the errors are.
const FIRST: usize = 200;
const LAST: usize = 300;
/// So many bytes are read at once: what a pipe holds.
const PIECE: usize = 64 * 1024;

/// Where a line was said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// A line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it was said.
    pub stream: Stream,
    /// Its text, without the end of the line.
    pub text: String,
}

/// What a program has said, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Output {
    /// The exit code; `None` if it was killed.
    pub code: Option<i32>,
    /// The first lines.
    pub first: Vec<Line>,
    /// How many lines are left out after them.
    pub left_out: usize,
    /// The last lines.
    pub last: Vec<Line>,
}

impl Output {
    /// The lines with a word about those that are left out, and about the code if it is not 0: for models
    /// to read.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for line in &self.first {
            let _ = writeln!(text, "{}", line.text);
        }
        if self.left_out > 0 {
            let _ = writeln!(text, "({} lines left out)", self.left_out);
        }
        for line in &self.last {
            let _ = writeln!(text, "{}", line.text);
        }
        match self.code {
            Some(0) => {}
            Some(code) => {
                let _ = writeln!(text, "(exit code {code})");
            }
            None => text.push_str("(killed)\n"),
        }
        text
    }
}

/// What is heard of a program.
#[derive(Debug, Default)]
pub(super) struct Heard {
    first: Vec<Line>,
    left_out: usize,
    last: VecDeque<Line>,
    /// What has no end yet.
    parts: [Vec<u8>; 2],
}

impl Heard {
    /// Listens until both have ended.
    pub(super) async fn listen(&mut self, out: Option<ChildStdout>, err: Option<ChildStderr>) {
        let (mut out, mut err) = (out, err);
        let (mut one, mut other) = (vec![0; PIECE], vec![0; PIECE]);
        while out.is_some() || err.is_some() {
            tokio::select! {
                read = read(&mut out, &mut one) => match read {
                    Some(bytes) => self.push(Stream::Out, bytes),
                    None => out = None,
                },
                read = read(&mut err, &mut other) => match read {
                    Some(bytes) => self.push(Stream::Err, bytes),
                    None => err = None,
                },
            }
            // A program that says much is not to keep whoever aborts it waiting.
            tokio::task::yield_now().await;
        }
    }

    fn push(&mut self, stream: Stream, bytes: &[u8]) {
        let mut rest = self.skip(stream, bytes);
        while let Some(end) = memchr(b'\n', rest) {
            let (text, more) = rest.split_at(end);
            self.extend(stream, text);
            self.end_line(stream);
            rest = more.get(1..).unwrap_or_default();
        }
        self.extend(stream, rest);
    }

    /// Counts the lines that will not be among the last ones, and leaves the rest: they may be millions, and
    /// are not looked at one by one.
    fn skip<'b>(&mut self, stream: Stream, bytes: &'b [u8]) -> &'b [u8] {
        let whole = memchr_iter(b'\n', bytes).count();
        if self.first.len() < FIRST || whole <= LAST {
            return bytes;
        }
        let end = memrchr_iter(b'\n', bytes).nth(LAST).unwrap_or_default();
        self.left_out += self.last.len() + whole - LAST;
        self.last.clear();
        self.part(stream).clear();
        bytes.get(end + 1..).unwrap_or_default()
    }

    fn extend(&mut self, stream: Stream, text: &[u8]) {
        let part = self.part(stream);
        let room = MAX_LINE.saturating_sub(part.len()).min(text.len());
        part.extend_from_slice(text.get(..room).unwrap_or_default());
    }

    fn part(&mut self, stream: Stream) -> &mut Vec<u8> {
        let [out, err] = &mut self.parts;
        match stream {
            Stream::Out => out,
            Stream::Err => err,
        }
    }

    fn end_line(&mut self, stream: Stream) {
        let bytes = std::mem::take(self.part(stream));
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end_matches('\r').to_owned();
        let line = Line { stream, text };
        if self.first.len() < FIRST {
            self.first.push(line);
            return;
        }
        self.last.push_back(line);
        if self.last.len() > LAST {
            self.last.pop_front();
            self.left_out += 1;
        }
    }

    fn end_lines(&mut self) {
        for stream in [Stream::Out, Stream::Err] {
            if !self.part(stream).is_empty() {
                self.end_line(stream);
            }
        }
    }

    pub(super) fn finish(mut self, status: ExitStatus) -> Output {
        self.end_lines();
        Output {
            code: status.code(),
            first: self.first,
            left_out: self.left_out,
            last: self.last.into(),
        }
    }

    /// The last line, for a program that was killed.
    pub(super) fn finish_early(mut self) -> String {
        self.end_lines();
        let last = self.last.back().or(self.first.last());
        last.map_or(String::new(), |line| {
            format!("; it last said: {}", line.text)
        })
    }
}

/// The next bytes; `None` at the end, and for ever if there is nothing to read from.
async fn read<'b>(
    from: &mut Option<impl AsyncRead + Unpin>,
    buffer: &'b mut [u8],
) -> Option<&'b [u8]> {
    let Some(from) = from else {
        return std::future::pending().await;
    };
    match from.read(buffer).await {
        Ok(length @ 1..) => buffer.get(..length),
        _ => None,
    }
}
