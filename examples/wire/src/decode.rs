//! [`decode`]: each frame of a transcript on a line, with what is wrong with it.

use std::fmt::{self, Write as _};
use std::io::{self, BufRead, Write};
use std::time::Duration;

use crate::transcript::{BadLine, Entry};
use rpc_core::testing::Side;
use serde::Serialize;

use super::explain::{self, Explained, Explainer};
use super::order::Answers;
use super::place::place;
use super::recording::each_line;
use super::{Protocol, direction};
use crate::text::{Colour, printable};

/// The longest description of a frame, in characters, unless all is wanted.
const WIDTH: usize = 100;
/// As many as kinds have characters at least.
const BLANKS: &str = "                    ";
/// The most tenths of a millisecond that are exact as a fraction.
const MAX_TENTHS: u64 = 1 << 40;

/// What is shown of a transcript, and how.
#[derive(Clone, Copy, Debug, Default, clap::Args)]
pub struct Options {
    /// The protocol. Default: the one that the transcript names, or its frames show.
    #[arg(long)]
    pub protocol: Option<Protocol>,
    /// Show only what is wrong or not wholly known: also frames out of order, failures, and calls that were not
    /// answered.
    #[arg(long)]
    pub problems: bool,
    /// Show passwords, tokens, signatures and the like.
    #[arg(long)]
    pub show_secrets: bool,
    /// Show long frames to their end.
    #[arg(long)]
    pub full: bool,
    /// Print one JSON object a line.
    #[arg(long)]
    pub json: bool,
    /// Whether words have colours; JSON has none.
    #[arg(skip)]
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
    /// Those in which something went wrong, as on the page: errors and what is not known, frames out of order,
    /// failures, and unanswered calls.
    pub problems: usize,
    /// Invalid lines of a transcript.
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

/// Explains each entry of a transcript on a line of `out`, and gives lines that are not part of a transcript to
/// `bad`.
///
/// # Errors
/// The input cannot be read, or the output not be written.
pub fn decode(
    options: &Options,
    input: impl BufRead,
    out: &mut impl Write,
    mut bad: impl FnMut(&BadLine),
) -> io::Result<Count> {
    let mut explainer = Explainer::new(options.protocol, options.show_secrets);
    if !options.full && !options.json {
        explainer = explainer.shortening();
    }
    let (mut count, mut last) = (Count::default(), Duration::ZERO);
    let mut words = Words {
        colour: options.colour,
        ..Words::default()
    };
    each_line(input, |n, line| {
        let (entry, explained) = match explainer.read(n, line) {
            Ok(Some(explain::Line::Entry(entry, explained))) => (entry, explained),
            Ok(_) => return Ok(()),
            Err(error) => {
                count.bad += 1;
                bad(&error);
                return Ok(());
            }
        };
        count.entries += 1;
        last = entry.at;
        count.problems += usize::from(explained.problem.is_some()) + explained.unanswered.len();
        count.faults += usize::from(explained.fault.is_some());
        count.unknown += usize::from(explained.is_unknown());
        match options.json {
            _ if options.problems && !explained.is_problem() => Ok(()),
            true => json(out, n, &entry, &explained),
            false => out.write_all(words.of(n, &entry, &explained, options.full).as_bytes()),
        }
    })?;
    let unanswered = explainer.unanswered(last);
    count.problems += unanswered.len();
    match options.json {
        _ if unanswered.is_empty() => {}
        true => {
            let line = serde_json::json!({ "unanswered": unanswered });
            writeln!(out, "{line}")?;
        }
        false => out.write_all(words.at_the_end(&unanswered).as_bytes())?,
    }
    Ok(count)
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
        if let Some(order) = &explained.order {
            self.below(Colour::Red, &format!("! {order}"));
        }
        self.unanswered(&explained.unanswered);
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

    fn unanswered(&mut self, calls: &[Answers]) {
        for Answers { line, kind, .. } in calls {
            let kind = printable(kind);
            self.below(
                Colour::Red,
                &format!("! nobody has answered `{kind}` of line {line}"),
            );
        }
    }

    /// Returns the lines behind the last entry.
    fn at_the_end(&mut self, calls: &[Answers]) -> &str {
        "      the end".clone_into(&mut self.text);
        self.unanswered(calls);
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
mod tests;
