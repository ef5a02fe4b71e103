//! [`Terminal`]: a line editor with history, below a conversation.

use std::io::{self, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use crossterm::event::{
    self, DisableBracketedPaste, EnableBracketedPaste, KeyboardEnhancementFlags,
    PopKeyboardEnhancementFlags, PushKeyboardEnhancementFlags,
};
use crossterm::{execute, terminal};
use rpc_core::sync::Mutex;
use tokio::sync::mpsc::{self, error::TrySendError};

use super::history::History;
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
                let file = file.display();
                Failure::usage(format_args!("--history {file}: {error}"))
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
        };
        thread::spawn(move || {
            let ended = editor.run(&lines);
            set_shown(None);
            editor.view.finish();
            let mut late = Late(editor.view);
            late.say();
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
    fn say(&mut self) {
        self.0.take_lines().iter().for_each(cli::say);
    }
}

impl Show for Late {
    fn show(&mut self, event: ChatEvent) {
        self.0.show(event, Instant::now());
        self.say();
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

/// Stops the program as Ctrl-Z does outside the raw mode, until the shell continues it.
#[cfg(unix)]
fn suspend(raw: &mut Option<RawMode>) -> io::Result<()> {
    use rustix::process::{Signal, kill_current_process_group};

    *raw = None;
    kill_current_process_group(Signal::TSTP)?;
    *raw = Some(RawMode::enter()?);
    Ok(())
}

/// The thread of a terminal.
struct Editor {
    queue: Queue,
    prompt: Prompt,
    view: View,
}

impl Editor {
    fn run(&mut self, lines: &mpsc::Sender<Line>) -> io::Result<()> {
        let mut raw = Some(RawMode::enter()?);
        let ended = self.read(lines, &mut raw);
        // What is still to be shown needs no place in it.
        self.prompt.leave();
        self.write()?;
        ended
    }

    /// Reads lines until the receiver is dropped.
    fn read(&mut self, lines: &mpsc::Sender<Line>, raw: &mut Option<RawMode>) -> io::Result<()> {
        let mut held: Option<Line> = None;
        loop {
            let is_last = self.show();
            self.write()?;
            if is_last {
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
                    Some(KeyAction::Suspend) => {
                        self.prompt.hide();
                        self.write()?;
                        suspend(raw)?;
                    }
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

    /// Shows what has happened; returns whether that is all.
    fn show(&mut self) -> bool {
        let taken = self.queue.take(Duration::ZERO);
        let now = Instant::now();
        let size = terminal::size().unwrap_or_default();
        self.prompt.fit(&mut self.view, size);
        for event in taken.events {
            self.view.show(event, now);
        }
        let rows = self.view.live(now, self.prompt.max_live());
        let lines = self.view.take_lines();
        self.prompt.update(self.view.label(), rows, &lines);
        taken.is_last
    }

    fn write(&mut self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(self.prompt.take().as_bytes())?;
        out.flush()
    }
}
