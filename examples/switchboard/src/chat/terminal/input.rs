//! [`open`]: lines from a terminal or a pipe.

use std::io::{self, BufRead, BufReader, IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::thread;

use tokio::sync::mpsc;

use super::{Command, Line, Terminal, is_plain};
use crate::cli::{self, Failure, complain};

/// Most unprocessed lines.
const WAITING: usize = 16;

/// How lines are read.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The longest line, in bytes.
    pub max_bytes: usize,
    /// A file for the lines that are entered at a terminal. Default: one in the user's folder for the state of
    /// programs, if there is any.
    pub history: Option<PathBuf>,
    /// What the lines are for, such as `gateway`.
    pub name: &'static str,
    /// The commands, for completion.
    pub commands: Vec<Command>,
    /// Whether Esc stops what runs.
    pub can_stop: bool,
}

/// A source of lines.
pub struct Input {
    /// The lines. Closed after the last one.
    pub lines: mpsc::Receiver<Line>,
    /// The terminal; `None` for a pipe. Restored when the input is dropped, after the lines.
    pub terminal: Option<Terminal>,
}

rpc_core::debug_fields!([] Input, this => { terminal: this.terminal });

/// Reads standard input in its own thread, without editing.
pub fn plain(max_bytes: usize) -> Input {
    let (sender, lines) = mpsc::channel(WAITING);
    thread::spawn(move || read(BufReader::new(io::stdin()), &sender, max_bytes));
    let terminal = None;
    Input { lines, terminal }
}

/// Reads standard input in its own thread.
///
/// # Errors
/// [`Failure`] if the file for the history cannot be used.
pub fn open(settings: &Settings) -> Result<Input, Failure> {
    if !is_interactive() {
        return Ok(plain(settings.max_bytes));
    }
    let (sender, lines) = mpsc::channel(WAITING);
    let terminal = Some(Terminal::open(sender, settings)?);
    Ok(Input { lines, terminal })
}

/// Whether lines can be edited and shown: both ends are a terminal whose cursor can be moved.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal() && !is_plain()
}

/// Whether people want to see what goes on: both outputs are a terminal whose cursor can be moved, and
/// `--quiet` is not given.
pub fn is_watched() -> bool {
    !cli::is_quiet() && io::stdout().is_terminal() && io::stderr().is_terminal() && !is_plain()
}

/// Reads all of standard input, as one text. A person who writes it at a terminal gets a hint how to end it.
fn read_all(max_bytes: usize) -> Result<String, Failure> {
    if io::stdin().is_terminal() {
        complain("write what you want to say; Ctrl-D on an empty line sends it");
    }
    let mut text = String::new();
    let most = u64::try_from(max_bytes).unwrap_or(u64::MAX);
    let read = (io::stdin().lock().take(most.saturating_add(1))).read_to_string(&mut text);
    read.map_err(|error| {
        Failure::usage(format_args!(
            "standard input: {error}; it has to be text in UTF-8"
        ))
    })?;
    if text.len() > max_bytes {
        let message = format!("standard input has more than {max_bytes} bytes: shorten it");
        return Err(Failure::usage(message));
    }
    Ok(text)
}

/// Returns the only text to say, if there is one; `-` is all of standard input.
///
/// # Errors
/// [`Failure`], told programs too if `json` is wanted, if it is blank, longer than `max_bytes`, not UTF-8
/// or cannot be read.
pub fn only(text: Option<String>, max_bytes: usize, json: bool) -> Result<Option<String>, Failure> {
    let text = match text.as_deref() {
        Some("-") => read_all(max_bytes).map(Some),
        _ => Ok(text),
    };
    let blank = "nothing to say: give a text, or write one to standard input";
    let text = text.and_then(|text| match &text {
        Some(text) if text.trim().is_empty() => Err(Failure::usage(blank)),
        _ => Ok(text),
    });
    text.inspect_err(|failure| failure.report(json))
}

/// Reads lines to their end.
pub(super) fn read(mut input: impl BufRead, lines: &mpsc::Sender<Line>, max_bytes: usize) {
    loop {
        let line = match next_line(&mut input, max_bytes) {
            Ok(Some(Ok(text))) => Line::parse(&text),
            Ok(Some(Err(why))) => Line::Wrong(why),
            Ok(None) => return,
            Err(error) => {
                complain(format_args!("warning: no more lines are read: {error}"));
                return;
            }
        };
        let is_last = line.is_last();
        if lines.blocking_send(line).is_err() || is_last {
            return;
        }
    }
}

/// Reads the next line, or the reason why it is invalid. Returns `None` at the end. Never buffers
/// much more than the longest line.
fn next_line(
    input: &mut impl BufRead,
    max_bytes: usize,
) -> io::Result<Option<Result<String, String>>> {
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
        if line.len() <= max_bytes {
            line.extend_from_slice(part.get(..taken).unwrap_or_default());
        }
        length = length.saturating_add(taken);
        let is_over = end.is_some() || taken == 0;
        input.consume(taken);
        if is_over {
            break;
        }
    }
    Ok(Some(if length > max_bytes {
        Err(format!(
            "a line of {length} bytes is too long: at most {max_bytes}"
        ))
    } else {
        String::from_utf8(line).map_err(|_| "a line is not UTF-8 text".to_owned())
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAX: usize = 1000;

    #[test]
    fn lines_are_read_to_the_last_which_needs_no_end() {
        let mut input = BufReader::with_capacity(3, &b"eins\n\xc3\xbc\n\xff\nvier"[..]);
        let mut read = Vec::new();
        while let Some(line) = next_line(&mut input, MAX).unwrap() {
            read.push(line.map(|line| line.trim_end().to_owned()).ok());
        }
        let expected = [Some("eins"), Some("ü"), None, Some("vier")];
        assert_eq!(
            read.iter().map(Option::as_deref).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn skips_a_line_that_is_too_long() {
        let mut long = vec![b'x'; 2 * MAX];
        long.extend_from_slice(b"\nnext\n");
        let mut input = BufReader::new(&long[..]);
        let why = next_line(&mut input, MAX).unwrap().unwrap().unwrap_err();
        assert!(why.contains("too long"), "{why}");
        assert_eq!(
            next_line(&mut input, MAX).unwrap(),
            Some(Ok("next\n".to_owned()))
        );
        assert_eq!(next_line(&mut input, MAX).unwrap(), None);
    }
}
