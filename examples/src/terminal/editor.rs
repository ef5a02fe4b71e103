//! [`Terminal`]: a line editor with history, and output above the edited line.

use std::collections::VecDeque;
use std::fmt;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crossterm::event::{self, DisableBracketedPaste, EnableBracketedPaste};
use crossterm::{execute, terminal};
use tokio::sync::mpsc::{self, error::TrySendError};

use super::history::History;
use super::prompt::{Asked, Prompt};
use super::{Line, input};
use crate::cli::{self, Failure};

/// Most lines waiting to be written.
const WAITING: usize = 64;
/// How often the editor checks for lines to write.
const PAUSE: Duration = Duration::from_millis(50);
const SHORT_PAUSE: Duration = Duration::from_millis(2);
/// How long the editor may take to restore the terminal.
const GOODBYE: Duration = Duration::from_millis(500);

/// The terminal with a line editor, for output to standard error.
static EDITED: Mutex<Option<Above>> = Mutex::new(None);

/// Writes above the edited line, or returns the text if there is none. Blocks while many lines are
/// waiting.
pub(crate) fn write_above(text: String) -> Result<(), String> {
    // Not locked while it waits: the end of the editor takes the lock.
    let above = edited().clone();
    match above {
        Some(above) => above.put(text).map_err(|(text, _)| text),
        None => Err(text),
    }
}

fn edited() -> MutexGuard<'static, Option<Above>> {
    EDITED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A line editor in its own thread. Dropping it restores the terminal.
pub struct Terminal {
    above: Above,
}

impl Terminal {
    /// Reads lines from the terminal into `lines`. `history` is a file for them.
    pub(super) fn open<L: Line>(
        lines: mpsc::Sender<L>,
        history: Option<&Path>,
    ) -> Result<Self, Failure> {
        let history = match history {
            None => History::default(),
            Some(file) => History::open(file).map_err(|error| {
                let file = file.display();
                Failure::usage(format_args!("--history {file}: {error}"))
            })?,
        };
        let above = Above::default();
        let editing = Editing(above.clone());
        *edited() = Some(above.clone());
        thread::spawn(move || {
            let ended = edit(history, &editing.0, &lines);
            drop(editing);
            if let Err(error) = ended {
                // Some terminals cannot be edited in; they can be read.
                tracing::info!(%error, "no line editing");
                input::read(io::stdin().lock(), &lines);
            }
        });
        Ok(Self { above })
    }

    /// Returns a writer of lines above the edited line.
    #[must_use]
    pub fn above(&self) -> Above {
        self.above.clone()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let mut state = self.above.state();
        state.is_asked_to_end = true;
        let waits = |state: &mut State| !state.is_over;
        let changed = &self.above.0.changed;
        let (state, _) = changed
            .wait_timeout_while(state, GOODBYE, waits)
            .unwrap_or_else(PoisonError::into_inner);
        if !state.is_over {
            // It hangs at a terminal that takes nothing any more.
            let _ = terminal::disable_raw_mode();
        }
    }
}

impl fmt::Debug for Terminal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminal").finish_non_exhaustive()
    }
}

/// A writer of lines above the edited line.
#[derive(Clone, Default)]
pub struct Above(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The lines not written yet.
    waiting: VecDeque<String>,
    /// The prefix of the edited line and the status above it, if they change.
    shown: Option<(String, String)>,
    is_asked_to_end: bool,
    /// Whether editing has ended.
    is_over: bool,
}

impl Above {
    /// Writes a line. Blocks while many lines are waiting.
    pub(super) fn print(&self, line: String) {
        // Still locked, so that what waited comes before it.
        if let Err((line, _state)) = self.put(line) {
            cli::say(line);
        }
    }

    /// Sets the prefix of the edited line, and the status above it.
    pub(super) fn show(&self, label: String, status: String) {
        self.state().shown = Some((label, status));
    }

    /// Queues a line, or returns it if editing has ended.
    fn put(&self, line: String) -> Result<(), (String, MutexGuard<'_, State>)> {
        let waits = |state: &mut State| !state.is_over && state.waiting.len() >= WAITING;
        let room = self.0.changed.wait_while(self.state(), waits);
        let mut state = room.unwrap_or_else(PoisonError::into_inner);
        if state.is_over {
            return Err((line, state));
        }
        state.waiting.push_back(line);
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the waiting lines, the new prefix and status, and whether the editor must end.
    fn take(&self) -> (VecDeque<String>, Option<(String, String)>, bool) {
        let mut state = self.state();
        let lines = std::mem::take(&mut state.waiting);
        let taken = (lines, state.shown.take(), state.is_asked_to_end);
        self.0.changed.notify_all();
        taken
    }
}

impl fmt::Debug for Above {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Above").finish_non_exhaustive()
    }
}

/// A guard that restores the terminal when the editor ends, and writes the remaining lines.
struct Editing(Above);

impl Drop for Editing {
    fn drop(&mut self) {
        *edited() = None;
        let mut state = self.0.state();
        state.waiting.drain(..).for_each(cli::say);
        state.is_over = true;
        self.0.0.changed.notify_all();
    }
}

/// A guard for the raw mode of the terminal. It also stays between lines, so that nothing is echoed
/// twice.
struct RawMode;

impl RawMode {
    fn enter() -> io::Result<Self> {
        terminal::enable_raw_mode()?;
        let raw = Self;
        execute!(io::stdout(), EnableBracketedPaste)?;
        Ok(raw)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        let _ = terminal::disable_raw_mode();
    }
}

fn edit<L: Line>(history: History, above: &Above, lines: &mpsc::Sender<L>) -> io::Result<()> {
    let _raw = RawMode::enter()?;
    let mut prompt = Prompt::new(history, terminal::size()?);
    prompt.draw();
    read(&mut prompt, above, lines)?;
    prompt.leave();
    write(&mut prompt)
}

/// Reads lines until the receiver is dropped.
fn read<L: Line>(prompt: &mut Prompt, above: &Above, lines: &mpsc::Sender<L>) -> io::Result<()> {
    let mut held: Option<L> = None;
    loop {
        let (waiting, shown, is_asked_to_end) = above.take();
        let mut pause = PAUSE;
        if !waiting.is_empty() || shown.is_some() {
            if let Some((label, status)) = shown {
                prompt.show(label, status);
            }
            prompt.above(waiting);
            pause = SHORT_PAUSE;
        }
        write(prompt)?;
        if is_asked_to_end {
            return Ok(());
        }
        if let Some(line) = held.take() {
            // Nothing is read after the last one: the terminal stays as it was found.
            let is_last = line.is_quit();
            match lines.try_send(line) {
                Ok(()) if !is_last => {}
                Ok(()) | Err(TrySendError::Closed(_)) => return Ok(()),
                // Whoever takes them may wait for us to write.
                Err(TrySendError::Full(line)) => {
                    held = Some(line);
                    thread::sleep(pause);
                }
            }
        }
        while held.is_none() && event::poll(pause)? {
            pause = Duration::ZERO;
            match prompt.happened(&event::read()?) {
                None => continue,
                Some(Asked::Interrupt) => held = Some(L::quit()),
                Some(Asked::End) => return Ok(()),
                Some(Asked::Line(line)) => {
                    // Line by line: however the program ends, they are there the next time.
                    if let Err(error) = prompt.remember(&line) {
                        let warning = format!("warning: the history is not kept: {error}");
                        prompt.above([warning]);
                    }
                    held = L::parse(&line);
                }
            }
            prompt.draw();
        }
    }
}

fn write(prompt: &mut Prompt) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(prompt.take().as_bytes())?;
    out.flush()
}
