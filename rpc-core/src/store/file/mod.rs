//! [`FileStore`]: a [`LocalStore`] in one file.

mod disk;
mod frame;

use std::ops::Bound;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use redb::{Builder, Database, Durability, TableDefinition};

use super::StoreError;
use super::local::{Changes, LocalStore, Row, Table};
use crate::file::{Lock, LockError};
use disk::{Disk, has_room};

const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("rows");

/// A [`Store`](super::Store) in one file, for one process at a time. It needs feature `file-store`.
///
/// What an append has returned is on the disk, as [`FileConfig::fsync`] says. Each record has a checksum:
/// a damaged one is [`StoreError::Unreadable`], and never another one.
pub type FileStore = LocalStore<FileTable>;

crate::config! {
    /// The configuration of a [`FileStore`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct FileConfig {
        /// When what is written is on the disk. Default [`Fsync::Always`].
        pub fsync: Fsync = Fsync::Always,
        /// The memory for parts of the file, in bytes. Default 16 MiB.
        pub cache: usize = 16 * 1024 * 1024,
    }
}

/// When what is written is on the disk, so that a loss of power does not take it. The end of the process, also
/// by a kill, takes nothing in any case.
///
/// Exhaustive on purpose: there is nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fsync {
    /// Before the append returns.
    Always,
    /// After this time at most. A loss of power may leave a damaged file, of which most can be taken over.
    Every(Duration),
    /// When the system likes. A loss of power may leave a damaged file, of which most can be taken over.
    Never,
}

/// The [`Table`] of a [`FileStore`].
#[derive(Debug)]
pub struct FileTable {
    path: PathBuf,
    opener: Opener,
    /// `None` after a failure. The database stops working after an error of the file system, and a
    /// full disk must not prevent later writes.
    database: RwLock<Option<Database>>,
    _lock: Option<Lock>,
}

/// How the file is opened.
#[derive(Debug)]
struct Opener {
    disk: Disk,
    cache: usize,
}

impl FileStore {
    /// Opens the store in a file, or makes it, for this user only where there are users. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Config`] if another process has it, whose name it says, or if it is something else;
    /// [`StoreError::Failed`] if it is damaged or cannot be read; [`StoreError::Full`] without room.
    pub fn open(path: &Path, config: FileConfig) -> Result<Self, StoreError> {
        Self::over(FileTable::open(path, config)?)
    }
}

impl FileTable {
    fn open(path: &Path, config: FileConfig) -> Result<Self, StoreError> {
        let lock = Lock::take(path).map_err(|error| match error {
            LockError::Io(error) => io_error(path, &error),
            in_use @ LockError::InUse { .. } => StoreError::Config {
                message: format!("{} is {in_use}", path.display()),
            },
        })?;
        let disk = Disk::open(path, config.fsync).map_err(|error| error_at(path, &error))?;
        Self::on(path, disk, config.cache, Some(lock))
    }

    fn on(path: &Path, disk: Disk, cache: usize, lock: Option<Lock>) -> Result<Self, StoreError> {
        let table = Self {
            path: path.to_owned(),
            opener: Opener { disk, cache },
            database: RwLock::new(None),
            _lock: lock,
        };
        // So that readers find the rows.
        table.with(|database| {
            let write = database.begin_write()?;
            write.open_table(ROWS)?;
            Ok(write.commit()?)
        })?;
        Ok(table)
    }

    /// Does something with the database, which is opened if it is not.
    fn with<T>(
        &self,
        work: impl FnOnce(&Database) -> Result<T, redb::Error>,
    ) -> Result<T, StoreError> {
        let mut place = self.database.read().unwrap_or_else(PoisonError::into_inner);
        if place.is_none() {
            drop(place);
            let mut empty = self
                .database
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            if empty.is_none() {
                *empty = Some(self.guarded(|| self.opener.open())?);
            }
            drop(empty);
            place = self.database.read().unwrap_or_else(PoisonError::into_inner);
        }
        let Some(database) = &*place else {
            return Err(error_at(&self.path, &redb::Error::PreviousIo));
        };
        let done = self.guarded(|| work(database));
        drop(place);
        if done.is_err() {
            let mut place = self
                .database
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            let broken = place.take();
            // It tries to tidy up, which may fail once more.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(broken)));
        }
        done
    }

