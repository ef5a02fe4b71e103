//! [`Trace`]: the frames on the wire and their times, in one text format for all protocols.
//!
//! ```text
//! +0ms C> {"method":"ping"}
//! +20ms S> {"ok":true}
//! +1000ms C> (ping)
//! +1020ms S> (close 1000 bye)
//! ```

use std::fmt;
use std::time::Duration;

use crate::message::{Incoming, Outgoing};

/// One line of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The time since the beginning.
    pub at: Duration,
    /// The sender: `C`, `S`, or `*` for the harness itself.
    pub from: char,
    /// The frame.
    pub what: String,
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "+{}ms {}> {}", self.at.as_millis(), self.from, self.what)
    }
}

/// A transcript. Its [`Display`](fmt::Display) is the text format.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Trace {
    lines: Vec<Line>,
}

impl Trace {
    /// Creates an empty trace.
    #[must_use]
    pub const fn new() -> Self {
        Self { lines: Vec::new() }
    }

    /// Adds a line.
    pub fn push(&mut self, at: Duration, from: char, what: impl Into<String>) {
        self.lines.push(Line {
            at,
            from,
            what: what.into(),
        });
    }

    /// Returns all lines so far.
    #[must_use]
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Parses the text format; skips blank lines and lines that begin with `#`.
    ///
    /// # Errors
    /// The number of the first line (from 1) that has another form.
    pub fn parse(text: &str) -> Result<Self, usize> {
        let mut trace = Self::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim_end();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            trace.lines.push(parse_line(line).ok_or(index + 1)?);
        }
        Ok(trace)
    }
}

fn parse_line(line: &str) -> Option<Line> {
    let (at, rest) = line.strip_prefix('+')?.split_once("ms ")?;
    let mut chars = rest.chars();
    let from = chars.next()?;
    let what = chars.as_str().strip_prefix("> ")?.to_owned();
    Some(Line {
        at: Duration::from_millis(at.parse().ok()?),
        from,
        what,
    })
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

/// Returns the text for a frame to the peer.
#[must_use]
pub(crate) fn show_outgoing(frame: &Outgoing) -> String {
    match frame {
        Outgoing::Text(text) => text.as_str().to_owned(),
        Outgoing::Binary(bytes) => format!("(binary {} bytes)", bytes.len()),
        Outgoing::Ping(_) => "(ping)".to_owned(),
        Outgoing::Close(close) if close.reason.is_empty() => format!("(close {})", close.code),
        Outgoing::Close(close) => format!("(close {} {})", close.code, close.reason),
        Outgoing::Abort => "(abort)".to_owned(),
    }
}

/// Returns the text for a message from the peer.
#[must_use]
pub(crate) fn show_incoming(message: &Incoming<'_>) -> String {
    match message {
        Incoming::Text(text) => (*text).to_owned(),
        Incoming::Binary(bytes) => format!("(binary {} bytes)", bytes.len()),
        Incoming::Ping(_) => "(ping)".to_owned(),
        Incoming::Pong(_) => "(pong)".to_owned(),
        Incoming::Fragment => "(fragment)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trace_reads_back_what_it_prints() {
        let mut trace = Trace::new();
        trace.push(Duration::ZERO, 'C', r#"{"method":"ping"}"#);
        trace.push(Duration::from_millis(1020), 'S', "(close 1000 bye)");
        assert_eq!(Trace::parse(&trace.to_string()), Ok(trace));
    }

    #[test]
    fn a_line_of_another_form_is_named() {
        assert_eq!(Trace::parse("# comment\n\n+1ms C> {}\nnonsense"), Err(4));
    }
}
