//! [`decode`]: each frame of a transcript on a line, with what is wrong with it.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::io::{self, BufRead, Read as _, Write};
use std::time::Duration;

use rpc_core::testing::Side;
use rpc_core::testing::transcript::{BadLine, Entry, Item, Reader};
use serde::Serialize;

use super::explain::{Explained, Explainer};
use super::place::place;
use super::{Protocol, direction};
use crate::screen::{Colour, printable};

/// The longest line of a transcript, in bytes.
const MAX_LINE: u64 = 256 * 1024 * 1024;
/// The longest description of a frame, in characters, unless all is wanted.
const WIDTH: usize = 100;
/// As many as kinds have characters at least.
const BLANKS: &str = "                    ";
/// The most tenths of a millisecond that are exact as a fraction.
const MAX_TENTHS: u64 = 1 << 40;

/// What is shown of a transcript, and how.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The protocol. Without it, the one that the transcript names, or its frames show.
    pub protocol: Option<Protocol>,
    /// Whether only frames are shown that are wrong or not wholly known.
    pub problems: bool,
    /// Whether passwords, tokens, signatures and the like are shown.
    pub show_secrets: bool,
    /// Whether long frames are shown to their end.
    pub full: bool,
    /// Whether lines are JSON objects.
    pub json: bool,
    /// Whether words have colours; JSON has none.
    pub colour: bool,
}

/// What was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// The entries.
    pub entries: usize,
    /// Those that are not wholly known.
    pub unknown: usize,
    /// Those with errors.
    pub faults: usize,
    /// Lines that are none of a transcript.
    pub bad: usize,
}

/// A line of the output as JSON.
#[derive(Serialize)]
struct Line<'a> {
    line: usize,
    at: f64,
    conn: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    dir: Option<&'static str>,
    entry: &'static str,
    #[serde(flatten)]
    explained: &'a Explained,
}

/// Explains each entry of a transcript on a line of `out`, and gives lines that are none of a transcript to
/// `bad`.
///
/// # Errors
/// The input cannot be read, or the output not be written.
pub fn decode(
    options: &Options,
    mut input: impl BufRead,
    out: &mut impl Write,
    mut bad: impl FnMut(&BadLine),
) -> io::Result<Count> {
    let mut explainer = Explainer::new(options.protocol, options.show_secrets);
    if !options.full && !options.json {
        explainer = explainer.shortening();
    }
    let (mut reader, mut count) = (Reader::new(), Count::default());
    let mut bytes = Vec::new();
    let mut words = Words {
        colour: options.colour,
        ..Words::default()
    };
    loop {
        bytes.clear();
        if input
            .by_ref()
            .take(MAX_LINE)
            .read_until(b'\n', &mut bytes)?
            == 0
        {
            return Ok(count);
        }
        // The check that most lines pass is much faster.
        let line = match std::str::from_utf8(&bytes) {
            Ok(line) => Cow::Borrowed(line),
            Err(_) => String::from_utf8_lossy(&bytes),
        };
        let entry = match reader.read(&line) {
            Ok(Some(Item::Entry(entry))) => entry,
            Ok(Some(Item::Header(header))) => {
                explainer.begin(header.protocol.as_deref().and_then(Protocol::parse));
                continue;
            }
            Ok(_) => continue,
            Err(error) => {
                count.bad += 1;
                bad(&error);
                continue;
            }
        };
        let explained = explainer.explain(reader.line_number(), &entry);
        count.entries += 1;
        count.faults += usize::from(explained.fault.is_some());
        count.unknown += usize::from(explained.unknown_kind || !explained.unknown.is_empty());
        if options.problems && !explained.is_problem() {
            continue;
        }
        if options.json {
            json(out, reader.line_number(), &entry, &explained)?;
        } else {
            let text = words.of(reader.line_number(), &entry, &explained, options.full);
            out.write_all(text.as_bytes())?;
        }
    }
}

