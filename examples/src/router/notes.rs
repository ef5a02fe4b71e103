//! [`Notes`]: notes in memory, or in a text file, which people can read and change.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use smarthole_proto::timestamp;

/// The most bytes to read of a file.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// Most notes in memory.
const MAX_NOTES: usize = 1_000;
/// The indentation of the further lines of a note.
const INDENT: &str = "    ";

/// One note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The time of writing, as in the file. Empty for a note that was added by hand.
    pub time: String,
    /// The text.
    pub text: String,
}

/// The notes. A file has a line for each, with the time and the text; further lines of a text are
/// indented.
#[derive(Debug)]
pub struct Notes(Place);

#[derive(Debug)]
enum Place {
    Memory(Mutex<VecDeque<Note>>),
    File(PathBuf),
}

impl Notes {
    /// Creates notes in this file, which need not exist. Without a file the last 1,000 are kept in
    /// memory.
    #[must_use]
    pub fn new(file: Option<PathBuf>) -> Self {
        Self(file.map_or_else(|| Place::Memory(Mutex::default()), Place::File))
    }

    /// Returns the file, if the notes are in one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        match &self.0 {
            Place::Memory(_) => None,
            Place::File(path) => Some(path),
        }
    }

    /// Adds a note. A note for a file is on the disk when this returns. Blocks. Only one caller may
    /// use it at a time.
    ///
    /// # Errors
    /// The file cannot be written. A part of the note may be in it.
    pub fn add(&self, text: &str, now: SystemTime) -> io::Result<()> {
        let path = match &self.0 {
            Place::File(path) => path,
            Place::Memory(notes) => {
                let mut notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
                if notes.len() >= MAX_NOTES {
                    notes.pop_front();
                }
                notes.push_back(Note {
                    time: timestamp::format(now),
                    text: text.trim().to_owned(),
                });
                return Ok(());
            }
        };
        let mut entry = timestamp::format(now);
        for (number, line) in text.trim().lines().enumerate() {
            entry.push_str(if number == 0 { " " } else { INDENT });
            entry.push_str(line);
            entry.push('\n');
        }
        let is_new = !path.exists();
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        // In one write, so that two programs with one file do not mix their lines.
        file.write_all(entry.as_bytes())?;
        file.sync_all()?;
        if is_new {
            sync_folder(path)?;
        }
        Ok(())
    }

    /// Returns all notes, oldest first. Blocks.
    ///
    /// # Errors
    /// The file cannot be read, or is not text. A missing file has no notes.
    pub fn all(&self) -> io::Result<Vec<Note>> {
        let path = match &self.0 {
            Place::File(path) => path,
            Place::Memory(notes) => {
                let notes = notes.lock().unwrap_or_else(PoisonError::into_inner);
                return Ok(notes.iter().cloned().collect());
            }
        };
        let mut text = String::new();
        match File::open(path) {
            Ok(file) => file.take(MAX_BYTES).read_to_string(&mut text)?,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut notes: Vec<Note> = Vec::new();
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match (line.strip_prefix(INDENT), notes.last_mut()) {
                (Some(more), Some(note)) => {
                    note.text.push('\n');
                    note.text.push_str(more);
                }
                _ => notes.push(note(line)),
            }
        }
        Ok(notes)
    }
}

/// Syncs the folder, because a new file is safe only when its folder is.
fn sync_folder(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        let folder = path.parent().filter(|path| !path.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

fn note(line: &str) -> Note {
    let split = line.split_once(' ');
    let (time, text) = split
        .filter(|(time, _)| timestamp::parse(time).is_some())
        .unwrap_or(("", line));
    Note {
        time: time.to_owned(),
        text: text.trim().to_owned(),
    }
}

/// Returns whether a text asks for the notes, like `list`, `show my notes` or `notes?`, instead of
/// being one.
#[must_use]
pub fn asks_for_notes(text: &str) -> bool {
    const ASKING: [&str; 4] = ["list", "show", "read", "notes"];
    const FILLING: [&str; 9] = [
        "me", "my", "all", "the", "of", "please", "what", "are", "your",
    ];
    let words = text.split(|c: char| !c.is_alphanumeric());
    let words: Vec<String> = words
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    let is = |known: &[&str], word: &String| known.contains(&word.as_str());
    words.iter().any(|word| is(&ASKING, word))
        && words
            .iter()
            .all(|word| is(&ASKING, word) || is(&FILLING, word))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A file that is removed with the value.
    struct Scratch(Notes);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("notes-{}-{name}.txt", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = std::fs::remove_file(&path);
            Self(Notes::new(Some(path)))
        }
    }

    impl Scratch {
        fn path(&self) -> &Path {
            self.0.file().unwrap()
        }
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = std::fs::remove_file(self.path());
        }
    }

    #[test]
    fn notes_are_read_as_they_were_written() {
        let scratch = Scratch::new("written");
        let notes = &scratch.0;
        assert_eq!(notes.all().unwrap(), []);
        let at = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let texts = ["buy milk", "  grüße\nan alle\n  von mir ", "2024 was fine"];
        for (text, seconds) in texts.iter().zip(0..) {
            notes.add(text, at(seconds)).unwrap();
        }
        let read = notes.all().unwrap();
        let expected = ["buy milk", "grüße\nan alle\n  von mir", "2024 was fine"];
        assert_eq!(
            read.iter().map(|note| &note.text).collect::<Vec<_>>(),
            expected
        );
        assert_eq!(read[1].time, "1970-01-01T00:00:01.000Z");
        let file = std::fs::read_to_string(scratch.path()).unwrap();
        assert!(
            file.starts_with("1970-01-01T00:00:00.000Z buy milk\n"),
            "{file}"
        );
    }

    #[test]
    fn lines_that_somebody_added_by_hand_are_notes_too() {
        let scratch = Scratch::new("by-hand");
        std::fs::write(scratch.path(), "    call ann\n\nfeed the cat").unwrap();
        let texts: Vec<_> = scratch
            .0
            .all()
            .unwrap()
            .into_iter()
            .map(|note| note.text)
            .collect();
        assert_eq!(texts, ["call ann", "feed the cat"]);
    }

    #[test]
    fn without_a_file_the_last_notes_are_kept() {
        let notes = Notes::new(None);
        for number in 0..MAX_NOTES + 2 {
            let text = format!(" note {number} ");
            notes.add(&text, SystemTime::UNIX_EPOCH).unwrap();
        }
        let kept = notes.all().unwrap();
        assert_eq!(kept.len(), MAX_NOTES);
        assert_eq!(kept[0].text, "note 2");
        assert_eq!(kept[0].time, "1970-01-01T00:00:00.000Z");
    }

    #[test]
    fn only_a_question_for_notes_is_one() {
        for text in [
            "list",
            "List!",
            "show my notes",
            "Show me all of my notes, please",
            "notes?",
        ] {
            assert!(asks_for_notes(text), "{text}");
        }
        for text in [
            "",
            "buy milk",
            "list milk and eggs",
            "show ann the house",
            "my",
            "a note",
        ] {
            assert!(!asks_for_notes(text), "{text}");
        }
    }
}
