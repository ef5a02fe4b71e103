//! [`JsonlStorage`]: sessions in a file, one record per line, appended at the end.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rpc_core::file::{self, Lock, LockError};
use rpc_core::sync::Mutex;

use super::lines::{Index, Slot, Span};
use super::record::is_expired;
use super::{Record, RecordStatus, Storage, StorageError, interrupted, short};
use crate::hub::Owner;

/// Shorter lines are written whole.
const SHORT_FROM: usize = 4 * 1024;
/// The most lines that a record is read from.
const MAX_LINES: usize = 256;

rpc_core::config! {
    /// The options of a file.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct JsonlOptions {
        /// Whether each record is on the disk before [`append`](Storage::append) returns. Otherwise
        /// a record survives the process, but the last ones may not survive a loss of power.
        /// Default `false`.
        pub sync: bool = false,
        /// The longest line in bytes: longer ones are refused when written, and skipped when read.
        /// Default 64 MiB.
        pub max_line_bytes: usize = 64 * 1024 * 1024,
        /// The size in bytes from which a file is compacted when a record is added, if less than
        /// half of it is current and has not expired; `None` leaves it to
        /// [`compact`](Storage::compact). Default 1 MiB.
        pub compact_from: Option<u64> = Some(1024 * 1024),
        /// The largest file in bytes: what would exceed it is refused. The records of one owner that
        /// have not expired may take a quarter of it. Default 2 GiB.
        pub max_file_bytes: u64 = 2 * 1024 * 1024 * 1024,
        /// How long [`open`](JsonlStorage::open) waits for a program that has the file and is about to
        /// end. Default 0: not at all.
        pub wait: Duration = Duration::ZERO,
    }
}

/// A storage of sessions in a file, in the format of ConnectOnion's own hosts
/// (`.co/session_results.jsonl`), whose files it can read, too.
///
/// - One storage at a time has a file: another one is refused, in any process. A program that knows
///   nothing of the lock is not kept away.
/// - A record is one write at the end of the file, which is undone if it fails. A line that a crash cut
///   short is skipped, and the next record starts on a line of its own.
/// - Lines that are not records are skipped and counted. Only compaction removes them: it copies
///   the current records to a file beside it and renames that. A crash in between leaves the old
///   file.
/// - A long text is written once, and of a long conversation a record has what is new: see the deviations
///   from the [specification](crate::spec#deviations).
/// - Only a small index is kept in memory, not the records. On Unix only its user may read the file.
///
/// ```
/// use connectonion_proto::storage::{JsonlOptions, JsonlStorage, Record, RecordStatus, Storage};
///
/// # let folder = std::env::temp_dir().join(format!("jsonl-{}", std::process::id()));
/// # let path = folder.join("sessions.jsonl");
/// let storage = JsonlStorage::open(&path, JsonlOptions::default())?;
/// let record = Record::new("sess_1", RecordStatus::Running, "hello", 1_702_234_567.0);
/// storage.append(&record)?;
///
/// drop(storage);
/// let again = JsonlStorage::open(&path, JsonlOptions::default())?;
/// assert_eq!(again.sessions(), 1);
/// # drop(again);
/// # std::fs::remove_dir_all(folder).ok();
/// # Ok::<(), connectonion_proto::storage::StorageError>(())
/// ```
#[derive(Debug)]
pub struct JsonlStorage {
    path: PathBuf,
    options: JsonlOptions,
    inner: Mutex<Inner>,
    _lock: Lock,
}

struct Inner {
    /// Open for reading, and for writing at the end.
    file: File,
    index: Index,
    /// The file size from which compaction is considered again.
    look_from: u64,
}

impl JsonlStorage {
    /// Opens a file, or creates it with its parent folders. Blocks.
    ///
    /// # Errors
    /// [`StorageError::InUse`], [`StorageError::Io`]; retrying is safe.
    pub fn open(path: impl Into<PathBuf>, options: JsonlOptions) -> Result<Self, StorageError> {
        let path = path.into();
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(StorageError::io("make the folder"))?;
        }
        let lock = Lock::wait(&path, options.wait).map_err(|error| match error {
            LockError::Io(error) => StorageError::io("lock the file")(error),
            other => StorageError::InUse {
                words: other.to_string(),
            },
        })?;
        let file = file::open(&path).map_err(StorageError::io("open the file"))?;
        let index = Index::read(BufReader::new(&file), options.max_line_bytes)
            .map_err(StorageError::io("read the file"))?;
        Ok(Self {
            inner: Mutex::new(Inner {
                file,
                index,
                look_from: options.compact_from.unwrap_or(u64::MAX),
            }),
            path,
            options,
            _lock: lock,
        })
    }

    /// Returns the number of sessions, including expired ones.
    #[must_use]
    pub fn sessions(&self) -> usize {
        self.inner.lock().index.sessions()
    }

    /// Returns the number of lines found that are not records, for example cut short by a crash.
    #[must_use]
    pub fn skipped_lines(&self) -> u64 {
        self.inner.lock().index.skipped
    }
}

