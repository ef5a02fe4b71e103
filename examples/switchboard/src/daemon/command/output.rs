//! [`Output`]: the output of a program, cut to a length.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::process::ExitStatus;
use std::time::Duration;

use acolyte_proto::event::{ShellOutput, ShellStream};
use memchr::{memchr, memchr_iter, memrchr, memrchr_iter};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::time::{Instant, sleep_until};

use super::Network;

/// The longest line, in bytes.
const MAX_LINE: usize = 2_000;
/// How many of the first lines to keep, and how many of the last, which have the errors.
const FIRST: usize = 200;
const LAST: usize = 300;
/// After the first lines, the time between two looks at what a program says, and how many lines are
/// shown each time.
const PACE: Duration = Duration::from_secs(1);
const SHOWN: usize = 10;
/// The bytes to read at once: the size of a pipe.
const PIECE: usize = 64 * 1024;

/// The newest output of a program, for people who watch it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct News {
    /// What follows what was shown before.
    pub first: Vec<ShellOutput>,
    /// How many lines are omitted after that.
    pub left_out: usize,
    /// The last lines.
    pub last: Vec<ShellOutput>,
}

impl News {
    /// Returns whether there is nothing new.
    pub const fn is_empty(&self) -> bool {
        self.first.is_empty() && self.left_out == 0 && self.last.is_empty()
    }
}

/// What the one who started a server in the background should know.
const LEFT: &str =
    "(what it left running was ended with it: start a server and what needs it in one command)";

/// The output of a program, and its exit code.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Output {
    /// The exit code. If a signal killed it, on Linux 128 plus the signal's number, as in shells,
    /// and elsewhere `None`.
    pub code: Option<i32>,
    /// The first lines.
    pub first: Vec<ShellOutput>,
    /// How many lines are omitted after them.
    pub left_out: usize,
    /// The last lines.
    pub last: Vec<ShellOutput>,
    /// What of it was not shown while the program ran.
    pub news: News,
    /// The network that the program had.
    pub network: Network,
    /// Whether it tried to reach what is not in that network.
    pub lacks_network: bool,
    /// Whether it left something running, which was ended with it.
    pub left_running: bool,
    /// What it needed to read or write, and which option opens that.
    pub lacks: Option<String>,
}

impl Output {
    /// Returns a remark about what the program needed more of than it had, and about what it left running.
    pub fn remark(&self) -> Option<String> {
        let network = self.lacks_network.then(|| self.network.remark());
        let left = self.left_running.then_some(LEFT);
        let remarks: Vec<_> = [network, self.lacks.as_deref(), left]
            .into_iter()
            .flatten()
            .collect();
        (!remarks.is_empty()).then(|| remarks.join("\n"))
    }

