//! [`History`]: the earlier lines, and their file.

use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use rpc_core::file;

/// Most remembered lines.
const MAX_LINES: usize = 1_000;
/// The most bytes to read of the file, from its end.
const MAX_BYTES: u64 = 1024 * 1024;
/// A line break within a line, in the file.
const BREAK: &str = "<\\n>";

/// The lines, oldest first, and the position of the shown one.
#[derive(Debug, Default)]
pub(super) struct History {
    lines: VecDeque<String>,
    file: Option<PathBuf>,
    /// The position of the shown line; one after the last for a new one.
    at: usize,
    /// The text before the first step back. Only lines with this prefix are shown.
    written: String,
}

/// Returns the folder for what the user's programs keep, if there is a place for it.
pub(crate) fn state_folder() -> Option<PathBuf> {
    let folder = |variable: &str| {
        let folder = std::env::var_os(variable).map(PathBuf::from);
        folder.filter(|folder| folder.is_absolute())
    };
    let state =
        folder("XDG_STATE_HOME").or_else(|| folder("HOME").map(|home| home.join(".local/state")));
    state.map(|state| state.join("switchboard"))
}

impl History {
    /// Opens the history of this file, which need not exist yet.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let mut open = file::open(path)?;
        let skipped = open.metadata()?.len().saturating_sub(MAX_BYTES);
        open.seek(SeekFrom::Start(skipped))?;
        let mut text = Vec::new();
        open.take(MAX_BYTES).read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        // The first line may have lost its beginning.
        let lines = text.lines().skip(usize::from(skipped > 0));
        let lines: VecDeque<_> = lines.map(|line| line.replace(BREAK, "\n")).collect();
        let mut history = Self {
            file: Some(path.to_owned()),
            ..Self::default()
        };
        let surplus = lines.len().saturating_sub(MAX_LINES);
        history.lines = lines.into_iter().skip(surplus).collect();
        history.at = history.lines.len();
        if skipped > 0 || surplus > 0 {
            let kept: String = history.lines.iter().map(|line| entry(line)).collect();
            let write = |mut new: &File| new.write_all(kept.as_bytes());
            file::replace(path, write, |error| error)?;
        }
        Ok(history)
    }

    /// Opens the history of what is called like this, among the state of the user's programs; without such a
    /// place, nothing is kept.
    pub(super) fn of_user(name: &str) -> Self {
        let file = state_folder().map(|folder| folder.join(format!("{name}.history")));
        let opened = file.map(|file| Self::open(&file)).transpose();
        let opened = opened.inspect_err(|error| tracing::info!(%error, "lines are not kept"));
        opened.unwrap_or_default().unwrap_or_default()
    }

    /// Adds a line, unless it is empty or equal to the last one.
    ///
    /// # Errors
    /// The file cannot be written. The line is still remembered.
    pub(super) fn add(&mut self, line: &str) -> io::Result<()> {
        let is_new = !line.trim().is_empty() && self.lines.back().is_none_or(|last| last != line);
        if is_new {
            if self.lines.len() >= MAX_LINES {
                self.lines.pop_front();
            }
            self.lines.push_back(line.to_owned());
        }
        self.at = self.lines.len();
        match &self.file {
            Some(path) if is_new => file::append_lines(&file::open(path)?, &entry(line)),
            _ => Ok(()),
        }
    }

    /// Returns the line before the shown one.
    pub(super) fn back(&mut self, shown: &str) -> Option<String> {
        if self.at >= self.lines.len() {
            shown.clone_into(&mut self.written);
        }
        let mut before = self.lines.iter().take(self.at).enumerate().rev();
        let (at, line) = before.find(|(_, line)| self.fits(line, shown))?;
        let line = line.clone();
        self.at = at;
        Some(line)
    }

    /// Returns the line after the shown one; after the last, the text before the first step back.
    pub(super) fn forth(&mut self, shown: &str) -> Option<String> {
        if self.at >= self.lines.len() {
            return None;
        }
        let mut after = self.lines.iter().enumerate().skip(self.at + 1);
        let found = after.find(|(_, line)| self.fits(line, shown));
        let (at, line) = match found {
            Some((at, line)) => (at, line.clone()),
            None => (self.lines.len(), self.written.clone()),
        };
        self.at = at;
        Some(line)
    }

    /// Returns the last line with these words, or if it `goes_back`, the one before the shown line.
    pub(super) fn find(&mut self, words: &str, goes_back: bool, shown: &str) -> Option<String> {
        if self.at >= self.lines.len() {
            shown.clone_into(&mut self.written);
        }
        let end = if goes_back { self.at } else { self.lines.len() };
        let mut before = self.lines.iter().take(end).enumerate().rev();
        let has = |line: &str| !words.is_empty() && line.contains(words);
        let (at, line) = before.find(|(_, line)| has(line) && !(goes_back && *line == shown))?;
        let line = line.clone();
        self.at = at;
        Some(line)
    }

    /// Returns the text before the first step back, if a line of the history is shown.
    pub(super) fn written(&self) -> Option<String> {
        (self.at < self.lines.len()).then(|| self.written.clone())
    }

    /// Resets the position after a change of the shown line.
    pub(super) fn leave(&mut self) {
        self.at = self.lines.len();
    }

    fn fits(&self, line: &str, shown: &str) -> bool {
        line.starts_with(&self.written) && line != shown
    }
}

fn entry(line: &str) -> String {
    format!("{}\n", line.replace('\n', BREAK))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Folder;

    #[test]
    fn lines_are_found_by_their_beginning_and_the_draft_is_restored() {
        let mut history = History::default();
        for line in ["count to 2", "run ls", "count to 3", "count to 3", " "] {
            history.add(line).unwrap();
        }
        assert_eq!(history.back("co").as_deref(), Some("count to 3"));
        assert_eq!(history.back("count to 3").as_deref(), Some("count to 2"));
        assert_eq!(history.back("count to 2"), None);
        assert_eq!(history.forth("count to 2").as_deref(), Some("count to 3"));
        assert_eq!(history.forth("count to 3").as_deref(), Some("co"));
        assert_eq!(history.forth("co"), None);
        assert_eq!(history.back("").as_deref(), Some("count to 3"));
        assert_eq!(history.back("count to 3").as_deref(), Some("run ls"));
    }

    #[test]
    fn a_file_keeps_the_last_lines_for_the_next_time() {
        let folder = Folder::new();
        let file = folder.join("below/lines");
        let mut history = History::open(&file).unwrap();
        for number in 0..MAX_LINES + 5 {
            history.add(&format!("line\n{number}")).unwrap();
        }
        for _ in 0..2 {
            let mut history = History::open(&file).unwrap();
            assert_eq!(history.lines.len(), MAX_LINES);
            assert_eq!(history.back("").as_deref(), Some("line\n1004"));
            assert_eq!(
                fs::read_to_string(&file).unwrap().lines().count(),
                MAX_LINES
            );
        }
    }
}
