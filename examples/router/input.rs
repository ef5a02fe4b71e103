//! Lines from a terminal, with editing and history, or from a pipe; and what they ask for.

use std::io::{self, BufRead, BufReader, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::thread;

use examples::cli::{Failure, complain};
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Config, Editor, ExternalPrinter};
use smarthole_proto::limits::MAX_PAYLOAD;
use tokio::sync::mpsc;

/// Lines that may wait to be dealt with.
const WAITING: usize = 16;
/// Lines that are remembered.
const HISTORY: usize = 1_000;

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

/// Where lines come from, and how others write beside them.
pub(crate) struct Input {
    /// The lines. Ends with them.
    pub(crate) lines: mpsc::Receiver<Line>,
    /// Writes above the line that is being edited; `None` if none is.
    pub(crate) printer: Option<Box<dyn ExternalPrinter + Send>>,
    /// Whether somebody sits there.
    pub(crate) is_terminal: bool,
    _restore: Restore,
}

/// Reads standard input in a thread of its own. `history` is a file for what was written.
pub(crate) fn open(history: Option<PathBuf>) -> Result<Input, Failure> {
    let (sender, lines) = mpsc::channel(WAITING);
    let restore = Restore::new();
    let is_terminal = io::stdin().is_terminal() && io::stdout().is_terminal();
    let mut printer = None;
    if is_terminal {
        let mut editor = editor(history.as_deref())?;
        // A terminal that can do nothing is read like a pipe, and written to like one.
        printer = editor.create_external_printer().ok().map(boxed);
        thread::spawn(move || edit(&mut editor, &sender, history.as_deref()));
    } else {
        thread::spawn(move || read(BufReader::new(io::stdin()), &sender));
    }
    Ok(Input {
        lines,
        printer,
        is_terminal,
        _restore: restore,
    })
}

fn boxed(printer: impl ExternalPrinter + Send + 'static) -> Box<dyn ExternalPrinter + Send> {
    Box::new(printer)
}

fn editor(history: Option<&Path>) -> Result<Editor<(), FileHistory>, Failure> {
    let failed = |error| Failure::new(format_args!("the terminal cannot be used: {error}"));
    let config = Config::builder()
        .max_history_size(HISTORY)
        .map_err(failed)?
        .history_ignore_space(true)
        .build();
    let mut editor = Editor::with_config(config).map_err(failed)?;
    if let Some(file) = history.filter(|file| file.exists()) {
        editor.load_history(file).map_err(|error| {
            let file = file.display();
            Failure::usage(format_args!("--history {file} cannot be read: {error}"))
        })?;
    }
    Ok(editor)
}

fn edit(
    editor: &mut Editor<(), FileHistory>,
    lines: &mpsc::Sender<Line>,
    mut history: Option<&Path>,
) {
    loop {
        let line = match editor.readline("> ") {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                let _ = lines.blocking_send(Line::Quit);
                return;
            }
            Err(ReadlineError::Eof) => return,
            Err(error) => {
                complain(format_args!("warning: no more lines are read: {error}"));
                return;
            }
        };
        let _ = editor.add_history_entry(&line);
        // Line by line: however the program ends, they are there the next time.
        if let Some(file) = history
            && let Err(error) = editor.append_history(file)
        {
            let file = file.display();
            complain(format_args!("warning: no line goes to {file}: {error}"));
            history = None;
        }
        let Some(line) = parse(&line) else { continue };
        // Not read on after this: the terminal is left as it was found.
        let is_last = line == Line::Quit;
        if lines.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

fn read(mut input: impl BufRead, lines: &mpsc::Sender<Line>) {
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

/// Leaves the terminal as it was found, even if the program ends while a line is being edited.
struct Restore {
    #[cfg(unix)]
    found: Option<rustix::termios::Termios>,
}

impl Restore {
    #[cfg(unix)]
    fn new() -> Self {
        let found = rustix::termios::tcgetattr(io::stdin()).ok();
        Self { found }
    }

    /// Elsewhere a console takes care of itself.
    #[cfg(not(unix))]
    const fn new() -> Self {
        Self {}
    }
}

#[cfg(unix)]
impl Drop for Restore {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        if let Some(found) = &self.found {
            let _ = tcsetattr(io::stdin(), OptionalActions::Drain, found);
        }
    }
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
