//! [`Prompt`]: the edited line, drawn below everything else.
//!
//! The cursor moves only relative to its position, and every line break is written rather than left
//! to the terminal. So the row of the prompt on the screen does not matter.

use std::fmt::Write as _;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tui_input::backend::crossterm::EventHandler as _;
use tui_input::{Input, InputRequest};
use unicode_width::UnicodeWidthChar as _;

use super::history::History;

/// The prefix of the first line, unless it is [set](Prompt::show), and of others that were pasted with it.
const FIRST: &str = "> ";
const NEXT: &str = ". ";
/// The size of terminals that do not know theirs, and the narrowest supported one.
const USUAL: (u16, u16) = (80, 24);
const NARROWEST: usize = 4;

/// The request of a key, other than editing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The line is complete.
    Line(String),
    /// Ctrl-C. The line is dropped.
    Interrupt,
    /// Ctrl-D on an empty line.
    End,
}

/// A line with a cursor in it, and where it was drawn.
pub(super) struct Prompt {
    input: Input,
    history: History,
    /// The prefix of the first line.
    label: String,
    /// The text between the lines above and the prompt, which changes.
    status: String,
    columns: usize,
    rows: usize,
    /// The widths of the drawn rows, from the first one to the cursor.
    drawn: Vec<usize>,
    /// The output to the terminal.
    out: String,
}

impl Prompt {
    /// Creates an empty line on a screen with this many columns and rows.
    pub(super) fn new(history: History, size: (u16, u16)) -> Self {
        let mut prompt = Self {
            input: Input::default(),
            history,
            label: FIRST.to_owned(),
            status: String::new(),
            columns: 0,
            rows: 0,
            drawn: Vec::new(),
            out: String::new(),
        };
        prompt.set_size(size);
        prompt
    }

    /// Takes the output to the terminal.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Draws the line at the cursor, or over the earlier drawing.
    pub(super) fn draw(&mut self) {
        self.erase();
        let text = format!("{}{}", self.label, self.input.value());
        let cursor = self.label.chars().count() + self.input.cursor();
        let mut layout = layout(&text, cursor, self.columns);
        let status = self.status_rows();
        let (row, column) = layout.cursor;
        let row = row + status.len();
        layout.rows.splice(..0, status);
        // What is longer than the screen shows the part with the cursor.
        let first = (row + 1).saturating_sub(self.rows);
        let shown: Vec<_> = layout.rows.iter().skip(first).take(self.rows).collect();
        for (number, (text, _)) in shown.iter().enumerate() {
            let end = if number == 0 { "" } else { "\r\n" };
            self.out.push_str(end);
            self.out.push_str(text);
        }
        let row = row - first;
        up(&mut self.out, (shown.len() - 1).saturating_sub(row));
        self.out.push('\r');
        if column > 0 {
            let _ = write!(self.out, "\x1b[{column}C");
        }
        let above = shown.iter().take(row).map(|(_, width)| *width);
        self.drawn = above.chain([column]).collect();
    }

    /// The last rows of the status, at most half of the screen.
    fn status_rows(&self) -> Vec<(String, usize)> {
        let lines = self.status.lines();
        let mut rows: Vec<_> = lines
            .flat_map(|line| layout(line, 0, self.columns).rows)
            .collect();
        rows.drain(..rows.len().saturating_sub(self.rows / 2));
        rows
    }

    /// Sets the prefix of the first line and the status, for the next drawing.
    pub(super) fn show(&mut self, label: String, status: String) {
        (self.label, self.status) = (label, status);
    }

    /// Writes lines above.
    pub(super) fn above(&mut self, lines: impl IntoIterator<Item = String>) {
        self.erase();
        for line in lines {
            for line in line.split('\n') {
                self.out.push_str(line.trim_end_matches('\r'));
                self.out.push_str("\r\n");
            }
        }
        self.draw();
    }

    /// Drops the line. Its text stays on the screen, with the cursor below it.
    pub(super) fn leave(&mut self) {
        if self.input.value().is_empty() {
            self.erase();
        } else {
            self.keep();
        }
    }

    /// Handles an event of the terminal, and redraws the line.
    pub(super) fn happened(&mut self, event: &Event) -> Option<Asked> {
        match event {
            Event::Key(key) if key.kind != KeyEventKind::Release => return self.key(key, event),
            Event::Paste(text) => self.paste(text),
            Event::Resize(columns, rows) => self.resize((*columns, *rows)),
            _ => return None,
        }
        self.draw();
        None
    }

