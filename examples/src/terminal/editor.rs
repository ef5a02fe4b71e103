//! [`Terminal`]: lines with editing and history, and others written above the one that is being edited.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use reedline::{
    ExternalPrinter, FileBackedHistory, Prompt, PromptEditMode, PromptHistorySearch, Reedline,
    Signal,
};
use tokio::sync::mpsc;

use super::{Line, input};
use crate::cli::{self, Failure, complain};

/// Lines that are remembered.
const HISTORY: usize = 1_000;
/// Lines that may wait to be written.
const WAITING: usize = 64;
/// How often the editor looks for lines to write.
const PAUSE: Duration = Duration::from_millis(50);
/// How long the editor may take to leave the terminal as it was.
const GOODBYE: Duration = Duration::from_millis(500);

/// An editor in a thread of its own. Dropping it leaves the terminal as it was.
pub struct Terminal {
    above: Above,
    thread: JoinHandle<()>,
}

impl Terminal {
    /// Reads lines from the terminal into `lines`. `history` is a file for them.
    pub(super) fn open<L: Line>(
        lines: mpsc::Sender<L>,
        history: Option<&Path>,
    ) -> Result<Self, Failure> {
        let above = Above {
            printer: ExternalPrinter::new(WAITING),
            stop: Arc::default(),
            over: Arc::default(),
        };
        let mut editor = Reedline::create()
            .with_ansi_colors(cli::wants_colour(&io::stdout()))
            .use_bracketed_paste(true)
            .with_poll_interval(PAUSE)
            .with_external_printer(above.printer.clone())
            .with_break_signal(Arc::clone(&above.stop));
        if let Some(file) = history {
            let kept = FileBackedHistory::with_file(HISTORY, file.to_owned());
            let kept = kept.map_err(|error| {
                let file = file.display();
                Failure::usage(format_args!("--history {file}: {error}"))
            })?;
            editor = editor.with_history(Box::new(kept));
        }
        let mut editing = Editing(above.clone());
        let thread = thread::spawn(move || {
            if let Err(error) = edit(&mut editor, &lines) {
                // Some terminals cannot be edited in; they can be read.
                tracing::info!(%error, "no line editing");
                drop(editor);
                editing.end();
                input::read(io::stdin().lock(), &lines);
            }
        });
        Ok(Self { above, thread })
    }

    /// The way to write.
    #[must_use]
    pub fn above(&self) -> Above {
        self.above.clone()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.above.stop.store(true, Ordering::SeqCst);
        let start = Instant::now();
        while !self.thread.is_finished()
            && !self.above.over.load(Ordering::SeqCst)
            && start.elapsed() < GOODBYE
        {
            thread::sleep(Duration::from_millis(5));
        }
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").finish_non_exhaustive()
    }
}

/// Writes above the line that is being edited.
#[derive(Clone)]
pub struct Above {
    printer: ExternalPrinter<String>,
    /// Tells the editor to end.
    stop: Arc<AtomicBool>,
    /// Whether the editor has ended, so that nothing is edited any more.
    over: Arc<AtomicBool>,
}

impl Above {
    /// Writes a line. Blocks while many are waiting.
    pub(super) fn print(&self, line: String) {
        if self.over.load(Ordering::SeqCst) {
            self.write_rest();
            cli::say(line);
            return;
        }
        // Its other end is ours too.
        let _ = self.printer.print(line);
        if self.over.load(Ordering::SeqCst) {
            self.write_rest();
        }
    }

    /// Writes what the editor has not.
    fn write_rest(&self) {
        while let Some(line) = self.printer.get_line() {
            cli::say(line);
        }
    }
}

impl fmt::Debug for Above {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Above").finish_non_exhaustive()
    }
}

/// The end of the editor, however it comes.
struct Editing(Above);

impl Editing {
    fn end(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
        self.0.write_rest();
    }
}

impl Drop for Editing {
    fn drop(&mut self) {
        self.end();
    }
}

fn edit<L: Line>(editor: &mut Reedline, lines: &mpsc::Sender<L>) -> io::Result<()> {
    loop {
        let line = match editor.read_line(&Arrow)? {
            Signal::Success(line) => line,
            Signal::CtrlC => {
                let line = L::quit();
                let is_last = line.is_quit();
                if lines.blocking_send(line).is_err() || is_last {
                    return Ok(());
                }
                continue;
            }
            Signal::CtrlD | Signal::ExternalBreak(_) => return Ok(()),
            _ => continue,
        };
        // Line by line: however the program ends, they are there the next time.
        if let Err(error) = editor.sync_history() {
            complain(format_args!("warning: the history is not kept: {error}"));
        }
        let Some(line) = L::parse(&line) else {
            continue;
        };
        // Nothing is read after this: the terminal stays as it was found.
        let is_last = line.is_quit();
        if lines.blocking_send(line).is_err() || is_last {
            return Ok(());
        }
    }
}

/// The prompt `> `.
struct Arrow;

impl Prompt for Arrow {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed(". ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(looking for {}) ", search.term))
    }
}
