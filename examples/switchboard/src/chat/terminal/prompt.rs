//! [`Prompt`]: the edited line, drawn below everything else.
//!
//! The cursor moves only relative to its position, and every line break is written rather than left
//! to the terminal. So the row of the prompt on the screen does not matter.

mod completion;
mod keys;
mod layout;

use std::borrow::Cow;
use std::fmt::Write as _;

use crossterm::event::Event;
use tui_input::Input;

use self::layout::{Layout, layout};
use super::Command;
use super::history::History;
use super::view::{View, columns};

/// The size of terminals that do not know theirs, and the narrowest supported one.
const USUAL: (u16, u16) = (80, 24);
const NARROWEST: usize = 4;
/// The narrowest screen that lines are made for: on another one they break somewhere.
const NARROWEST_TEXT: usize = 20;
/// What makes a terminal show a drawing at once, and what ends that. Others ignore it.
const BEGIN: &str = "\x1b[?2026h";
const END: &str = "\x1b[?2026l";
/// Clears the row of the cursor, which is at its beginning, and all rows below. In two steps: tmux takes a
/// screen that is cleared from its first cell for one that scrolls away, and keeps a copy.
const CLEAR: &str = "\x1b[K\x1b[C\x1b[J\r";

/// The request of a key, other than editing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum KeyAction {
    /// The line is complete.
    Line(String),
    /// Ctrl-C on an empty line; another one it clears.
    Interrupt,
    /// Esc.
    Stop,
    /// Ctrl-D on an empty line.
    End,
    /// Ctrl-Z.
    #[cfg(unix)]
    Suspend,
}

/// A line with a cursor in it, and where it was drawn.
pub(super) struct Prompt {
    input: Input,
    history: History,
    commands: Vec<Command>,
    /// The prefix of the first line.
    label: String,
    /// What is searched among the earlier lines.
    search: Option<String>,
    /// The rows between the lines above and the prompt, which change.
    live: Vec<String>,
    /// The rows below the prompt, until the next key.
    hints: Vec<String>,
    columns: usize,
    rows: usize,
    /// The drawn rows with their widths, from the first one to that of the cursor.
    drawn: Vec<(String, usize)>,
    /// What is drawn is not what should be.
    is_stale: bool,
    /// The terminal moves rows out of reach when it becomes narrower, though there is room below them: tmux does.
    loses_rows: bool,
    /// The output to the terminal.
    out: String,
}

impl Prompt {
    /// Creates an empty line on a screen whose size is not known yet.
    pub(super) fn new(history: History, commands: Vec<Command>) -> Self {
        Self {
            input: Input::default(),
            history,
            commands,
            label: String::new(),
            search: None,
            live: Vec::new(),
            hints: Vec::new(),
            columns: usize::from(USUAL.0),
            rows: usize::from(USUAL.1),
            drawn: Vec::new(),
            is_stale: true,
            loses_rows: std::env::var("TERM")
                .is_ok_and(|term| ["tmux", "screen"].iter().any(|it| term.starts_with(it))),
            out: String::new(),
        }
    }

    /// Takes the output to the terminal.
    pub(super) fn take(&mut self) -> String {
        match std::mem::take(&mut self.out) {
            out if out.is_empty() => out,
            out => format!("{BEGIN}{out}{END}"),
        }
    }

    /// The width for lines above and rows that change.
    fn columns(&self) -> usize {
        self.columns.max(NARROWEST_TEXT)
    }

    /// The most rows that change: what has left the screen at its top cannot be drawn over.
    pub(super) const fn max_live(&self) -> usize {
        self.rows * 2 / 3
    }

    /// Writes lines above, and redraws the rest if it has changed.
    pub(super) fn update(&mut self, label: &str, live: Vec<String>, lines: &[String]) {
        if self.label != label || self.live != live {
            label.clone_into(&mut self.label);
            self.live = live;
            self.is_stale = true;
        }
        if self.is_stale || !lines.is_empty() {
            self.draw(lines);
        }
    }

    /// Draws the line at the cursor, or over the earlier drawing, below these lines. Rows that are there already
    /// are left alone: a terminal that has just become narrower shows fewer rows twice.
    fn draw(&mut self, lines: &[String]) {
        self.is_stale = false;
        let Layout { mut rows, places } = self.layout();
        let (row, column) = places.get(self.place()).copied().unwrap_or_default();
        if row == rows.len() {
            rows.push((String::new(), 0));
        }
        let row = row + self.live.len();
        let live = self.live.iter().map(|row| (row.clone(), columns(row)));
        rows.splice(..0, live);
        rows.extend(self.hints.iter().map(|row| (row.clone(), columns(row))));
        // What is longer than the screen shows the part with the cursor.
        let first = (row + 1).saturating_sub(self.rows);
        rows.drain(..first);
        rows.truncate(self.rows);
        let lines = lines.iter().flat_map(|line| line.split('\n'));
        let lines: Vec<_> = lines
            .map(|line| (line.trim_end_matches('\r').to_owned(), 0))
            .collect();
        let (above, row) = (lines.len(), row - first);
        rows.splice(..0, lines);
        let known = self.drawn.len().min(rows.len()).saturating_sub(1);
        let both = rows.iter().zip(&self.drawn).take(known);
        let same = both.take_while(|(new, old)| new.0 == old.0).count();
        self.erase(same);
        let changed = rows.iter().skip(same).map(|(text, _)| text.as_str());
        self.out.push_str(&changed.collect::<Vec<_>>().join("\r\n"));
        up(&mut self.out, rows.len() - 1 - above - row);
        self.out.push('\r');
        if column > 0 {
            let _ = write!(self.out, "\x1b[{column}C");
        }
        rows.drain(..above);
        rows.truncate(row);
        rows.push((String::new(), column));
        self.drawn = rows;
    }

