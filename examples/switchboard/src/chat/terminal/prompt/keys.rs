//! Keys: [`Prompt::key`].

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use tui_input::InputRequest;
use tui_input::backend::crossterm::EventHandler as _;

use super::{History, KeyAction, Prompt};

impl Prompt {
    pub(super) fn key(&mut self, key: &KeyEvent, event: &Event) -> Option<KeyAction> {
        let is_control = key.modifiers == KeyModifiers::CONTROL;
        let is_alt = key.modifiers == KeyModifiers::ALT;
        self.is_stale = true;
        let had_hints = !std::mem::take(&mut self.hints).is_empty();
        if let Some(words) = self.search.take()
            && self.searches(words, key)
        {
            return None;
        }
        match key.code {
            KeyCode::Char('r') if is_control => self.search = Some(String::new()),
            KeyCode::Enter if is_alt || key.modifiers == KeyModifiers::SHIFT => self.insert("\n"),
            KeyCode::Enter => return self.enter(),
            KeyCode::Char('j') if is_control => return self.enter(),
            KeyCode::Tab => self.complete(),
            KeyCode::Esc => return (!had_hints).then_some(KeyAction::Stop),
            KeyCode::Char('c') if is_control => {
                if self.input.value().is_empty() {
                    return Some(KeyAction::Interrupt);
                }
                self.set(String::new());
                self.history.leave();
            }
            KeyCode::Char('d') if is_control => {
                if self.input.value().is_empty() {
                    return Some(KeyAction::End);
                }
                self.edit(InputRequest::DeleteNextChar);
            }
            #[cfg(unix)]
            KeyCode::Char('z') if is_control => return Some(KeyAction::Suspend),
            KeyCode::Char('l') if is_control => {
                self.out.push_str("\x1b[H\x1b[2J");
                self.drawn.clear();
            }
            KeyCode::Up => self.step(-1),
            KeyCode::Char('p') if is_control => self.step(-1),
            KeyCode::Down => self.step(1),
            KeyCode::Char('n') if is_control => self.step(1),
            // Where the keys of shells are others than those of the editor.
            KeyCode::Home => self.go_to_start(),
            KeyCode::Char('a') if is_control => self.go_to_start(),
            KeyCode::End => self.go_to_end(),
            KeyCode::Char('e') if is_control => self.go_to_end(),
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
        None
    }

    /// Takes a key while earlier lines are searched for words; `false` if it ends the search with what was found, and is
    /// to do what it does otherwise.
    fn searches(&mut self, mut words: String, key: &KeyEvent) -> bool {
        let is_control = key.modifiers == KeyModifiers::CONTROL;
        let mut goes_back = false;
        match key.code {
            KeyCode::Char('r') if is_control => goes_back = true,
            KeyCode::Backspace => drop(words.pop()),
            KeyCode::Char(c) if !is_control && key.modifiers != KeyModifiers::ALT => words.push(c),
            KeyCode::Esc | KeyCode::Char('c' | 'g') if is_control || key.code == KeyCode::Esc => {
                self.leave_search();
                return true;
            }
            _ => return false,
        }
        if let Some(line) = self.history.find(&words, goes_back, self.input.value()) {
            self.set(line);
        }
        self.search = Some(words);
        true
    }

    /// Brings back what was written before the search.
    fn leave_search(&mut self) {
        if let Some(written) = self.history.written() {
            self.set(written);
        }
        self.history.leave();
    }

    fn edit(&mut self, request: InputRequest) {
        let changed = self.input.handle(request);
        if changed.is_some_and(|changed| changed.value) {
            self.history.leave();
        }
    }

    /// Ends the line, unless a backslash asks for another one.
    fn enter(&mut self) -> Option<KeyAction> {
        let is_at_end = self.input.cursor() == self.input.value().chars().count();
        if is_at_end && self.input.value().ends_with('\\') {
            self.edit(InputRequest::DeletePrevChar);
            self.insert("\n");
            return None;
        }
        let line = self.input.value().to_owned();
        self.keep();
        self.history.leave();
        Some(KeyAction::Line(line))
    }

    /// The text before the cursor, and the one behind it.
    pub(super) fn split(&self) -> (&str, &str) {
        let value = self.input.value();
        let at = value.char_indices().nth(self.input.cursor());
        value.split_at(at.map_or(value.len(), |(at, _)| at))
    }

    /// Inserts a text at the cursor.
    pub(super) fn insert(&mut self, text: &str) {
        let (before, after) = self.split();
        let value = format!("{before}{text}{after}");
        let cursor = self.input.cursor() + text.chars().count();
        self.set(value);
        self.set_cursor(cursor);
        self.history.leave();
    }

    /// Sets the text, with the cursor behind it.
    pub(super) fn set(&mut self, value: String) {
        self.input = std::mem::take(&mut self.input).with_value(value);
    }

    pub(super) fn set_cursor(&mut self, cursor: usize) {
        self.input.handle(InputRequest::SetCursor(cursor));
    }

    fn go_to_start(&mut self) {
        let (before, _) = self.split();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let cursor = self.input.cursor() - line.chars().count();
        self.set_cursor(cursor);
    }

    fn go_to_end(&mut self) {
        let (_, after) = self.split();
        let line = after.split('\n').next().unwrap_or_default();
        let cursor = self.input.cursor() + line.chars().count();
        self.set_cursor(cursor);
    }

    /// Moves a row up or down; from the first or the last one to another line of the history.
    fn step(&mut self, rows: isize) {
        let layout = self.layout();
        let Some(&(row, column)) = layout.places.get(self.place()) else {
            return;
        };
        let label = self.prefix().chars().count();
        let wanted = row.checked_add_signed(rows);
        // The last place of the row that is not right of the cursor, or its first one.
        let places = layout.places.iter().enumerate().skip(label);
        let mut places = places.filter(|(_, place)| Some(place.0) == wanted);
        let first = places.next();
        let place = places
            .take_while(|(_, place)| place.1 <= column)
            .last()
            .or(first);
        if let Some((at, _)) = place {
            return self.set_cursor(at - label);
        }
        let line = match rows < 0 {
            true => self.history.back(self.input.value()),
            false => History::forth(&mut self.history, self.input.value()),
        };
        if let Some(line) = line {
            self.set(line);
        }
    }
}
