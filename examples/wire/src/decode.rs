//! [`Printer`]: each frame of a transcript on a line, with what is wrong with it.

use std::fmt::{self, Write as _};
use std::io::{self, BufRead, Write};
use std::time::Duration;

use crate::transcript::BadLine;
use rpc_core::testing::Side;

use super::Protocol;
use super::explain::{self, Explainer};
use super::order::Answers;
use super::recording::each_line;
use super::secrets::Shown;
use super::view::Row;
use crate::text::{Colour, printable};

/// The longest description of a frame, in characters, unless all is wanted.
const WIDTH: usize = 100;

/// What is shown of a transcript, and how.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Options {
    /// The protocol. Default: the one that the transcript names, or its frames show.
    #[arg(long)]
    pub protocol: Option<Protocol>,
    /// Show only what is wrong: also frames out of order, failures, and calls that were not answered. What is not known
    /// is wrong where the protocol allows nothing else.
    #[arg(long)]
    pub problems: bool,
    /// Which secrets are shown.
    #[command(flatten)]
    pub shown: Shown,
    /// Show only frames of this kind, such as INPUT or 'chat.*'; may be given again.
    #[arg(long = "kind", value_name = "KIND")]
    pub kinds: Vec<String>,
    /// Show only the connection of this number; may be given again.
    #[arg(long = "connection", value_name = "N")]
    pub connections: Vec<u32>,
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
    /// Those in which something went wrong, as on the page: errors, frames out of order, failures, and unanswered calls.
    pub problems: usize,
    /// Invalid lines of a transcript.
    pub bad: usize,
}

/// A printer of the lines of a recording, each explained, in words or as JSON.
#[derive(Debug)]
pub struct Printer {
    options: Options,
    explainer: Explainer,
    words: Words,
    count: Count,
    last: Duration,
}

impl Printer {
    /// Creates a printer.
    #[must_use]
    pub fn new(options: &Options) -> Self {
        let mut explainer = Explainer::new(options.protocol, options.shown.clone());
        if !options.full && !options.json {
            explainer = explainer.shortening();
        }
        Self {
            options: options.clone(),
            explainer,
            words: Words {
                colour: options.colour,
                ..Words::default()
            },
            count: Count::default(),
            last: Duration::ZERO,
        }
    }

    /// Explains the line with this number.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn line(
        &mut self,
        n: usize,
        line: &str,
        out: &mut impl Write,
        bad: &mut impl FnMut(&BadLine),
    ) -> io::Result<()> {
        let (entry, explained) = match self.explainer.read(n, line) {
            Ok(Some(explain::Line::Entry(entry, explained))) => (entry, explained),
            Ok(_) => return Ok(()),
            Err(error) => {
                self.count.bad += 1;
                bad(&error);
                return Ok(());
            }
        };
        let (options, count) = (&self.options, &mut self.count);
        count.entries += 1;
        self.last = entry.at;
        count.problems += usize::from(explained.problem.is_some()) + explained.unanswered.len();
        count.faults += usize::from(explained.fault.is_some());
        count.unknown += usize::from(explained.is_unknown());
        let is_left_out = options.problems && !explained.is_problem()
            || !options.kinds.is_empty()
                && !options.kinds.iter().any(|it| is_kind(it, &explained.kind))
            || !options.connections.is_empty() && !options.connections.contains(&entry.conn);
        if is_left_out {
            return Ok(());
        }
        let row = Row::new(n, &entry, explained);
        match options.json {
            true => {
                serde_json::to_writer(&mut *out, &row)?;
                out.write_all(b"\n")
            }
            false => out.write_all(self.words.of(&row, options.full).as_bytes()),
        }
    }

    /// Lists the calls that wait for an answer, if nothing follows. Returns what was found.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn end(mut self, is_complete: bool, out: &mut impl Write) -> io::Result<Count> {
        let unanswered = self.explainer.unanswered(self.last);
        if is_complete && !unanswered.is_empty() {
            self.count.problems += unanswered.len();
            match self.options.json {
                true => writeln!(out, "{}", serde_json::json!({ "unanswered": unanswered }))?,
                false => out.write_all(self.words.at_the_end(&unanswered).as_bytes())?,
            }
        }
        Ok(self.count)
    }
}

/// Returns whether a kind is this one, which may end in `*`.
fn is_kind(wanted: &str, kind: &str) -> bool {
    match wanted.strip_suffix('*') {
        Some(begin) => kind.starts_with(begin),
        None => kind == wanted,
    }
}

/// Explains each entry of a whole transcript on a line of `out`, and gives lines that are not part of a transcript to
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
    let mut printer = Printer::new(options);
    each_line(input, |n, line| printer.line(n, line, out, &mut bad))?;
    printer.end(true, out)
}

/// A writer of entries in words, which uses its memory again.
#[derive(Debug, Default)]
struct Words {
    text: String,
    colour: bool,
}

impl Words {
    /// Returns the lines of one entry, each with its end.
    fn of(&mut self, row: &Row, full: bool) -> &str {
        let Row { at, explained, .. } = row;
        self.text.clear();
        let (n, seconds, micros, conn) = (row.n, at.as_secs(), at.subsec_micros(), row.conn);
        let place = format_args!("{n:>5} {seconds:>3}.{micros:06} {conn:>3}");
        self.paint(Colour::Dim, place);
        self.text.push_str(match row.from {
            Some(Side::Client) => " -> ",
            Some(Side::Server) => " <- ",
            None => "  * ",
        });
        let kind = printable(&explained.kind);
        self.paint(Colour::Cyan, format_args!("{kind:20}"));
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
        if let Some(Answers { line, kind, after }) = &explained.relations.answers {
            let (kind, millis) = (printable(kind), after.as_secs_f64() * 1000.0);
            let answers = format_args!("  [{kind} of line {line}, {millis:.1} ms]");
            self.paint(Colour::Dim, answers);
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
        if let Some(order) = &explained.relations.wrong {
            self.below(Colour::Red, &format!("! {order}"));
        }
        self.unanswered(&explained.unanswered);
        if let Some(fault) = &explained.fault {
            self.below(Colour::Red, &format!("! {}", printable(&fault.error)));
            if let Some((place, column)) = &row.place {
                self.below(Colour::Dim, &format!("  {place}"));
                self.below(Colour::Red, &format!("  {}^", " ".repeat(*column)));
            }
            if explained.redacted {
                self.below(Colour::Dim, "  --show shows it as it is");
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
        if self.colour {
            colour.begin(&mut self.text);
        }
        // Writing to a string does not fail.
        let _ = self.text.write_fmt(words);
        if self.colour {
            Colour::end(&mut self.text);
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