fn json(
    out: &mut impl Write,
    line: usize,
    entry: &Entry<'_>,
    explained: &Explained,
) -> io::Result<()> {
    let line = Line {
        line,
        at: entry.at.as_secs_f64(),
        conn: entry.conn,
        dir: entry.from.map(direction),
        entry: entry.kind.name(),
        explained,
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}

/// A writer of entries in words, which uses its memory again.
#[derive(Default)]
struct Words {
    text: String,
    colour: bool,
}

impl Words {
    /// Returns the lines of one entry, each with its end.
    fn of(&mut self, line: usize, entry: &Entry<'_>, explained: &Explained, full: bool) -> &str {
        self.text.clear();
        self.begin(Colour::Dim);
        self.number(u64::try_from(line).unwrap_or(u64::MAX), 5, b' ');
        self.text.push(' ');
        self.number(entry.at.as_secs(), 3, b' ');
        self.text.push('.');
        self.number(entry.at.subsec_micros().into(), 6, b'0');
        self.text.push(' ');
        self.number(entry.conn.into(), 3, b' ');
        self.end();
        self.text.push_str(match entry.from {
            Some(Side::Client) => " -> ",
            Some(Side::Server) => " <- ",
            None => "  * ",
        });
        self.begin(Colour::Cyan);
        let kind = printable(&explained.kind);
        self.text.push_str(&kind);
        let width = if kind.is_ascii() {
            kind.len()
        } else {
            kind.chars().count()
        };
        self.text.push_str(BLANKS.get(width..).unwrap_or_default());
        self.end();
        self.text.push(' ');
        // A character takes one place or more: those behind are not looked at.
        let head = match full {
            true => &*explained.words,
            false => first(&explained.words, WIDTH + 1),
        };
        let words = printable(head);
        match first(&words, WIDTH) {
            short if short.len() < words.len() && !full => {
                self.text.push_str(short.trim_start());
                self.text.push('…');
            }
            _ => self.text.push_str(words.trim_start()),
        }
        if let Some(asked) = &explained.answers {
            self.begin(Colour::Dim);
            self.text.push_str("  [");
            self.text.push_str(&printable(&asked.kind));
            self.text.push_str(" of line ");
            self.number(u64::try_from(asked.line).unwrap_or(u64::MAX), 1, b' ');
            self.text.push_str(", ");
            self.millis(asked.after);
            self.text.push_str(" ms]");
            self.end();
        }
        if explained.unknown_kind {
            self.below(Colour::Yellow, "? the kind is not known");
        }
        for path in &explained.unknown {
            let path = printable(path);
            self.below(
                Colour::Yellow,
                &format!("? the member `{path}` is not known"),
            );
        }
        if let Some(fault) = &explained.fault {
            self.below(Colour::Red, &format!("! {}", printable(&fault.error)));
            let (place, column) = place(&entry.data, fault.at, explained.redacted);
            self.below(Colour::Dim, &format!("  {place}"));
            self.below(Colour::Red, &format!("  {}^", " ".repeat(column)));
            if explained.redacted {
                self.below(Colour::Dim, "  --show-secrets shows it as it is");
            }
        }
        self.text.push('\n');
        &self.text
    }

    fn paint(&mut self, colour: Colour, words: fmt::Arguments<'_>) {
        self.begin(colour);
        // Writing to a string does not fail.
        let _ = self.text.write_fmt(words);
        self.end();
    }

    fn begin(&mut self, colour: Colour) {
        if self.colour {
            colour.begin(&mut self.text);
        }
    }

    fn end(&mut self) {
        if self.colour {
            Colour::end(&mut self.text);
        }
    }

    /// Adds a number that takes at least so many places, up to 20.
    fn number(&mut self, mut number: u64, width: usize, filler: u8) {
        let mut digits = [filler; 20];
        let mut len = 0;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + u8::try_from(number % 10).unwrap_or(0);
            number /= 10;
            len += 1;
            if number == 0 {
                break;
            }
        }
        let from = digits.len().saturating_sub(len.max(width));
        let digits = str::from_utf8(digits.get(from..).unwrap_or_default());
        self.text.push_str(digits.unwrap_or_default());
    }

    /// Adds a time in milliseconds, with one digit behind the point.
    fn millis(&mut self, time: Duration) {
        let (tenths, rest) = (time.as_nanos() / 100_000, time.as_nanos() % 100_000);
        match u64::try_from(tenths) {
            // In the middle, what a fraction is nearest to decides.
            Ok(tenths) if rest.abs_diff(50_000) > 100 && tenths < MAX_TENTHS => {
                let tenths = tenths + u64::from(rest > 50_000);
                self.number(tenths / 10, 1, b' ');
                self.text.push('.');
                self.number(tenths % 10, 1, b' ');
            }
            _ => {
                let _ = write!(self.text, "{:.1}", time.as_secs_f64() * 1000.0);
            }
        }
    }

    /// Adds a line below.
    fn below(&mut self, colour: Colour, words: &str) {
        self.text.push_str("\n      ");
        self.paint(colour, format_args!("{words}"));
    }
}