    /// The rows of the label and the line.
    fn layout(&self) -> Layout {
        let text = format!("{}{}", self.prefix(), self.input.value());
        layout(&text, self.columns)
    }

    /// What stands before the line: its label, or what is searched.
    fn prefix(&self) -> Cow<'_, str> {
        match &self.search {
            Some(words) => format!("search \"{words}\": ").into(),
            None => (&*self.label).into(),
        }
    }

    /// The number of the character at the cursor, counted from the prefix's first.
    fn place(&self) -> usize {
        self.prefix().chars().count() + self.input.cursor()
    }

    /// Puts a text before what is written now.
    pub(super) fn restore(&mut self, text: &str) {
        let written = [text, self.input.value()];
        let written = written.iter().copied().filter(|it| !it.is_empty());
        self.set(written.collect::<Vec<_>>().join("\n"));
        self.is_stale = true;
    }

    /// Removes what is drawn, until the next [`update`](Self::update).
    pub(super) fn hide(&mut self) {
        self.erase(0);
        self.is_stale = true;
    }

    /// Drops the line. Its text stays on the screen, with the cursor below it.
    pub(super) fn leave(&mut self) {
        if self.input.value().is_empty() {
            self.hide();
        } else {
            self.keep();
        }
    }

    /// Handles an event of the terminal. The next [`update`](Self::update) draws what has changed.
    pub(super) fn happened(&mut self, event: &Event) -> Option<KeyAction> {
        match event {
            Event::Key(key) if !key.is_release() => return self.key(key, event),
            Event::Paste(text) => {
                let text = text.replace("\r\n", "\n").replace('\r', "\n");
                self.search = None;
                self.insert(&text);
            }
            // The size is asked for before each drawing.
            _ => return None,
        }
        self.is_stale = true;
        None
    }

    /// Leaves the line on the screen, and the cursor below it.
    fn keep(&mut self) {
        let end = self.input.value().chars().count();
        self.set_cursor(end);
        self.hints.clear();
        let live = std::mem::take(&mut self.live);
        self.draw(&[]);
        self.live = live;
        self.out.push_str("\r\n");
        self.drawn.clear();
        self.input.reset();
        self.is_stale = true;
    }

    /// Adds a line to the history.
    pub(super) fn remember(&mut self, line: &str) -> std::io::Result<()> {
        self.history.add(line)
    }

    /// Moves to a row of what is drawn, and clears the screen from there.
    fn erase(&mut self, from: usize) {
        self.out.push('\r');
        let rows = self.drawn.get(from..).unwrap_or_default();
        if let Some(((_, cursor), above)) = rows.split_last() {
            // Most terminals wrap rows that are too long.
            let above = above
                .iter()
                .map(|(_, width)| width.div_ceil(self.columns).max(1));
            up(&mut self.out, above.sum::<usize>() + cursor / self.columns);
        }
        self.out.push_str(CLEAR);
        self.drawn.clear();
    }

    /// Takes in the size, for what the view shows, too.
    pub(super) fn fit(&mut self, view: &mut View, size: (u16, u16)) {
        if self.loses_rows && (1..self.columns).contains(&usize::from(size.0)) {
            // The row of the cursor is not among them.
            let settled = view.settle();
            self.drawn
                .drain(..settled.min(self.drawn.len().saturating_sub(1)));
            self.live.drain(..settled.min(self.live.len()));
        }
        self.resize(size);
        view.set_width(self.columns());
    }

    fn resize(&mut self, (columns, rows): (u16, u16)) {
        let or = |size: u16, usual: u16| usize::from(if size == 0 { usual } else { size });
        let columns = or(columns, USUAL.0).max(NARROWEST);
        let rows = or(rows, USUAL.1);
        if (columns, rows) != (self.columns, self.rows) {
            (self.columns, self.rows) = (columns, rows);
            self.is_stale = true;
            // Where they stand is estimated only.
            self.drawn.iter_mut().for_each(|(text, _)| text.clear());
        }
    }
}

fn up(out: &mut String, rows: usize) {
    if rows > 0 {
        let _ = write!(out, "\x1b[{rows}A");
    }
}

#[cfg(test)]
mod tests;
