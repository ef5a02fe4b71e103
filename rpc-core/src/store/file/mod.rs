//! [`FileStore`]: a [`LocalStore`] in one file.

mod disk;
mod frame;
mod guard;
mod salvage;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

use bytes::Bytes;
use redb::{
    AccessGuard, Builder, Database, Durability, StorageBackend, TableDefinition, TableError,
};

use super::StoreError;
use super::local::{Changes, LocalStore, Row, Table, Which, bounds, logs_size};
use crate::file::{Lock, LockError};
use disk::{Disk, has_room};
use guard::guard;
pub use salvage::Salvaged;
use salvage::{Frozen, salvage};

/// The bytes of a file up to which it is checked as a whole when it is opened.
const CHECKED: u64 = 128 * 1024 * 1024;
/// The bytes up to which a file is never too large.
const SPARSE: u64 = 8 * 1024 * 1024;
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
    salvaged: Option<Salvaged>,
    /// Held, and not looked at.
    lock: Option<Lock>,
}

/// How the file is opened.
#[derive(Debug)]
struct Opener {
    disk: Disk,
    cache: usize,
}

impl FileStore {
    /// Opens the store in a file, or makes it, for this user only where there are users. Blocks: for seconds, if a
    /// large file has three times what its records need, and is made smaller.
    ///
    /// # Errors
    /// [`StoreError::Config`] if another process has it, whose name it says, or if it is something else;
    /// [`StoreError::Failed`] if it is damaged or cannot be read; [`StoreError::Full`] without room.
    pub fn open(path: &Path, config: FileConfig) -> Result<Self, StoreError> {
        let mut table = FileTable::open(path, config)?;
        let held = logs_size(&table)?;
        if table.size() > SPARSE + 3 * held {
            table.compact()?;
        }
        Self::over(table)
    }

    /// Returns what was taken over if the file was damaged when it was opened.
    #[must_use]
    pub fn salvaged(&self) -> Option<Salvaged> {
        self.table().salvaged
    }

    /// Takes over what can be read of a damaged file into a new one, which is opened. Blocks.
    ///
    /// # Errors
    /// As those of [`open`](Self::open), for either file. The damaged one is as it was.
    pub fn salvage(damaged: &Path, into: &Path, config: FileConfig) -> Result<Self, StoreError> {
        let mut table = FileTable::open(into, config)?;
        let _lock = FileTable::lock(damaged)?;
        let from = Disk::open(damaged, Fsync::Never).map_err(|error| error.at(damaged))?;
        table.salvaged = Some(salvage(&from, &table)?);
        Self::over(table)
    }
}

impl FileTable {
    fn lock(path: &Path) -> Result<Lock, StoreError> {
        Lock::take(path).map_err(|error| match error {
            LockError::Io(error) => io_error(path, &error),
            in_use => StoreError::config(format_args!("{} is {in_use}", path.display())),
        })
    }

    fn open(path: &Path, config: FileConfig) -> Result<Self, StoreError> {
        let lock = Self::lock(path)?;
        let mut table = Self::begin(path, config)?;
        let len = table.opener.disk.len();
        if len.is_ok_and(|it| (1..CHECKED).contains(&it)) && !table.is_whole()? {
            let salvaged = table.replace(config)?;
            let Salvaged { found, damaged } = salvaged;
            let path = path.display();
            tracing::warn!(%path, found, damaged, "a damaged store was made anew");
            table = Self::begin(&table.path, config)?;
            table.salvaged = Some(salvaged);
        }
        table.lock = Some(lock);
        Ok(table)
    }

    /// Opens a file that is locked, but not yet the database in it.
    fn begin(path: &Path, config: FileConfig) -> Result<Self, StoreError> {
        let disk = Disk::open(path, config.fsync).map_err(|error| error.at(path))?;
        let len = disk.len().map_err(|error| io_error(path, &error))?;
        if len > 0 && !disk.read(0, 4).is_ok_and(|start| start == *b"redb") {
            return Err(damaged(path, "it does not begin as a store does"));
        }
        Ok(Self::on(path, disk, config.cache))
    }

    fn on(path: &Path, disk: Disk, cache: usize) -> Self {
        Self {
            path: path.to_owned(),
            opener: Opener { disk, cache },
            database: RwLock::new(None),
            salvaged: None,
            lock: None,
        }
    }

    /// Whether the checksums of the whole database are right, or can be made so after a crash.
    fn is_whole(&self) -> Result<bool, StoreError> {
        let disk = &self.opener.disk;
        let checking = || {
            // The database would go back to what was before a damaged write.
            let frozen = Frozen::unclean(disk)?;
            let mut database = Opener::database(frozen, self.opener.cache)?;
            Ok(database.check_integrity()?)
        };
        match guard(checking) {
            Some(Ok(is_whole)) => Ok(is_whole),
            Some(Err(Fault(error))) => match *error {
                // Of the file system: nothing is known of the file.
                redb::Error::Io(error) if error.raw_os_error().is_some() => {
                    Err(io_error(&self.path, &error))
                }
                _ => Ok(false),
            },
            None => Ok(false),
        }
    }

