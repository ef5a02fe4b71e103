//! [`Tree`]: what is in a frame, as lines that open and close.

use std::collections::HashSet;

use crossterm::event::KeyCode;
use serde_json::Value;

/// The largest frame that is read as JSON, in bytes.
const MAX_JSON: usize = 2_000_000;
/// Most lines of a tree, and the longest one in characters.
const MAX_LINES: usize = 5000;
const MAX_WIDTH: usize = 2000;

/// What is in a frame.
#[derive(Debug, Default)]
pub(super) struct Tree {
    value: Value,
    /// What is shown if it is no JSON.
    text: String,
    /// The paths that are closed.
    closed: HashSet<String>,
    /// The selected line.
    pub(super) at: usize,
}

/// A line of a tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Branch {
    pub(super) depth: usize,
    /// The name of a member.
    pub(super) name: String,
    pub(super) value: String,
    /// Whether it is open, if there is something in it.
    pub(super) is_open: Option<bool>,
    path: String,
}

impl Tree {
    pub(super) fn new(data: &str) -> Self {
        let read =
            (data.len() <= MAX_JSON).then(|| rpc_core::json::from_slice(data.as_bytes()).ok());
        let value = read.flatten().unwrap_or(Value::Null);
        let text = match value {
            Value::Null => data.to_owned(),
            _ => String::new(),
        };
        Self {
            value,
            text,
            ..Self::default()
        }
    }

    /// Returns the lines that are not in a closed one.
    pub(super) fn lines(&self) -> Vec<Branch> {
        let mut lines = Vec::new();
        if self.value.is_null() {
            for text in self.text.lines().take(MAX_LINES) {
                lines.push(leaf(0, "", short(text), String::new()));
            }
            return lines;
        }
        match &self.value {
            Value::Object(_) | Value::Array(_) => self.members(&self.value, "", 0, &mut lines),
            other => self.branch("", other, "", 0, &mut lines),
        }
        lines
    }

    fn members(&self, value: &Value, path: &str, depth: usize, lines: &mut Vec<Branch>) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    self.branch(name, value, &format!("{path}/{name}"), depth, lines);
                }
            }
            Value::Array(items) => {
                for (index, value) in items.iter().enumerate() {
                    let name = index.to_string();
                    self.branch(&name, value, &format!("{path}/{index}"), depth, lines);
                }
            }
            _ => {}
        }
    }

    fn branch(&self, name: &str, value: &Value, path: &str, depth: usize, lines: &mut Vec<Branch>) {
        if lines.len() >= MAX_LINES {
            return;
        }
        let shown = match value {
            Value::Object(members) => format!("{{ {} }}", members.len()),
            Value::Array(items) => format!("[ {} ]", items.len()),
            other => short(&other.to_string()),
        };
        let has_more = match value {
            Value::Object(members) => !members.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => false,
        };
        let is_open = has_more.then(|| !self.closed.contains(path));
        lines.push(Branch {
            is_open,
            ..leaf(depth, name, shown, path.to_owned())
        });
        if is_open == Some(true) {
            self.members(value, path, depth + 1, lines);
        }
    }

    /// Takes a key. Returns whether it was for the tree.
    pub(super) fn handle(&mut self, key: KeyCode, page: usize) -> bool {
        let lines = self.lines();
        let last = lines.len().saturating_sub(1);
        let branch = lines.get(self.at);
        match key {
            KeyCode::Down | KeyCode::Char('j') => self.at += 1,
            KeyCode::Up | KeyCode::Char('k') => self.at = self.at.saturating_sub(1),
            KeyCode::PageDown => self.at += page,
            KeyCode::PageUp => self.at = self.at.saturating_sub(page),
            KeyCode::Home => self.at = 0,
            KeyCode::End => self.at = last,
            KeyCode::Enter | KeyCode::Right | KeyCode::Left => {
                let Some(branch) = branch else {
                    return key != KeyCode::Left;
                };
                match (branch.is_open, key) {
                    (Some(true), KeyCode::Enter | KeyCode::Left) => {
                        self.closed.insert(branch.path.clone());
                    }
                    (Some(false), KeyCode::Enter | KeyCode::Right) => {
                        self.closed.remove(&branch.path);
                    }
                    (_, KeyCode::Left) => {
                        let above = lines.iter().take(self.at);
                        let mut above = above.enumerate().rev();
                        let parent = above.find(|(_, line)| line.depth < branch.depth);
                        self.at = parent.map_or(self.at, |(index, _)| index);
                    }
                    (_, KeyCode::Right) => self.at += 1,
                    _ => {}
                }
            }
            _ => return false,
        }
        self.at = self.at.min(last);
        true
    }
}

fn leaf(depth: usize, name: &str, value: String, path: String) -> Branch {
    Branch {
        depth,
        name: name.to_owned(),
        value,
        is_open: None,
        path,
    }
}

fn short(text: &str) -> String {
    match text.char_indices().nth(MAX_WIDTH) {
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
        None => text.to_owned(),
    }
}