    fn key(&mut self, key: &KeyEvent, event: &Event) -> Option<Asked> {
        let is_control = key.modifiers == KeyModifiers::CONTROL;
        let is_alt = key.modifiers == KeyModifiers::ALT;
        match key.code {
            KeyCode::Enter => return Some(self.enter()),
            KeyCode::Char('j') if is_control => return Some(self.enter()),
            KeyCode::Char('c') if is_control => {
                self.leave();
                return Some(Asked::Interrupt);
            }
            KeyCode::Char('d') if is_control => {
                if self.input.value().is_empty() {
                    return Some(Asked::End);
                }
                self.edit(InputRequest::DeleteNextChar);
            }
            KeyCode::Char('l') if is_control => {
                self.out.push_str("\x1b[H\x1b[2J");
                self.drawn.clear();
            }
            KeyCode::Up => self.look(History::back),
            KeyCode::Char('p') if is_control => self.look(History::back),
            KeyCode::Down => self.look(History::forth),
            KeyCode::Char('n') if is_control => self.look(History::forth),
            // Where the keys of shells are others than those of the editor.
            KeyCode::Char('u') if is_control => self.edit(InputRequest::DeleteFromStart),
            KeyCode::Char('b') if is_alt => self.edit(InputRequest::GoToPrevWord),
            KeyCode::Char('f') if is_alt => self.edit(InputRequest::GoToNextWord),
            KeyCode::Char('d') if is_alt => self.edit(InputRequest::DeleteNextWord),
            _ => {
                let changed = self.input.handle_event(event)?;
                if changed.value {
                    self.history.leave();
                }
            }
        }
        self.draw();
        None
    }

    fn edit(&mut self, request: InputRequest) {
        let changed = self.input.handle(request);
        if changed.is_some_and(|changed| changed.value) {
            self.history.leave();
        }
    }

    fn enter(&mut self) -> Asked {
        let line = self.input.value().to_owned();
        self.keep();
        self.history.leave();
        Asked::Line(line)
    }

    /// Leaves the line on the screen, and the cursor below it.
    fn keep(&mut self) {
        self.input.handle(InputRequest::GoToEnd);
        let status = std::mem::take(&mut self.status);
        self.draw();
        self.status = status;
        self.out.push_str("\r\n");
        self.drawn.clear();
        self.input.reset();
    }

    /// Adds a line to the history.
    pub(super) fn remember(&mut self, line: &str) -> std::io::Result<()> {
        self.history.add(line)
    }

    fn look(&mut self, whither: fn(&mut History, &str) -> Option<String>) {
        if let Some(line) = whither(&mut self.history, self.input.value()) {
            self.input = std::mem::take(&mut self.input).with_value(line);
        }
    }

    fn paste(&mut self, text: &str) {
        let text = text.replace("\r\n", "\n").replace('\r', "\n");
        let value = self.input.value();
        let at = value.char_indices().nth(self.input.cursor());
        let (before, after) = value.split_at(at.map_or(value.len(), |(at, _)| at));
        let cursor = self.input.cursor() + text.chars().count();
        let value = format!("{before}{text}{after}");
        self.input = std::mem::take(&mut self.input)
            .with_value(value)
            .with_cursor(cursor);
        self.history.leave();
    }

    /// Moves to the beginning of the prompt, and clears the screen from there.
    fn erase(&mut self) {
        self.out.push('\r');
        up(&mut self.out, self.drawn.len().saturating_sub(1));
        self.out.push_str("\x1b[J");
        self.drawn.clear();
    }

    /// Handles a new size. Most terminals wrap rows that have become too long.
    fn resize(&mut self, size: (u16, u16)) {
        self.set_size(size);
        let columns = self.columns;
        let Some((cursor, above)) = self.drawn.split_last() else {
            return;
        };
        let above = above.iter().map(|width| width.div_ceil(columns).max(1));
        let rows = above.sum::<usize>() + cursor / columns;
        self.drawn = vec![0; rows + 1];
    }

    fn set_size(&mut self, (columns, rows): (u16, u16)) {
        let or = |size: u16, usual: u16| usize::from(if size == 0 { usual } else { size });
        self.columns = or(columns, USUAL.0).max(NARROWEST);
        self.rows = or(rows, USUAL.1);
    }
}

fn up(out: &mut String, rows: usize) {
    if rows > 0 {
        let _ = write!(out, "\x1b[{rows}A");
    }
}

/// The rows of a prompt with their widths, and the cursor's row and column.
struct Layout {
    rows: Vec<(String, usize)>,
    cursor: (usize, usize),
}

fn layout(text: &str, cursor: usize, columns: usize) -> Layout {
    let mut rows = Vec::new();
    let (mut row, mut width) = (String::new(), 0);
    let mut place = None;
    for (number, char) in text.chars().enumerate() {
        if char == '\n' {
            if number == cursor {
                place = Some((rows.len(), width));
            }
            rows.push((std::mem::replace(&mut row, NEXT.to_owned()), width));
            width = NEXT.len();
            continue;
        }
        // Whatever was pasted: nothing in it moves the cursor.
        let (shown, wide) = match char {
            '\t' => (' ', 1),
            char if char.is_control() => ('?', 1),
            char => (char, char.width().unwrap_or(0)),
        };
        if width + wide > columns {
            rows.push((std::mem::take(&mut row), width));
            width = 0;
        }
        if number == cursor {
            place = Some((rows.len(), width));
        }
        row.push(shown);
        width += wide;
    }
    // A cursor behind a full row stands in the next one.
    if place.is_none() && width >= columns {
        rows.push((std::mem::take(&mut row), width));
        width = 0;
    }
    let cursor = place.unwrap_or((rows.len(), width));
    rows.push((row, width));
    Layout { rows, cursor }
}

#[cfg(test)]
mod tests;
