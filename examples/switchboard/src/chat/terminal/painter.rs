//! [`run`]: shows a conversation on a terminal in which nothing is edited.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::thread;
use std::time::{Duration, Instant};

use crossterm::terminal;

use super::ChatEvent;
use super::editor::{FRAME, Late, set_shown};
use super::history::History;
use super::prompt::Prompt;
use super::queue::Queue;
use super::view::View;
use crate::cli;

/// How long nothing may happen before the status line is redrawn, while something runs.
const TICK: Duration = Duration::from_millis(200);
/// The same while nothing runs.
const IDLE: Duration = Duration::from_secs(60);

/// Shows all events to the end.
pub(super) fn run(queue: &Queue) {
    set_shown(Some(queue.clone()));
    let colour = cli::wants_colour(&io::stdout());
    let mut view = View::new(colour, Some("Ctrl-C stops"), false);
    // Nothing is edited: the row of the prompt stays empty.
    let mut prompt = Prompt::new(History::default(), Vec::new());
    loop {
        let wait = if view.is_running() { TICK } else { IDLE };
        let taken = queue.take(wait);
        // A terminal that is gone must not cause a panic.
        let _ = draw(&mut prompt, &mut view, taken.events);
        if taken.is_last {
            view.finish();
            let _ = draw(&mut prompt, &mut view, VecDeque::new());
            prompt.leave();
            let _ = write(&mut prompt);
            set_shown(None);
            return queue.ended(Box::new(Late(view)));
        }
        thread::sleep(FRAME);
    }
}

/// Shows events, and draws what has changed.
pub(super) fn draw(
    prompt: &mut Prompt,
    view: &mut View,
    events: VecDeque<ChatEvent>,
) -> io::Result<()> {
    prompt.fit(view, terminal::size().unwrap_or_default());
    let now = Instant::now();
    for event in events {
        match event {
            ChatEvent::Unsent(text) => prompt.restore(&text),
            event => view.show(event, now),
        }
    }
    let rows = view.live(now, prompt.max_live());
    let lines = view.take_lines();
    prompt.update(view.label(), rows, &lines);
    write(prompt)
}

/// Writes to the terminal what is drawn.
pub(super) fn write(prompt: &mut Prompt) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(prompt.take().as_bytes())?;
    out.flush()
}
