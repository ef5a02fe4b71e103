//! [`ResultsFile`]: the file in which ConnectOnion's own hosts keep their sessions.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use super::record::{Record, RecordStatus};
use rpc_core::sync::Mutex;

use super::entry;
use crate::hub::Owner;
use crate::limits::MAX_CLIENT_MESSAGE;

/// A file of records, one per line, such as `.co/session_results.jsonl`; it is only read.
///
/// Lines that are not records, such as one that a crash cut short, are skipped and counted. Lines of earlier
/// versions of this crate, which say what is new to those before them, are read, too. Its methods block.
#[derive(Debug)]
pub struct ResultsFile {
    file: Mutex<File>,
    sessions: HashMap<Box<str>, Slot>,
    len: u64,
    skipped: u64,
}

/// A line in the file, without its line break.
#[derive(Clone, Copy, Debug)]
struct Span {
    offset: u64,
    len: usize,
}

/// What is known of a session without reading its lines again.
#[derive(Debug)]
struct Slot {
    /// The last line, and those that it adds to.
    lines: Vec<Span>,
    status: RecordStatus,
    expires: Option<f64>,
    owner: Option<Owner>,
}

impl ResultsFile {
    /// Opens a file and finds its sessions.
    ///
    /// # Errors
    /// The system's; retrying is safe.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Self> {
        let mut this = Self {
            file: Mutex::new(File::open(path)?),
            sessions: HashMap::new(),
            len: 0,
            skipped: 0,
        };
        let mut file = BufReader::new(this.file.lock().try_clone()?);
        let mut line = Vec::new();
        loop {
            line.clear();
            let size = read_line(&mut file, MAX_CLIENT_MESSAGE, &mut line)?;
            if size == 0 {
                return Ok(this);
            }
            let span = Span {
                offset: this.len,
                len: line.len(),
            };
            this.len += size;
            if !line.is_empty() && (line.len() > MAX_CLIENT_MESSAGE || !this.take(span, &line)) {
                this.skipped += 1;
            }
        }
    }

    /// Returns the length of what was read, in bytes.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.len
    }

    /// Returns the number of lines that are not records.
    #[must_use]
    pub const fn skipped_lines(&self) -> u64 {
        self.skipped
    }

    /// Returns the ids of the sessions with a line at or after this place.
    pub fn sessions(&self, after: u64) -> impl Iterator<Item = &str> {
        let is_new = move |slot: &Slot| slot.lines.last().is_some_and(|line| line.offset >= after);
        let new = self.sessions.iter().filter(move |(_, slot)| is_new(slot));
        new.map(|(id, _)| &**id)
    }

    /// Reads the last record of a session, completed by those before it. `None` if there is none.
    ///
    /// # Errors
    /// The system's; retrying is safe.
    pub fn record(&self, session_id: &str) -> io::Result<Option<Record>> {
        let Some(slot) = self.sessions.get(session_id) else {
            return Ok(None);
        };
        let mut record = None;
        for span in &slot.lines {
            let mut line = vec![0; span.len];
            let mut file = self.file.lock();
            file.seek(SeekFrom::Start(span.offset))?;
            file.read_exact(&mut line)?;
            let line = String::from_utf8(line).unwrap_or_default();
            if let Some(next) = entry::read(&line, record.as_ref()) {
                record = Some(next);
            }
        }
        let owner = slot.owner;
        Ok(record.map(|record| Record { owner, ..record }))
    }

    /// Returns `false` if a line is not a record.
    fn take(&mut self, span: Span, line: &[u8]) -> bool {
        let found = std::str::from_utf8(line).ok();
        let Some(found) = found.and_then(|line| Record::parse(line).ok()) else {
            return false;
        };
        let before = self.sessions.remove(&*found.session_id);
        let before = before.filter(|it| found.follows(it.owner, &it.status, it.expires));
        let owner = found.owner.or_else(|| before.as_ref()?.owner);
        let before = before.filter(|_| found.session.is_none());
        let mut lines = before.map(|before| before.lines).unwrap_or_default();
        lines.push(span);
        let slot = Slot {
            lines,
            status: found.status,
            expires: found.expires,
            owner,
        };
        self.sessions.insert((&*found.session_id).into(), slot);
        true
    }
}

/// Reads a line, without its line break. Returns its length in the file. Of a line longer than `max` bytes,
/// at most one more is kept.
fn read_line(file: &mut impl BufRead, max: usize, line: &mut Vec<u8>) -> io::Result<u64> {
    let mut size = 0;
    loop {
        let buffer = match file.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            buffer => buffer?,
        };
        if buffer.is_empty() {
            return Ok(size);
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(buffer.len(), |end| end + 1);
        let room = (max + 1).saturating_sub(line.len());
        let piece = buffer.get(..end.unwrap_or(taken)).unwrap_or_default();
        line.extend(piece.iter().take(room));
        file.consume(taken);
        size += taken as u64;
        if end.is_some() {
            return Ok(size);
        }
    }
}
