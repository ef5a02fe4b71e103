//! `switchboard wire decode`: each frame of a transcript on a line, with what is wrong with it.

use std::borrow::Cow;
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read as _, Write};
use std::path::PathBuf;

use examples::cli::{Failure, complain, wants_colour};
use examples::screen::{Colour, printable};
use examples::wire::explain::{Explained, Explainer};
use examples::wire::place::place;
use examples::wire::{Protocol, direction};
use rpc_core::testing::Side;
use rpc_core::testing::transcript::{BadLine, Entry, Item, Reader};
use serde::Serialize;

/// The longest line of a transcript, in bytes.
const MAX_LINE: u64 = 256 * 1024 * 1024;
/// The longest description of a frame, in characters, unless all is wanted.
const WIDTH: usize = 100;
/// Most lines that are none of a transcript and are still named.
const MAX_NAMED: usize = 5;

/// Explains each frame of a transcript on a line: time, direction, kind, what it says and which line
/// it answers. Below it stand unknown members, and errors with their place.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The transcript, or '-' for standard input.
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The protocol. Default: the one that the transcript names, or its frames show.
    #[arg(long)]
    protocol: Option<Protocol>,
    /// Show only frames that are wrong or not wholly known.
    #[arg(long)]
    problems: bool,
    /// Show passwords, tokens, signatures and the like.
    #[arg(long)]
    show_secrets: bool,
    /// Show long frames to their end.
    #[arg(long)]
    full: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    json: bool,
}

/// What was found, for the last line.
#[derive(Default)]
struct Count {
    entries: usize,
    unknown: usize,
    faults: usize,
    bad: usize,
}

/// A line of the output with `--json`.
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

pub(super) fn run(args: &Args) -> Result<(), Failure> {
    let name = args.file.display();
    let input: Box<dyn BufRead> = if args.file.as_os_str() == "-" {
        Box::new(io::stdin().lock())
    } else {
        let file = File::open(&args.file);
        let file = file.map_err(|error| Failure::usage(format_args!("{name}: {error}")))?;
        Box::new(BufReader::with_capacity(256 * 1024, file))
    };
    let colour = wants_colour(&io::stdout()) && !args.json;
    let mut out = BufWriter::with_capacity(256 * 1024, io::stdout().lock());
    let done = decode(args, input, &mut out, colour).and_then(|count| out.flush().map(|()| count));
    let count = match done {
        Ok(count) => count,
        // The reader has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
        Err(error) => return Err(Failure::new(format_args!("{name}: {error}"))),
    };
    let Count {
        entries,
        unknown,
        faults,
        bad,
    } = count;
    complain(format_args!(
        "{entries} entries: {faults} with errors, {unknown} not wholly known"
    ));
    match bad {
        0 => Ok(()),
        _ => Err(Failure::new(format_args!(
            "{name}: {bad} lines are not of a transcript"
        ))),
    }
}

fn decode(
    args: &Args,
    mut input: impl BufRead,
    out: &mut impl Write,
    colour: bool,
) -> io::Result<Count> {
    let mut explainer = Explainer::new(args.protocol, args.show_secrets);
    if !args.full && !args.json {
        explainer = explainer.shortening();
    }
    let (mut reader, mut count) = (Reader::new(), Count::default());
    let mut bytes = Vec::new();
    let mut words = Words {
        colour,
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
                count.note(&error);
                continue;
            }
        };
        let explained = explainer.explain(reader.line_number(), &entry);
        count.entries += 1;
        count.faults += usize::from(explained.fault.is_some());
        count.unknown += usize::from(explained.unknown_kind || !explained.unknown.is_empty());
        if args.problems && !explained.is_problem() {
            continue;
        }
        if args.json {
            json(out, reader.line_number(), &entry, &explained)?;
        } else {
            let text = words.of(reader.line_number(), &entry, &explained, args.full);
            out.write_all(text.as_bytes())?;
        }
    }
}

impl Count {
    fn note(&mut self, error: &BadLine) {
        self.bad += 1;
        if self.bad <= MAX_NAMED {
            complain(printable(&error.to_string()));
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
        let (at, conn) = (entry.at, entry.conn);
        let (seconds, micros) = (at.as_secs(), at.subsec_micros());
        self.paint(
            Colour::Dim,
            format_args!("{line:>5} {seconds:>3}.{micros:06} {conn:>3}"),
        );
        self.text.push_str(match entry.from {
            Some(Side::Client) => " -> ",
            Some(Side::Server) => " <- ",
            None => "  * ",
        });
        let kind = printable(&explained.kind);
        self.paint(Colour::Cyan, format_args!("{kind:<20}"));
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
            let after = asked.after.as_secs_f64() * 1000.0;
            let (line, kind) = (asked.line, printable(&asked.kind));
            self.paint(
                Colour::Dim,
                format_args!("  [{kind} of line {line}, {after:.1} ms]"),
            );
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
        // Writing to a string does not fail.
        let _ = match self.colour {
            true => self.text.write_str(&colour.paint(&words.to_string())),
            false => self.text.write_fmt(words),
        };
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
    use super::*;

    fn decoded(text: &str, args: &Args) -> String {
        let mut out = Vec::new();
        decode(args, text.as_bytes(), &mut out, false).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn args() -> Args {
        Args {
            file: "-".into(),
            protocol: None,
            problems: false,
            show_secrets: false,
            full: false,
            json: false,
        }
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
        let text = decoded(RUN, &args());
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
            &Args {
                problems: true,
                ..args()
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
            &Args {
                json: true,
                ..args()
            },
        );
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        let lines: Vec<serde_json::Value> = lines.collect();
        assert_eq!(lines.len(), 5);
        assert_eq!(lines[1]["unknown"][0], "mood");
        assert_eq!(lines[2]["answers"]["line"], 3);
        assert!(lines[3]["fault"]["at"].is_u64(), "{text}");
    }
}