/// Returns the first characters of a text.
fn first(text: &str, count: usize) -> &str {
    // Hardly any text has others than ASCII.
    match text.as_bytes().get(..count) {
        None => text,
        Some(head) if head.is_ascii() => text.get(..count).unwrap_or(text),
        Some(_) => {
            let end = text.char_indices().nth(count);
            end.and_then(|(at, _)| text.get(..at)).unwrap_or(text)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rpc_core::testing::Transcript;
    use rpc_core::testing::transcript::{Kind, VERSION};

    use super::*;

    fn decoded(text: &str, options: &Options) -> String {
        let mut out = Vec::new();
        decode(options, text.as_bytes(), &mut out, |_| {}).unwrap();
        String::from_utf8(out).unwrap()
    }

    const RUN: &str = r#"{"transcript":1,"protocol":"exoclaw"}
{"at":0.001,"conn":1,"dir":"s2c","kind":"text","data":"{\"ok\":true,\"version\":\"0.1.0\"}"}
{"at":0.002,"conn":1,"dir":"c2s","kind":"text","data":"{\"id\":\"1\",\"method\":\"ping\",\"mood\":1}"}
{"at":0.004,"conn":1,"dir":"s2c","kind":"text","data":"{\"id\":\"1\",\"result\":\"p\\u001b[2Jong\"}"}
{"at":0.005,"conn":1,"dir":"s2c","kind":"text","data":"{\"id\":\"1\",\"event\":7}"}
{"at":0.006,"conn":1,"dir":"c2s","kind":"close","code":1000}
"#;

    #[test]
    fn each_frame_is_a_line_and_what_is_wrong_stands_below() {
        let expected = r#"    2   0.001000   1 <- hello                hello, version 0.1.0
    3   0.002000   1 -> ping                 #1 ping
      ? the member `mood` is not known
    4   0.004000   1 <- result               #1 ping: "p\u001b[2Jong"  [ping of line 3, 2.0 ms]
"#;
        let text = decoded(RUN, &Options::default());
        assert!(text.starts_with(expected), "{text}");
        let (_, rest) = text.split_at(expected.len());
        let lines: Vec<_> = rest.lines().collect();
        let [_, error, place, caret, close] = lines[..] else {
            panic!("{text}")
        };
        assert!(error.contains("! member `event` is not"), "{text}");
        let at = caret.find('^').unwrap();
        assert!(place.is_char_boundary(at) && place.len() >= at, "{text}");
        assert!(close.ends_with("close                1000"), "{text}");
    }

    #[test]
    fn only_problems_are_shown_if_wanted() {
        let text = decoded(
            RUN,
            &Options {
                problems: true,
                ..Options::default()
            },
        );
        let numbers: Vec<_> = text
            .lines()
            .filter(|it| !it.starts_with("      "))
            .collect();
        assert_eq!(numbers.len(), 2, "{text}");
    }

    #[test]
    fn with_json_each_line_is_an_object() {
        let text = decoded(
            RUN,
            &Options {
                json: true,
                ..Options::default()
            },
        );
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let lines: Vec<serde_json::Value> = lines.collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[1]["unknown"][0], "mood");
        assert_eq!(lines[2]["answers"]["line"], 3);
        assert!(lines[3]["fault"]["at"].is_u64(), "{text}");
    }

    #[test]
    fn numbers_and_kinds_stand_below_each_other() {
        let colours = Words {
            colour: true,
            ..Words::default()
        };
        for mut words in [Words::default(), colours] {
            for (line, seconds, micros, conn) in [
                (1, 0, 0, 1),
                (99_999, 999, 999_999, 999),
                (123_456, 1_000, 10, 4_294_967_295),
            ] {
                for kind in ["ping", "é", "chat.event/tool-result-of-many"] {
                    let at = Duration::new(seconds, micros * 1000);
                    let entry = Entry::new(at, conn, Some(Side::Client), Kind::Text, "");
                    let mut explained = Explainer::new(None, true).explain(1, &entry);
                    (explained.kind, explained.words) = (kind.to_owned(), "said".to_owned());
                    let place = format!("{line:>5} {seconds:>3}.{micros:06} {conn:>3}");
                    let padded = format!("{kind:<20}");
                    let expected = match words.colour {
                        true => format!(
                            "{} -> {} said\n",
                            Colour::Dim.paint(&place),
                            Colour::Cyan.paint(&padded)
                        ),
                        false => format!("{place} -> {padded} said\n"),
                    };
                    assert_eq!(words.of(line, &entry, &explained, false), expected);
                }
            }
        }
    }

    #[test]
    fn milliseconds_are_as_fractions_show_them() {
        for micros in (0..5000).chain([999_949, 999_950, 999_951, 86_400_123_450]) {
            for nanos in [0, 1, 450, 999] {
                let time = Duration::from_micros(micros) + Duration::from_nanos(nanos);
                let mut words = Words::default();
                words.millis(time);
                assert_eq!(words.text, format!("{:.1}", time.as_secs_f64() * 1000.0));
            }
        }
    }

    /// The recordings among the test data of all protocols.
    fn recordings(folder: &Path, found: &mut Vec<Transcript>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                recordings(&path, found);
            } else if path.extension().is_some_and(|it| it == "jsonl") {
                let text = std::fs::read_to_string(&path).unwrap();
                // Some files are none.
                found.extend(Transcript::parse(&text));
            }
        }
    }

    #[test]
    fn recordings_are_decoded_the_same_in_whatever_form_they_are_written() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut found = Vec::new();
        for protocol in ["acolyte", "connectonion", "exoclaw"] {
            let tests = root.join(format!("{protocol}-proto/tests"));
            recordings(&tests.join("vectors"), &mut found);
            recordings(&tests.join("transcripts"), &mut found);
        }
        assert!(found.len() > 80, "{}", found.len());
        for mut recording in found {
            recording.header.transcript = VERSION;
            let written = recording.to_string();
            // White space that says nothing.
            let other = written.replace("{\"at\":", "{ \"at\":");
            for (show_secrets, full, json) in [
                (false, false, false),
                (true, true, false),
                (false, false, true),
            ] {
                let options = Options {
                    show_secrets,
                    full,
                    json,
                    ..Options::default()
                };
                assert_eq!(decoded(&written, &options), decoded(&other, &options));
            }
        }
    }
}