impl Storage for JsonlStorage {
    fn load(&self, session_id: &str, now: f64) -> Result<Option<Record>, StorageError> {
        let inner = self.inner.lock();
        let slot = inner.index.get(session_id);
        let Some(slot) = slot.filter(|slot| !is_expired(&slot.status, slot.expires, now)) else {
            return Ok(None);
        };
        inner.record(session_id, slot).map(Some)
    }

    fn append(&self, record: &Record) -> Result<(), StorageError> {
        let mut inner = self.inner.lock();
        let line = inner.line_of(record);
        inner.make_room(record, line.len() as u64 + 2, &self.path, &self.options)?;
        inner.append(&line, &self.options)?;
        if inner.index.len >= inner.look_from {
            // What had expired when this record's run began has expired.
            let keep = |slot: &Slot| !is_expired(&slot.status, slot.expires, record.created);
            if inner.index.live(keep) < inner.index.len / 2 {
                // The record is stored, whatever becomes of this.
                let _ = inner.compact(&self.path, keep);
            }
            let from = self.options.compact_from.unwrap_or(u64::MAX);
            inner.look_from = inner.index.len.saturating_mul(2).max(from);
        }
        Ok(())
    }

    fn delete(&self, session_id: &str, owner: Owner) -> Result<(), StorageError> {
        let mut inner = self.inner.lock();
        let slot = inner.index.get(session_id);
        let Some(slot) = slot.filter(|it| it.owner.is_none_or(|it| it == owner)) else {
            return Ok(());
        };
        let last = slot.lines.last().copied();
        inner.compact(&self.path, |slot| slot.lines.last().copied() != last)
    }

    fn recover(&self, now: f64) -> Result<Vec<Record>, StorageError> {
        let mut inner = self.inner.lock();
        let is_running = |slot: &Slot| slot.status == RecordStatus::Running;
        let running = inner.index.list(is_running).into_iter();
        let running = running.map(|(id, slot)| (id.to_owned(), slot.clone()));
        let running: Vec<_> = running.collect();
        let mut found = Vec::new();
        for (id, slot) in running {
            let record = interrupted(inner.record(&id, &slot)?, now);
            let line = inner.line_of(&record);
            inner.append(&line, &self.options)?;
            found.push(record);
        }
        Ok(found)
    }

    fn compact(&self, now: f64) -> Result<(), StorageError> {
        let keep = |slot: &Slot| !is_expired(&slot.status, slot.expires, now);
        self.inner.lock().compact(&self.path, keep)
    }
}

impl Inner {
    /// Reads a session's record from all its lines. Those that cannot be read are skipped.
    fn record(&self, session_id: &str, slot: &Slot) -> Result<Record, StorageError> {
        let mut record: Option<Record> = None;
        for span in &slot.lines {
            let line = self.line(*span)?;
            if let Some(next) = short::read(&line, record.as_ref()) {
                record = Some(next).filter(|next| next.session_id == session_id);
            }
        }
        let mut record = record.ok_or(StorageError::Changed)?;
        record.owner = slot.owner;
        Ok(record)
    }

    /// Returns the line of a record: of a long one what it adds to those before it, but from time to
    /// time all.
    fn line_of(&self, record: &Record) -> String {
        let line = record.to_line();
        if line.len() < SHORT_FROM {
            return line;
        }
        let slot = self.index.get(&record.session_id);
        let slot = slot.filter(|it| record.follows(it.owner, &it.status, it.expires));
        let before = slot.and_then(|slot| self.record(&record.session_id, slot).ok());
        let size = slot.map_or(0, Slot::size);
        let is_due = slot.is_some_and(|slot| slot.lines.len() > MAX_LINES);
        short::line_of(record, line, before.as_ref(), size, is_due)
    }

