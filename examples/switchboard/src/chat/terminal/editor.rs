//! [`Terminal`]: a line editor with history, below a conversation.

#[cfg(unix)]
use std::sync::Arc;
#[cfg(unix)]
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};
use std::{io, thread};

use crossterm::event::{
    self, DisableBracketedPaste, EnableBracketedPaste, KeyboardEnhancementFlags,
    PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::{execute, terminal};
#[cfg(unix)]
use nix::unistd::{getpgrp, getsid};
use rpc_core::sync::Mutex;
#[cfg(unix)]
use rustix::process::{Signal, getpid, kill_current_process_group, kill_process};
#[cfg(unix)]
use signal_hook::flag::register_usize;
use tokio::sync::mpsc::{self, error::TrySendError};

use super::history::History;
use super::painter::{draw, write};
use super::prompt::{KeyAction, Prompt};
use super::queue::Queue;
use super::view::View;
use super::{ChatEvent, ChatView, Line, Settings, Show, input};
use crate::cli::{self, Failure};
use crate::markdown::preload;

/// How often the screen is drawn, at most, and how long the editor waits for a key.
pub(super) const FRAME: Duration = Duration::from_millis(40);
/// How long the editor may take to restore the terminal.
const GOODBYE: Duration = Duration::from_millis(500);

/// The conversation on the terminal, for output to standard error.
static SHOWN: Mutex<Option<Queue>> = Mutex::new(None);

/// Writes lines above what still changes, or returns the text if there is nothing of the kind. Blocks
/// while much is waiting.
pub(crate) fn write_above(text: String) -> Result<(), String> {
    // Not locked while it waits: the end of the editor takes the lock.
    let shown = SHOWN.lock().clone();
    match shown {
        Some(queue) => {
            queue.push_blocking(ChatEvent::Line(text));
            Ok(())
        }
        None => Err(text),
    }
}

/// Sets the conversation that stands on the terminal.
pub(super) fn set_shown(queue: Option<Queue>) {
    *SHOWN.lock() = queue;
}

/// A line editor in its own thread. Dropping it restores the terminal.
pub struct Terminal {
    queue: Queue,
}

impl Terminal {
    /// Reads lines from the terminal into `lines`.
    pub(super) fn open(lines: mpsc::Sender<Line>, settings: &Settings) -> Result<Self, Failure> {
        let history = match &settings.history {
            None => History::of_user(settings.name),
            Some(file) => History::open(file).map_err(|error| {
                Failure::usage(format_args!("--history {}: {error}", file.display()))
            })?,
        };
        // The editor's thread reads the keys, too: the first code of an answer must not keep it.
        preload();
        let queue = Queue::default();
        set_shown(Some(queue.clone()));
        let stop = settings.can_stop.then_some("Esc stops");
        let max_bytes = settings.max_bytes;
        let mut editor = Editor {
            queue: queue.clone(),
            prompt: Prompt::new(history, settings.commands.clone()),
            view: View::new(cli::wants_colour(&io::stdout()), stop, true),
            #[cfg(unix)]
            signal: Arc::default(),
        };
        thread::spawn(move || {
            let ended = editor.run(&lines);
            set_shown(None);
            editor.view.finish();
            let mut late = Late(editor.view);
            late.print_lines();
            editor.queue.ended(Box::new(late));
            if let Err(error) = ended {
                // Some terminals cannot be edited in; they can be read.
                tracing::info!(%error, "no line editing");
                input::read(io::stdin().lock(), &lines, max_bytes);
            }
        });
        Ok(Self { queue })
    }

    /// Returns the conversation above the edited line.
    pub fn above(&self) -> ChatView {
        ChatView::above(self.queue.clone())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.queue.end();
        if !self.queue.wait_for_end(GOODBYE) {
            // It hangs at a terminal that takes nothing any more.
            let _ = terminal::disable_raw_mode();
        }
    }
}

rpc_core::debug_fields!([] Terminal, _ => {});

/// Shows what comes after the end of the editor, line by line.
pub(super) struct Late(pub(super) View);

impl Late {
    fn print_lines(&mut self) {
        self.0.take_lines().iter().for_each(cli::print_line);
    }
}

impl Show for Late {
    fn show(&mut self, event: ChatEvent) {
        self.0.show(event, Instant::now());
        self.print_lines();
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
        // Terminals that can do it tell Shift-Enter from Enter now; others ignore it.
        let flags = KeyboardEnhancementFlags::DISAMBIGUATE_ESCAPE_CODES;
        let _ = execute!(io::stdout(), PushKeyboardEnhancementFlags(flags));
        Ok(raw)
    }
}

impl Drop for RawMode {
    fn drop(&mut self) {
        let _ = execute!(io::stdout(), PopKeyboardEnhancementFlags);
        let _ = execute!(io::stdout(), DisableBracketedPaste);
        let _ = terminal::disable_raw_mode();
    }
}

/// What [`Editor::signal`] is after these signals.
#[cfg(unix)]
const STOP: usize = 1;
#[cfg(unix)]
const CONTINUE: usize = 2;

/// The thread of a terminal.
struct Editor {
    queue: Queue,
    prompt: Prompt,
    view: View,
    /// The last signal that stops or continues the program, until it is handled. A continue takes a stop back, as in
    /// the system.
    #[cfg(unix)]
    signal: Arc<AtomicUsize>,
}

impl Editor {
    fn run(&mut self, lines: &mpsc::Sender<Line>) -> io::Result<()> {
        let mut raw = Some(RawMode::enter()?);
        #[cfg(unix)]
        for (signal, value) in [(Signal::TSTP, STOP), (Signal::CONT, CONTINUE)] {
            register_usize(signal.as_raw(), Arc::clone(&self.signal), value)?;
        }
        let ended = self.read(lines, &mut raw);
        // What is still to be shown needs no place in it.
        self.prompt.leave();
        write(&mut self.prompt)?;
        ended
    }

    /// Reads lines until the receiver is dropped.
    #[cfg_attr(not(unix), expect(unused_variables, reason = "only Unix suspends"))]
    fn read(&mut self, lines: &mpsc::Sender<Line>, raw: &mut Option<RawMode>) -> io::Result<()> {
        let mut held: Option<Line> = None;
        loop {
            #[cfg(unix)]
            self.suspend(raw)?;
            let taken = self.queue.take(Duration::ZERO);
            draw(&mut self.prompt, &mut self.view, taken.events)?;
            if taken.is_last {
                return Ok(());
            }
            if let Some(line) = held.take() {
                // Nothing is read after the last one: the terminal stays as it was found.
                let is_last = line.is_last();
                match lines.try_send(line) {
                    Ok(()) if !is_last => {}
                    Ok(()) | Err(TrySendError::Closed(_)) => return Ok(()),
                    // Their reader may wait for us to write.
                    Err(TrySendError::Full(line)) => {
                        held = Some(line);
                        thread::sleep(FRAME);
                    }
                }
            }
            let mut pause = FRAME;
            while held.is_none() && event::poll(pause)? {
                pause = Duration::ZERO;
                match self.prompt.happened(&event::read()?) {
                    Some(KeyAction::Interrupt) => held = Some(Line::Interrupt),
                    Some(KeyAction::Stop) if self.view.is_running() => held = Some(Line::Stop),
                    None | Some(KeyAction::Stop) => continue,
                    Some(KeyAction::End) => return Ok(()),
                    #[cfg(unix)]
                    Some(KeyAction::Suspend) => kill_current_process_group(Signal::TSTP)?,
                    Some(KeyAction::Line(line)) => {
                        // Line by line: however the program ends, they are there the next time. An answer
                        // is of no use then, and may be a secret.
                        if !self.view.is_asking()
                            && let Err(error) = self.prompt.remember(&line)
                        {
                            let words = format!("the history is not kept: {error}");
                            self.view.show(ChatEvent::Warning(words), Instant::now());
                        }
                        self.view.line_entered();
                        held = Some(Line::parse(&line));
                    }
                }
            }
        }
    }

    /// Stops the program if a signal asks for it. Whoever stopped it: only SIGCONT brings the raw mode back, since a
    /// shell has changed the terminal meanwhile.
    #[cfg(unix)]
    fn suspend(&mut self, raw: &mut Option<RawMode>) -> io::Result<()> {
        let asked = self.signal.swap(0, SeqCst);
        // Shells put a job in a group of its own. In that of the session nobody would continue it: the system ignores
        // the signal there, too.
        if asked == 0 || asked == STOP && getsid(None) == Ok(getpgrp()) {
            return Ok(());
        }
        self.prompt.hide();
        write(&mut self.prompt)?;
        *raw = None;
        if asked == STOP {
            if self.signal.load(SeqCst) != CONTINUE {
                kill_process(getpid(), Signal::STOP)?;
            }
            // The stop may take effect later than this line.
            while self.signal.swap(0, SeqCst) != CONTINUE {
                thread::sleep(FRAME);
            }
        }
        *raw = Some(RawMode::enter()?);
        Ok(())
    }
}