    /// Returns the lines as text for models, with notes about omitted lines, a missing network, and
    /// an exit code other than 0.
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
        if let Some(remark) = self.remark() {
            let _ = writeln!(text, "{remark}");
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

/// The output of a running program.
#[derive(Debug, Default)]
pub(super) struct Capture {
    first: Vec<ShellOutput>,
    left_out: usize,
    last: VecDeque<ShellOutput>,
    /// The incomplete line of each stream.
    parts: [Vec<u8>; 2],
    /// Unprocessed output of a program that writes very much, in place of the last lines and one
    /// part.
    flood: Option<(ShellStream, Vec<u8>)>,
    /// How many lines were shown, or omitted.
    reported: usize,
}

impl Capture {
    /// Reads until both streams have ended. The first lines are shown as they come, and then the
    /// newest ones each second.
    pub(super) async fn listen(
        &mut self,
        mut out: Option<impl AsyncRead + Unpin>,
        mut err: Option<impl AsyncRead + Unpin>,
        show: &mut (dyn FnMut(News) + Send),
    ) {
        let (mut one, mut other) = (vec![0; PIECE], vec![0; PIECE]);
        let mut due = Instant::now();
        while out.is_some() || err.is_some() {
            if self.reported < FIRST || due <= Instant::now() {
                due = Instant::now() + PACE;
                let news = self.news(SHOWN);
                if !news.is_empty() {
                    show(news);
                }
            }
            tokio::select! {
                () = sleep_until(due), if self.count() > self.reported => {}
                read = read(&mut out, &mut one) => match read {
                    Some(bytes) => self.push(ShellStream::Stdout, bytes),
                    None => out = None,
                },
                read = read(&mut err, &mut other) => match read {
                    Some(bytes) => self.push(ShellStream::Stderr, bytes),
                    None => err = None,
                },
            }
            // A program with much output must not delay its abort.
            tokio::task::yield_now().await;
        }
    }

    /// Returns how many lines have come, without those of a flood that were not looked at.
    fn count(&self) -> usize {
        self.first.len() + self.left_out + self.last.len()
    }

    /// Returns the lines that were not shown yet, of those after the first ones at most so many.
    fn news(&mut self, most: usize) -> News {
        self.end_flood();
        let first = self.first.get(self.reported..).unwrap_or_default().to_vec();
        let fresh = self.count() - self.reported.max(self.first.len());
        let shown = most.min(fresh).min(self.last.len());
        self.reported = self.count();
        let last = self.last.iter().skip(self.last.len() - shown);
        News {
            first,
            left_out: fresh - shown,
            last: last.cloned().collect(),
        }
    }

    fn push(&mut self, stream: ShellStream, bytes: &[u8]) {
        if self.flood.as_ref().is_some_and(|(from, _)| *from != stream) {
            self.end_flood();
        }
        let whole = memchr_iter(b'\n', bytes).count();
        if self.first.len() < FIRST || whole <= LAST {
            self.end_flood();
            self.push_lines(stream, bytes);
            return;
        }
        // Most of these lines are left out, maybe millions after them as well: none is looked at.
        let left = memrchr_iter(b'\n', bytes).nth(LAST);
        let last = left.and_then(|end| bytes.get(end + 1..));
        let (_, mut flood) = match self.flood.take() {
            Some(flood) => {
                self.left_out += LAST;
                flood
            }
            None => (stream, Vec::with_capacity(PIECE)),
        };
        flood.clear();
        flood.extend_from_slice(last.unwrap_or_default());
        self.flood = Some((stream, flood));
        self.left_out += self.last.len() + whole - LAST;
        self.last.clear();
        self.part(stream).clear();
    }

    fn end_flood(&mut self) {
        if let Some((stream, bytes)) = self.flood.take() {
            self.push_lines(stream, &bytes);
        }
    }

    fn push_lines(&mut self, stream: ShellStream, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some(end) = memchr(b'\n', rest) {
            let (text, more) = rest.split_at(end);
            self.extend(stream, text);
            self.end_line(stream);
            rest = more.get(1..).unwrap_or_default();
        }
        self.extend(stream, rest);
    }

    fn extend(&mut self, stream: ShellStream, text: &[u8]) {
        let part = self.part(stream);
        // What is written over is not kept, however often that happens.
        if part.len() + text.len() > MAX_LINE
            && let Some(back) = memrchr(b'\r', text.strip_suffix(b"\r").unwrap_or(text))
        {
            let (before, after) = text.split_at(back);
            part.extend_from_slice(before);
            *part = [shown(part).0.as_bytes(), after].concat();
            part.truncate(MAX_LINE + 1);
            return;
        }
        // One more byte tells that the line is longer.
        let room = (MAX_LINE + 1).saturating_sub(part.len()).min(text.len());
        part.extend_from_slice(text.get(..room).unwrap_or_default());
    }

    fn part(&mut self, stream: ShellStream) -> &mut Vec<u8> {
        let [out, err] = &mut self.parts;
        match stream {
            ShellStream::Stdout => out,
            ShellStream::Stderr => err,
        }
    }

    fn end_line(&mut self, stream: ShellStream) {
        let mut bytes = std::mem::take(self.part(stream));
        let is_cut = bytes.len() > MAX_LINE;
        bytes.truncate(MAX_LINE);
        let (mut text, up) = shown(&bytes);
        // The program writes over these.
        for _ in 0..up.min(self.count()) {
            match self.left_out {
                0 if self.last.is_empty() => drop(self.first.pop()),
                _ => drop(self.last.pop_back()),
            }
        }
        self.reported = self.reported.min(self.count());
        if is_cut {
            text.push('…');
        }
        let line = ShellOutput {
            stream,
            text: text.into(),
        };
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
        self.end_flood();
        for stream in [ShellStream::Stdout, ShellStream::Stderr] {
            if !self.part(stream).is_empty() {
                self.end_line(stream);
            }
        }
    }

    pub(super) fn finish(mut self, status: ExitStatus) -> Output {
        self.end_lines();
        let news = self.news(LAST);
        Output {
            news,
            code: status.code(),
            first: self.first,
            left_out: self.left_out,
            last: self.last.into(),
            ..Output::default()
        }
    }

    /// Returns the last line, for a program that was killed.
    pub(super) fn finish_early(mut self) -> String {
        self.end_lines();
        let last = self.last.back().or(self.first.last());
        last.map_or(String::new(), |line| {
            format!("; it last said: {}", line.text)
        })
    }
}

/// A line of a terminal.
#[derive(Default)]
struct Row {
    cells: Vec<char>,
    at: usize,
    /// How many lines above the last one it is.
    up: usize,
}

impl vte::Perform for Row {
    fn print(&mut self, letter: char) {
        if self.at >= self.cells.len() {
            self.cells.resize(self.at + 1, ' ');
        }
        if let Some(cell) = self.cells.get_mut(self.at) {
            *cell = letter;
        }
        self.at = MAX_LINE.min(self.at + 1);
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            b'\r' => self.at = 0,
            b'\x08' => self.at = self.at.saturating_sub(1),
            b'\t' => self.print('\t'),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, numbers: &vte::Params, _: &[u8], _: bool, action: char) {
        let number = numbers.iter().next().and_then(|it| it.first());
        let number = number.map_or(0, |it| usize::from(*it));
        match (action, number) {
            ('K', 0) => self.cells.truncate(self.at),
            ('K', 1) => {
                let end = self.cells.len().min(self.at + 1);
                self.cells.splice(..end, vec![' '; end]);
            }
            ('K', _) => self.cells.clear(),
            ('A' | 'F', lines) => self.up += lines.max(1),
            ('B' | 'E', lines) => self.up = self.up.saturating_sub(lines.max(1)),
            ('G', column) => self.at = MAX_LINE.min(column.max(1) - 1),
            ('C', columns) => self.at = MAX_LINE.min(self.at + columns.max(1)),
            ('D', columns) => self.at = self.at.saturating_sub(columns.max(1)),
            _ => {}
        }
    }
}

/// Returns what a terminal shows in the end of a line: no colours, and nothing that was written over; and how many
/// lines above the last one it is.
fn shown(line: &[u8]) -> (String, usize) {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if !line.iter().any(|byte| b"\r\x08\x1b".contains(byte)) {
        return (String::from_utf8_lossy(line).into_owned(), 0);
    }
    let mut row = Row::default();
    vte::Parser::new().advance(&mut row, line);
    (row.cells.into_iter().collect(), row.up)
}

/// Reads the next bytes. Returns `None` at the end, and always if there is no stream.
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

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use futures_util::FutureExt as _;
    use tokio::io::{AsyncWriteExt as _, ReadBuf};

    use super::*;

    fn finished(captured: Capture) -> Output {
        captured.finish(ExitStatus::default())
    }

    /// Always has more lines, and counts how often it was asked.
    #[derive(Default)]
    struct Flood(usize);

    impl AsyncRead for Flood {
        fn poll_read(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            into: &mut ReadBuf<'_>,
        ) -> Poll<std::io::Result<()>> {
            self.0 += 1;
            into.put_slice(&b"y\n".repeat(into.remaining() / 2));
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_flood_leaves_others_a_turn_after_each_piece() {
        let (mut flood, mut captured) = (Flood::default(), Capture::default());
        {
            let mut show = drop;
            let mut listening =
                Box::pin(captured.listen(Some(&mut flood), None::<Flood>, &mut show));
            for _ in 0..10 {
                assert_eq!(listening.as_mut().now_or_never(), None);
            }
        }
        assert_eq!(flood.0, 10);
    }

    #[test]
    fn omitted_lines_are_counted_and_not_examined() {
        let (mut captured, piece) = (Capture::default(), b"x\n".repeat(PIECE / 2));
        for _ in 0..100 {
            captured.push(ShellStream::Stdout, &piece);
        }
        // The first piece was looked at; nothing of the others was, and all is bounded.
        assert!(captured.last.is_empty());
        assert_eq!(captured.flood.as_ref().unwrap().1.len(), 2 * LAST);
        let output = finished(captured);
        assert_eq!((output.first.len(), output.last.len()), (FIRST, LAST));
        assert_eq!(output.left_out, 100 * PIECE / 2 - FIRST - LAST);
    }

    #[tokio::test(start_paused = true)]
    async fn lines_are_shown_while_the_program_runs() {
        let (mut program, pipe) = tokio::io::duplex(PIECE);
        let (mut captured, start) = (Capture::default(), Instant::now());
        let mut shown = Vec::new();
        let mut show = |news: News| {
            let texts = |lines: Vec<ShellOutput>| lines.into_iter().map(|line| line.text).collect();
            let (first, last): (Vec<_>, Vec<_>) = (texts(news.first), texts(news.last));
            shown.push((start.elapsed().as_secs(), first, news.left_out, last));
        };
        let writing = async {
            program.write_all(b"one\nhalf").await.unwrap();
            tokio::time::sleep(PACE * 3).await;
            program.write_all(b" a line\n").await.unwrap();
            tokio::time::sleep(PACE * 3).await;
            program.write_all(&b"x\n".repeat(FIRST)).await.unwrap();
            program.write_all(&b"y\n".repeat(20)).await.unwrap();
            tokio::time::sleep(PACE * 3).await;
            program.write_all(b"z\n").await.unwrap();
            drop(program);
        };
        tokio::join!(
            writing,
            captured.listen(Some(pipe), None::<Flood>, &mut show)
        );
        assert!(finished(captured).news.is_empty());
        let line = |text: &str| vec![rpc_core::Str::from(text)];
        assert_eq!(shown[0], (0, line("one"), 0, vec![]));
        assert_eq!(shown[1], (3, line("half a line"), 0, vec![]));
        let (at, first, left_out, last) = &shown[2];
        assert_eq!((*at, first.len(), *left_out, last.len()), (6, 198, 12, 10));
        assert_eq!(shown[3], (9, vec![], 0, line("z")));
        assert_eq!(shown.len(), 4);
    }

    #[test]
    fn an_endless_line_is_not_kept_whole() {
        let (mut captured, piece) = (Capture::default(), vec![b'x'; PIECE]);
        for _ in 0..100 {
            captured.push(ShellStream::Stderr, &piece);
        }
        assert!(captured.parts.iter().all(|part| part.len() <= MAX_LINE + 1));
        let text = &finished(captured).first[0].text;
        assert_eq!(text.strip_suffix('…').unwrap().len(), MAX_LINE);
    }

    #[test]
    fn a_line_is_what_a_terminal_shows_in_the_end() {
        for (written, expected) in [
            (
                "\x1b[1;31mred\x1b[0m and \x1b]8;;http://a\x07link\x1b]8;;\x07\r",
                "red and link",
            ),
            ("10%\r20%\r100%", "100%"),
            ("a long text\r\x1b[Kshort", "short"),
            ("\x1b[2K\x1b[1Gagain", "again"),
            ("wrong\x08\x08\x08\x08\x08right", "right"),
            ("a\tb \u{e9}\u{4f60}", "a\tb \u{e9}\u{4f60}"),
        ] {
            let mut captured = Capture::default();
            captured.push(ShellStream::Stdout, written.as_bytes());
            assert_eq!(finished(captured).first[0].text, expected, "{written:?}");
        }
        let mut captured = Capture::default();
        for step in 0..100_000 {
            captured.push(ShellStream::Stdout, format!("\r{step} of 99999").as_bytes());
        }
        captured.push(ShellStream::Stdout, b"\n");
        assert_eq!(finished(captured).first[0].text, "99999 of 99999");
        let mut captured = Capture::default();
        captured.push(ShellStream::Stdout, b"two files\na: 0%\nb: 0%\n");
        for step in 1..=100 {
            let bars = format!("\x1b[2A\x1b[Ka: {step}%\n\x1b[Kb: {step}%\n");
            captured.push(ShellStream::Stdout, bars.as_bytes());
            captured.news(SHOWN);
        }
        let lines = finished(captured).first;
        let lines: Vec<_> = lines.iter().map(|line| line.text.to_string()).collect();
        assert_eq!(lines, ["two files", "a: 100%", "b: 100%"]);
    }

    #[test]
    fn pieces_of_any_size_make_the_same_lines() {
        let out: String = (0..5_000).map(|number| format!("{number}\n")).collect();
        let err: String = (0..2_000).map(|number| format!("e{number}\n")).collect();
        let heard_in = |size: usize| {
            let mut captured = Capture::default();
            captured.push(ShellStream::Stderr, b"begin");
            for piece in out.as_bytes().chunks(size) {
                captured.push(ShellStream::Stdout, piece);
            }
            for piece in err.as_bytes().chunks(size) {
                captured.push(ShellStream::Stderr, piece);
            }
            captured.push(ShellStream::Stdout, b"the end");
            finished(captured)
        };
        let expected = heard_in(7);
        assert_eq!(expected.left_out, 7_001 - FIRST - LAST);
        assert_eq!(expected.last.last().unwrap().text, "the end");
        for size in [1, 100, 1_999, 20_000, 100_000] {
            assert_eq!(heard_in(size), expected, "{size}");
        }
    }
}
