//! [`Top`]: the frames of a proxy or of a recording at a terminal.

mod draw;
mod index;
mod run;
mod tree;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tui_input::Input;
use tui_input::backend::crossterm::EventHandler as _;

use self::index::Index;
use self::tree::Tree;
use super::faults::Rules;
use super::view::{Filter, Shared, View, lock};

pub use run::{Stop, run};

/// Which list is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tab {
    Frames,
    Problems,
    Calls,
    Faults,
}

/// What keys go to.
#[derive(Clone, Debug)]
enum Focus {
    List,
    Tree,
    Filter(Input),
    Rule(Input),
}

/// What is to be done after a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Flow {
    /// Go on.
    On,
    /// The user has seen enough.
    Quit,
}

/// The state of the screen. It does no IO.
#[derive(Debug)]
pub struct Top {
    view: Shared,
    rules: Option<Rules>,
    /// What the frames are of.
    name: String,
    tab: Tab,
    focus: Focus,
    filter: String,
    index: Index,
    /// The line of the selected frame; without one, the list follows what comes.
    selected: Option<usize>,
    /// The last line that is shown, while the list is paused.
    until: Option<usize>,
    tree: Tree,
    /// The selected rule.
    rule: usize,
    /// What went wrong with the last key.
    error: String,
    /// Rows of the list, as last drawn.
    page: usize,
}

impl Top {
    /// Creates a screen of a view. Faults can be switched if there are `rules`.
    #[must_use]
    pub fn new(view: Shared, name: impl Into<String>, rules: Option<Rules>) -> Self {
        Self {
            view,
            rules,
            name: name.into(),
            tab: Tab::Frames,
            focus: Focus::List,
            filter: String::new(),
            index: Index::default(),
            selected: None,
            until: None,
            tree: Tree::default(),
            rule: 0,
            error: String::new(),
            page: 1,
        }
    }

    /// Takes what the user did.
    pub fn handle(&mut self, event: &Event) -> Flow {
        let Event::Key(key) = event else {
            return Flow::On;
        };
        if key.kind == KeyEventKind::Release {
            return Flow::On;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return Flow::Quit;
        }
        self.error.clear();
        match &mut self.focus {
            Focus::Filter(input) => match key.code {
                KeyCode::Enter | KeyCode::Esc => {
                    if key.code == KeyCode::Enter {
                        self.filter = input.value().to_owned();
                    }
                    self.index = Index::new(Filter::parse(&self.filter));
                    self.focus = Focus::List;
                }
                _ => {
                    input.handle_event(event);
                    self.index = Index::new(Filter::parse(input.value()));
                }
            },
            Focus::Rule(input) => match key.code {
                KeyCode::Esc => self.focus = Focus::List,
                KeyCode::Enter => {
                    let added = self.rules.as_ref().map(|rules| rules.add(input.value()));
                    match added {
                        Some(Err(why)) => self.error = why,
                        _ => self.focus = Focus::List,
                    }
                }
                _ => {
                    input.handle_event(event);
                }
            },
            Focus::Tree if self.tree.handle(key.code, self.page) => {}
            Focus::List | Focus::Tree => return self.command(key),
        }
        Flow::On
    }