    /// The engine finds some damage by assertions.
    fn guarded<T>(&self, work: impl FnOnce() -> Result<T, redb::Error>) -> Result<T, StoreError> {
        match catch_unwind(AssertUnwindSafe(work)) {
            Ok(done) => done.map_err(|error| error_at(&self.path, &error)),
            Err(_) => Err(damaged(&self.path, "its parts contradict each other")),
        }
    }
}

fn error_at(path: &Path, error: &redb::Error) -> StoreError {
    match error {
        redb::Error::Io(error) => io_error(path, error),
        redb::Error::Corrupted(how) => damaged(path, how),
        error => failed(path, error),
    }
}

fn damaged(path: &Path, how: &str) -> StoreError {
    let way = "`switchboard store copy --salvage` takes over what can be read";
    failed(path, format!("is damaged ({how}): {way}"))
}

impl Opener {
    fn open(&self) -> Result<Database, redb::Error> {
        let mut builder = Builder::new();
        builder.set_cache_size(self.cache);
        // The newer of two formats: only that one is read by later versions of the engine.
        builder.create_with_file_format_v3(true);
        Ok(builder.create_with_backend(self.disk.clone())?)
    }
}

fn failed(path: &Path, how: impl std::fmt::Display) -> StoreError {
    StoreError::Failed {
        message: format!("{} {how}", path.display()),
    }
}

fn io_error(path: &Path, error: &std::io::Error) -> StoreError {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let message = format!("{}: {error}", path.display());
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => StoreError::Full { message },
        _ => StoreError::Failed { message },
    }
}

fn bounds<'a>((from, to): (&'a [u8], &'a [u8])) -> (Bound<&'a [u8]>, Bound<&'a [u8]>) {
    (Bound::Included(from), Bound::Excluded(to))
}

impl Table for FileTable {
    fn range(&self, keys: (&[u8], &[u8]), max: usize) -> Result<Vec<Row>, StoreError> {
        self.with(|database| {
            let rows = database.begin_read()?.open_table(ROWS)?;
            let rows = rows.range::<&[u8]>(bounds(keys))?.take(max);
            let row =
                |row: Result<(redb::AccessGuard<'_, &[u8]>, redb::AccessGuard<'_, &[u8]>), _>| {
                    let (key, value) = row?;
                    Ok(frame::open(key.value(), value.value()))
                };
            rows.map(row).collect()
        })
    }

    fn last(&self, keys: (&[u8], &[u8])) -> Result<Option<Row>, StoreError> {
        self.with(|database| {
            let rows = database.begin_read()?.open_table(ROWS)?;
            let last = rows.range::<&[u8]>(bounds(keys))?.next_back().transpose()?;
            Ok(last.map(|(key, value)| frame::open(key.value(), value.value())))
        })
    }

    fn write(&self, changes: &Changes) -> Result<(), StoreError> {
        let bytes: usize = changes
            .iter()
            .map(|(key, value)| key.len() + value.as_ref().map_or(0, |it| it.len()))
            .sum();
        if !has_room(&self.path, bytes) {
            let full = std::io::ErrorKind::StorageFull.into();
            return Err(io_error(&self.path, &full));
        }
        self.with(|database| {
            let mut write = database.begin_write()?;
            write.set_durability(Durability::Immediate);
            let mut rows = write.open_table(ROWS)?;
            for (key, value) in changes {
                match value {
                    Some(value) => rows.insert(&**key, &*frame::seal(key, value))?,
                    None => rows.remove(&**key)?,
                };
            }
            drop(rows);
            Ok(write.commit()?)
        })
    }
}
