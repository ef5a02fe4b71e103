//! [`ResultsFile`]: the file in which ConnectOnion's own hosts keep their sessions.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use rpc_core::Str;
use rpc_core::sync::Mutex;

use super::{Record, entry};
use crate::limits::MAX_CLIENT_MESSAGE;

/// The length of a line with its line break, at most.
const MAX_LINE: u64 = MAX_CLIENT_MESSAGE as u64 + 1;

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

/// The lines of a session.
#[derive(Debug)]
struct Slot {
    /// The last line, and those that it adds to.
    lines: Vec<Span>,
    /// The last record, without its texts.
    last: Record,
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
            let mut size = (&mut file).take(MAX_LINE).read_until(b'\n', &mut line)?;
            if size == 0 {
                return Ok(this);
            }
            let is_long = line.pop_if(|last| *last == b'\n').is_none() && size as u64 == MAX_LINE;
            if is_long {
                size += file.skip_until(b'\n')?;
            }
            let span = Span {
                offset: this.len,
                len: line.len(),
            };
            this.len += size as u64;
            if !line.is_empty() && (is_long || !this.take(span, &line)) {
                this.skipped += 1;
            }
        }
    }

    /// Returns the number of lines that are not records.
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
        let owner = slot.last.owner;
        Ok(record.map(|record| Record { owner, ..record }))
    }

    /// Returns `false` if a line is not a record.
    fn take(&mut self, span: Span, line: &[u8]) -> bool {
        let found = std::str::from_utf8(line).ok();
        let Some(mut last) = found.and_then(|line| Record::parse(line).ok()) else {
            return false;
        };
        let before = self.sessions.remove(&*last.session_id);
        let before = before.filter(|it| last.follows(&it.last));
        last.owner = last.owner.or_else(|| before.as_ref()?.last.owner);
        let before = before.filter(|_| last.session.is_none());
        let mut lines = before.map(|before| before.lines).unwrap_or_default();
        lines.push(span);
        (last.session, last.result, last.inputs) = (None, None, Vec::new());
        last.prompt = Str::EMPTY;
        let id = (&*last.session_id).into();
        self.sessions.insert(id, Slot { lines, last });
        true
    }
}