    fn command(&mut self, key: &KeyEvent) -> Flow {
        let page = isize::try_from(self.page).unwrap_or(1);
        match key.code {
            // With Ctrl a letter is another key: Ctrl-S and Ctrl-Q stop and start terminals.
            KeyCode::Char(_) if key.modifiers.contains(KeyModifiers::CONTROL) => {}
            KeyCode::Char('q') => return Flow::Quit,
            KeyCode::Esc if matches!(self.focus, Focus::Tree) => self.focus = Focus::List,
            KeyCode::Esc => self.selected = None,
            KeyCode::Tab | KeyCode::BackTab => {
                let all: &[Tab] = match self.rules {
                    Some(_) => &[Tab::Frames, Tab::Problems, Tab::Calls, Tab::Faults],
                    None => &[Tab::Frames, Tab::Problems, Tab::Calls],
                };
                let at = all.iter().position(|tab| *tab == self.tab).unwrap_or(0);
                let step = if key.code == KeyCode::Tab {
                    1
                } else {
                    all.len() - 1
                };
                self.tab = all
                    .get((at + step) % all.len())
                    .copied()
                    .unwrap_or(Tab::Frames);
                self.focus = Focus::List;
            }
            KeyCode::Char('/') => self.focus = Focus::Filter(Input::from(self.filter.clone())),
            KeyCode::Char(' ') if self.tab == Tab::Faults => self.switch(),
            KeyCode::Char(' ') => {
                let last = lock(&self.view).rows().back().map_or(0, |row| row.n);
                self.until = self.until.is_none().then_some(last);
            }
            KeyCode::Char('n') => self.problem(true),
            KeyCode::Char('p') => self.problem(false),
            KeyCode::Char('a') if self.tab == Tab::Faults => {
                self.focus = Focus::Rule(Input::default());
            }
            KeyCode::Char('d') | KeyCode::Delete if self.tab == Tab::Faults => self.remove(),
            KeyCode::Enter | KeyCode::Right if self.selected.is_some() => self.focus = Focus::Tree,
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::PageDown => self.step(page),
            KeyCode::PageUp => self.step(-page),
            KeyCode::Home | KeyCode::Char('g') => self.step(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.step(isize::MAX),
            _ => {}
        }
        Flow::On
    }

    /// The lines of the current list, in order.
    fn lines(&mut self, view: &View) -> Vec<usize> {
        self.index.update(view);
        let until = self.until.unwrap_or(usize::MAX);
        let lines = match self.tab {
            Tab::Problems => self.index.problems(view),
            Tab::Calls => self.index.calls(view),
            Tab::Frames | Tab::Faults => self.index.frames(),
        };
        lines.into_iter().filter(|line| *line <= until).collect()
    }

    fn step(&mut self, by: isize) {
        if self.tab == Tab::Faults {
            let last = self
                .rules
                .as_ref()
                .map_or(0, |it| it.list().len())
                .saturating_sub(1);
            self.rule = self.rule.saturating_add_signed(by).min(last);
            return;
        }
        let view = self.view.clone();
        let view = lock(&view);
        let lines = self.lines(&view);
        let last = lines.len().saturating_sub(1);
        let at = match self.selected {
            Some(line) => lines.partition_point(|it| *it < line),
            None => last,
        };
        let to = match self.selected {
            None if by < 0 && by > isize::MIN => last.saturating_add_signed(by + 1),
            _ => at.saturating_add_signed(by),
        };
        // Below the last one, the list follows.
        let follows = to > last && self.until.is_none() && !view.is_complete();
        let line = lines.get(to.min(last)).copied();
        self.select(&view, line.filter(|_| !follows));
    }

    fn problem(&mut self, is_next: bool) {
        let view = self.view.clone();
        let view = lock(&view);
        self.index.update(&view);
        let lines = self.index.problems(&view);
        let found = match (self.selected, is_next) {
            (Some(line), true) => lines.iter().find(|it| **it > line).or(lines.first()),
            (Some(line), false) => lines.iter().rev().find(|it| **it < line).or(lines.last()),
            (None, true) => lines.first(),
            (None, false) => lines.last(),
        };
        match found {
            Some(line) => {
                if matches!(self.tab, Tab::Calls | Tab::Faults) {
                    self.tab = Tab::Problems;
                }
                self.select(&view, Some(*line));
            }
            None => "there are no problems".clone_into(&mut self.error),
        }
    }

    fn select(&mut self, view: &View, line: Option<usize>) {
        if self.selected == line {
            return;
        }
        self.selected = line;
        let row = line.and_then(|line| view.row(line));
        self.tree = row.map(|row| Tree::new(&row.data)).unwrap_or_default();
    }

    fn switch(&mut self) {
        if let Some(rules) = &self.rules
            && let Some(rule) = rules.list().get(self.rule)
        {
            rules.switch(rule.id, !rule.on);
        }
    }

    fn remove(&mut self) {
        if let Some(rules) = &self.rules
            && let Some(rule) = rules.list().get(self.rule)
        {
            rules.remove(rule.id);
            self.rule = self.rule.saturating_sub(1);
        }
    }
}

#[cfg(test)]
mod tests;
