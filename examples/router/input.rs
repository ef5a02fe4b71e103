//! Lines from a terminal or a pipe, and what they ask for.

use std::io::{self, BufRead, BufReader, IsTerminal as _};
use std::path::Path;
use std::thread;

use examples::cli::{Failure, complain};
use smarthole_proto::limits::MAX_PAYLOAD;
use tokio::sync::mpsc;

use crate::terminal::Terminal;

/// Lines that may wait to be dealt with.
const WAITING: usize = 16;

pub(crate) const HELP: &str = "\
Write what you want done; the router decides who gets it.
  NAME: TEXT   goes to the client NAME and nobody else
  /clients     who is there
  /history     what came of the last messages
  /quit        ends the router, as Ctrl-D and Ctrl-C do
A text that begins with a slash goes out with a blank before it.";

/// What a line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// To send this.
    Text(String),
    /// To list the clients.
    Clients,
    /// To list what has ended.
    History,
    /// To explain the lines.
    Help,
    /// To end.
    Quit,
    /// This cannot be done.
    Wrong(String),
}

/// Reads a line; `None` for an empty one.
pub(crate) fn parse(line: &str) -> Option<Line> {
    let text = line.trim_end();
    let Some(command) = text.strip_prefix('/') else {
        return (!text.trim_start().is_empty()).then(|| Line::Text(text.to_owned()));
    };
    Some(match command {
        "clients" => Line::Clients,
        "history" => Line::History,
        "help" | "?" => Line::Help,
        "quit" | "exit" => Line::Quit,
        _ => Line::Wrong(format!("there is no command {text}: see /help")),
    })
}

/// Where lines come from.
pub(crate) struct Input {
    /// The lines. Ends with them.
    pub(crate) lines: mpsc::Receiver<Line>,
    /// Where somebody sits; `None` for a pipe. Left as it was when the input is dropped, after the lines.
    pub(crate) terminal: Option<Terminal>,
}

/// Reads standard input in a thread of its own. `history` is a file for what is written at a
/// terminal.
pub(crate) fn open(history: Option<&Path>) -> Result<Input, Failure> {
    let (sender, lines) = mpsc::channel(WAITING);
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let terminal = if is_terminal && !is_dumb {
        Some(Terminal::open(sender, history)?)
    } else {
        thread::spawn(move || read(BufReader::new(io::stdin()), &sender));
        None
    };
    Ok(Input { lines, terminal })
}

/// Reads lines to their end.
pub(crate) fn read(mut input: impl BufRead, lines: &mpsc::Sender<Line>) {
    loop {
        let line = match next_line(&mut input) {
            Ok(Some(Ok(text))) => parse(&text),
            Ok(Some(Err(why))) => Some(Line::Wrong(why)),
            Ok(None) => return,
            Err(error) => {
                complain(format_args!("warning: no more lines are read: {error}"));
                return;
            }
        };
        let Some(line) = line else { continue };
        let is_last = line == Line::Quit;
        if lines.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

/// The next line, or what is wrong with it; `None` at the end. Never holds more than the longest
/// message and a little.
fn next_line(input: &mut impl BufRead) -> io::Result<Option<Result<String, String>>> {
    let mut line = Vec::new();
    let mut length = 0_usize;
    loop {
        let part = match input.fill_buf() {
            Ok(part) => part,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if part.is_empty() && length == 0 {
            return Ok(None);
        }
        let end = part.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(part.len(), |end| end + 1);
        if line.len() <= MAX_PAYLOAD {
            line.extend_from_slice(part.get(..taken).unwrap_or_default());
        }
        length = length.saturating_add(taken);
        let is_over = end.is_some() || taken == 0;
        input.consume(taken);
        if is_over {
            break;
        }
    }
    Ok(Some(if length > MAX_PAYLOAD {
        Err(format!(
            "a line of {length} bytes is too long: at most {MAX_PAYLOAD}"
        ))
    } else {
        String::from_utf8(line).map_err(|_| "a line is no text in UTF-8".to_owned())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_text_or_a_command() {
        let text = |text: &str| Some(Line::Text(text.to_owned()));
        assert_eq!(parse("notes: buy milk \r\n"), text("notes: buy milk"));
        assert_eq!(parse(" /quit"), text(" /quit"));
        assert_eq!(parse("/quit "), Some(Line::Quit));
        assert_eq!(parse("/clients"), Some(Line::Clients));
        assert_eq!(parse("/history"), Some(Line::History));
        assert_eq!(parse("/?"), Some(Line::Help));
        assert!(matches!(parse("/nope"), Some(Line::Wrong(why)) if why.contains("/nope")));
        assert_eq!(parse(" \t "), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn lines_are_read_to_the_last_which_needs_no_end() {
        let mut input = BufReader::with_capacity(3, &b"eins\n\xc3\xbc\n\xff\nvier"[..]);
        let mut read = Vec::new();
        while let Some(line) = next_line(&mut input).unwrap() {
            read.push(line.map(|line| line.trim_end().to_owned()).ok());
        }
        let expected = [Some("eins"), Some("ü"), None, Some("vier")];
        assert_eq!(
            read.iter().map(Option::as_deref).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn a_line_without_measure_is_skipped_and_not_kept() {
        let mut long = vec![b'x'; 2 * MAX_PAYLOAD];
        long.extend_from_slice(b"\nnext\n");
        let mut input = BufReader::new(&long[..]);
        let why = next_line(&mut input).unwrap().unwrap().unwrap_err();
        assert!(why.contains("too long"), "{why}");
        assert_eq!(
            next_line(&mut input).unwrap(),
            Some(Ok("next\n".to_owned()))
        );
        assert_eq!(next_line(&mut input).unwrap(), None);
    }
}