    fn line(&self, span: Span) -> Result<String, StorageError> {
        let mut line = vec![0; span.len];
        let mut file = &self.file;
        let read = file
            .seek(SeekFrom::Start(span.offset))
            .and_then(|_| file.read_exact(&mut line));
        match read {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(StorageError::Changed);
            }
            read => read.map_err(StorageError::io("read the file"))?,
        }
        String::from_utf8(line).map_err(|_| StorageError::Changed)
    }

    /// Refuses a record that the file has no room for, after an attempt to make some. What has expired
    /// when the record's run begins has expired.
    fn make_room(
        &mut self,
        record: &Record,
        size: u64,
        path: &Path,
        options: &JsonlOptions,
    ) -> Result<(), StorageError> {
        let max = options.max_file_bytes;
        if self.index.len.saturating_add(size) <= max / 4 {
            return Ok(());
        }
        let is_current = |slot: &Slot| !is_expired(&slot.status, slot.expires, record.created);
        let is_own = |slot: &Slot| slot.owner == record.owner;
        let theirs = self.index.live(|slot| is_current(slot) && is_own(slot));
        let replaced = self.index.get(&record.session_id);
        let replaced = replaced.filter(|it| is_own(it) && is_current(it));
        let replaced = replaced.map_or(0, Slot::size);
        let full = |max: u64| Err(StorageError::Full { max });
        if theirs.saturating_sub(replaced).saturating_add(size) > max / 4 {
            return full(max / 4);
        }
        if self.index.len.saturating_add(size) <= max {
            return Ok(());
        }
        if self.index.live(is_current).saturating_add(size) > max {
            return full(max);
        }
        self.compact(path, is_current)
    }

    fn append(&mut self, line: &str, options: &JsonlOptions) -> Result<(), StorageError> {
        if line.len() > options.max_line_bytes {
            return Err(StorageError::TooLarge {
                size: line.len(),
                max: options.max_line_bytes,
            });
        }
        // What was cut short must not swallow this one.
        let start = if self.index.is_torn { "\n" } else { "" };
        let text = [start, line, "\n"].concat();
        if let Err(error) = file::append(&self.file, text.as_bytes()) {
            // Some of it may be there still: look, so that no place is wrong.
            let len = self.file.metadata().map_or(self.index.len, |it| it.len());
            self.index.is_torn |= len != self.index.len;
            self.index.len = len;
            return Err(StorageError::io("write to the file")(error));
        }
        let span = Span {
            offset: self.index.len + start.len() as u64,
            len: line.len(),
        };
        self.index.is_torn = false;
        self.index.len = span.offset + span.len as u64 + 1;
        self.index.take(span, line.as_bytes());
        if options.sync {
            let synced = self.file.sync_data();
            synced.map_err(StorageError::io("write to the disk"))?;
        }
        Ok(())
    }

    /// Writes the current records to a new file, and replaces the old one with it.
    fn compact(&mut self, path: &Path, keep: impl Fn(&Slot) -> bool) -> Result<(), StorageError> {
        let told = StorageError::io("compact the file");
        let (file, index) = file::replace(path, |file| self.copy(keep, file), told)?;
        self.file = file;
        self.index = index;
        Ok(())
    }

    /// Writes the current records to a file: lines unchanged, except those that inherit an owner.
    fn copy(&self, keep: impl Fn(&Slot) -> bool, file: &File) -> Result<Index, StorageError> {
        let mut out = BufWriter::new(file);
        let mut index = Index::default();
        for (id, slot) in self.index.list(keep) {
            let lines = match slot.inherits_owner {
                true => vec![self.record(id, slot)?.to_line()],
                false => {
                    let lines = slot.lines.iter().map(|it| self.line(*it));
                    lines.collect::<Result<_, _>>()?
                }
            };
            for mut line in lines {
                let span = Span {
                    offset: index.len,
                    len: line.len(),
                };
                if !index.take(span, line.as_bytes()) {
                    return Err(StorageError::Changed);
                }
                line.push('\n');
                let written = out.write_all(line.as_bytes());
                written.map_err(StorageError::io("compact the file"))?;
                index.len += line.len() as u64;
            }
        }
        let written = out.flush();
        written.map_err(StorageError::io("compact the file"))?;
        Ok(index)
    }
}

// Prints numbers only: records are private.
rpc_core::debug_fields!([] Inner, this => { sessions: this.index.sessions() });
