//! [`Notes`]: notes in memory, or in a text file, which people can read and change.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rpc_core::file::{self, Lock, LockError};
use rpc_core::sync::Mutex;
use smarthole_proto::timestamp;

use crate::{bounded, cli};

/// The most bytes to read of a file.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// Most notes in memory.
const MAX_NOTES: usize = 1_000;
/// The indentation of the further lines of a note.
const INDENT: &str = "    ";

/// One note.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The time of writing, as in the file. Empty for a note that was added by hand.
    pub(crate) time: String,
    /// The text.
    pub(crate) text: String,
}

/// The notes. A file has a line for each, with the time and the text; further lines of a text are
/// indented.
#[derive(Debug)]
pub(crate) struct Notes(Storage);

#[derive(Debug)]
enum Storage {
    Memory(Mutex<VecDeque<Note>>),
    File(
        PathBuf,
        #[expect(dead_code, reason = "held until it is dropped")] Lock,
    ),
}

impl Notes {
    /// Opens notes in this file, which need not exist. Without a file the last 1,000 are kept in
    /// memory.
    ///
    /// # Errors
    /// The file cannot be read or written, or another program adds notes to it.
    pub(crate) fn open(file: Option<PathBuf>) -> io::Result<Self> {
        let Some(file) = file else {
            return Ok(Self(Storage::Memory(Mutex::default())));
        };
        cli::writable(&file).map_err(|(_, error)| error)?;
        let lock = Lock::take(&file).map_err(|error| match error {
            LockError::Io(error) => error,
            in_use => io::Error::new(ErrorKind::ResourceBusy, in_use.to_string()),
        })?;
        let notes = Self(Storage::File(file, lock));
        notes.all().map(|_| notes)
    }

    /// Returns the file, if the notes are in one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.0 {
            Storage::Memory(_) => None,
            Storage::File(path, _) => Some(path),
        }
    }

    /// Adds a note. A note for a file is on the disk when this returns. Blocks. Only one caller may
    /// use it at a time.
    ///
    /// # Errors
    /// The file cannot be written; nothing of the note is in it.
    pub(crate) fn add(&self, text: &str, now: SystemTime) -> io::Result<()> {
        let path = match &self.0 {
            Storage::File(path, _) => path,
            Storage::Memory(notes) => {
                let mut notes = notes.lock();
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
        let file = file::open(path)?;
        file::append_lines(&file, &entry)?;
        file.sync_all()?;
        // A new file is safe only when its folder is.
        if is_new && cfg!(unix) {
            file::sync_folder(path)?;
        }
        Ok(())
    }

    /// Returns all notes, oldest first. Blocks.
    ///
    /// # Errors
    /// The file cannot be read, is larger than 16 MiB, or is not text. A missing file has no notes.
    pub(crate) fn all(&self) -> io::Result<Vec<Note>> {
        let path = match &self.0 {
            Storage::File(path, _) => path,
            Storage::Memory(notes) => {
                let notes = notes.lock();
                return Ok(notes.iter().cloned().collect());
            }
        };
        let text = match bounded::text(path, MAX_BYTES) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            text => text?,
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

/// Returns whether a text asks for the notes, instead of being one: the word `list` alone.
pub(crate) fn asks_for_notes(text: &str) -> bool {
    let word = text.trim_matches(|c: char| !c.is_alphanumeric());
    word.eq_ignore_ascii_case("list")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::scratch::Folder;

    fn scratch() -> (Folder, PathBuf, Notes) {
        let folder = Folder::new();
        let file = folder.join("notes.txt");
        let notes = Notes::open(Some(file.clone())).unwrap();
        (folder, file, notes)
    }

    #[test]
    fn notes_are_read_as_they_were_written() {
        let (_folder, file, notes) = scratch();
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
        let file = std::fs::read_to_string(file).unwrap();
        assert!(
            file.starts_with("1970-01-01T00:00:00.000Z buy milk\n"),
            "{file}"
        );
    }

    #[test]
    fn lines_added_by_hand_are_notes_too() {
        let (_folder, file, notes) = scratch();
        std::fs::write(file, "    call ann\n\nfeed the cat").unwrap();
        let texts = notes.all().unwrap().into_iter().map(|note| note.text);
        let texts: Vec<_> = texts.collect();
        assert_eq!(texts, ["call ann", "feed the cat"]);
        // The last line has no end, and does not belong to the next note.
        notes.add("buy milk", SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(notes.all().unwrap()[2].text, "buy milk");
    }

    #[test]
    fn notes_belong_to_one_program_at_a_time() {
        let (_folder, file, _notes) = scratch();
        let again = || Notes::open(Some(file.clone()));
        let number = format!("(process {})", std::process::id());
        assert!(again().unwrap_err().to_string().ends_with(&number));
    }

    #[test]
    fn without_a_file_the_last_notes_are_kept() {
        let notes = Notes::open(None).unwrap();
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
    fn the_word_list_alone_asks_for_the_notes() {
        for (text, asks) in [
            ("list", true),
            (" List! ", true),
            ("list milk and eggs", false),
            ("lists", false),
            ("", false),
        ] {
            assert_eq!(asks_for_notes(text), asks, "{text}");
        }
    }
}