    /// Makes the file anew of what can be read, and moves the damaged one to a free name beside it.
    fn replace(&self, config: FileConfig) -> Result<Salvaged, StoreError> {
        let beside = |end: &str| {
            let mut name = self.path.clone().into_os_string();
            name.push(end);
            PathBuf::from(name)
        };
        let draft = beside(".switchboard-tmp");
        let failed = |error: std::io::Error| io_error(&draft, &error);
        match std::fs::remove_file(&draft) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(failed(error));
            }
            _ => {}
        }
        let salvaged = salvage(&self.opener.disk, &Self::begin(&draft, config)?)?;
        let mut names = (1..).map(|number| beside(&format!(".damaged-{number}")));
        let damaged = names.find(|name| !name.exists()).unwrap_or_default();
        std::fs::rename(&self.path, damaged).map_err(failed)?;
        std::fs::rename(&draft, &self.path).map_err(failed)?;
        Ok(salvaged)
    }

    /// Does something with the database, which is opened if it is not.
    fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T, Fault>) -> Result<T, StoreError> {
        let mut place = self.database.read().unwrap_or_else(PoisonError::into_inner);
        if place.is_none() {
            drop(place);
            let mut empty = self.place();
            if empty.is_none() {
                *empty = Some(self.guarded(|| self.opener.open())?);
            }
            drop(empty);
            place = self.database.read().unwrap_or_else(PoisonError::into_inner);
        }
        let Some(database) = &*place else {
            return Err(failed(&self.path, redb::Error::PreviousIo));
        };
        let done = self.guarded(|| work(database));
        drop(place);
        if done.is_err() {
            close(self.place().take());
        }
        done
    }

    fn place(&self) -> RwLockWriteGuard<'_, Option<Database>> {
        let place = self.database.write();
        place.unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes on the disk: the file has holes.
    fn size(&self) -> u64 {
        let Ok(file) = std::fs::metadata(&self.path) else {
            return 0;
        };
        #[cfg(unix)]
        return std::os::unix::fs::MetadataExt::blocks(&file) * 512;
        #[cfg(not(unix))]
        file.len()
    }

    fn compact(&mut self) -> Result<(), StoreError> {
        let mut database = self.place().take();
        let done = self.guarded(|| Ok(database.as_mut().map(Database::compact).transpose()?));
        // It is opened again.
        close(database);
        done.map(drop)
    }

    fn guarded<T>(&self, work: impl FnOnce() -> Result<T, Fault>) -> Result<T, StoreError> {
        match guard(work) {
            Some(done) => done.map_err(|error| error.at(&self.path)),
            None => Err(damaged(&self.path, "its parts contradict each other")),
        }
    }
}

/// An error of the database.
struct Fault(Box<redb::Error>);

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self(Box::new(error.into()))
    }
}

impl Fault {
    fn at(self, path: &Path) -> StoreError {
        match *self.0 {
            redb::Error::Io(error) => io_error(path, &error),
            redb::Error::Corrupted(how) => damaged(path, &how),
            // Under another name: `lock` has found no one.
            redb::Error::DatabaseAlreadyOpen => StoreError::config(format_args!(
                "{} is in use under another name",
                path.display()
            )),
            error => failed(path, error),
        }
    }
}

/// It tries to tidy up, which may fail once more.
fn close(database: Option<Database>) {
    let _ = guard(|| drop(database));
}

fn damaged(path: &Path, how: &str) -> StoreError {
    let way = "`switchboard store copy --salvage` takes over what can be read";
    failed(path, format!("is damaged ({how}): {way}"))
}

impl Opener {
    fn open(&self) -> Result<Database, Fault> {
        let database = Self::database(self.disk.clone(), self.cache)?;
        // So that readers find the rows.
        if let Err(TableError::TableDoesNotExist(_)) = database.begin_read()?.open_table(ROWS) {
            let write = database.begin_write()?;
            write.open_table(ROWS)?;
            write.commit()?;
        }
        Ok(database)
    }

    fn database(disk: impl StorageBackend, cache: usize) -> Result<Database, Fault> {
        let mut builder = Builder::new();
        builder.set_cache_size(cache);
        // The newer of two formats: only that one is read by later versions of the engine.
        builder.create_with_file_format_v3(true);
        Ok(builder.create_with_backend(disk)?)
    }
}

fn failed(path: &Path, how: impl std::fmt::Display) -> StoreError {
    StoreError::failed(format_args!("{} {how}", path.display()))
}

fn io_error(path: &Path, error: &std::io::Error) -> StoreError {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    let message = format!("{}: {error}", path.display());
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => StoreError::Full { message },
        _ => StoreError::Failed { message },
    }
}

type Guard<'a> = AccessGuard<'a, &'static [u8]>;

impl Table for FileTable {
    fn range(
        &self,
        keys: (&[u8], &[u8]),
        which: Which,
        max: usize,
    ) -> Result<Vec<Row>, StoreError> {
        self.with(|database| {
            let rows = database.begin_read()?.open_table(ROWS)?;
            let mut rows = rows.range::<&[u8]>(bounds(keys))?;
            let next = std::iter::from_fn(|| match which {
                Which::First => rows.next(),
                Which::Last => rows.next_back(),
            });
            let open = |row: Result<(Guard<'_>, Guard<'_>), _>| {
                let (key, value) = row?;
                Ok(frame::open(key.value(), value.value()))
            };
            next.take(max).map(open).collect()
        })
    }

    fn write(&self, changes: &Changes) -> Result<(), StoreError> {
        let values = changes.values().flatten().map(Bytes::len);
        let bytes = values.sum::<usize>() + changes.keys().map(Vec::len).sum::<usize>();
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
