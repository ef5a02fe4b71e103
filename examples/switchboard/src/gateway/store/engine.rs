//! [`Engine`]: the database of a file, reopened after a failure.

use std::cell::Cell;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::Path;
use std::sync::{Once, PoisonError, RwLock};

use redb::{Builder, Database, ReadTransaction, WriteTransaction};

use super::StoreError;

/// Memory for pages of the file, in bytes.
const CACHE: usize = 32 * 1024 * 1024;

/// The error of a transaction, which is then aborted.
pub(super) enum TxError {
    Engine(Box<redb::Error>),
    Store(StoreError),
}

impl<E: Into<redb::Error>> From<E> for TxError {
    fn from(error: E) -> Self {
        Self::Engine(Box::new(error.into()))
    }
}

type Opener = Box<dyn Fn(&Builder) -> Result<Database, redb::DatabaseError> + Send + Sync>;

/// A database, and how to open it.
pub(super) struct Engine {
    opener: Opener,
    /// `None` after a failure. The database stops working after an error of the file system, and a
    /// full disk must not prevent later writes.
    database: RwLock<Option<Database>>,
    file: String,
}

rpc_core::debug_fields!([] Engine, this => { file: this.file });

impl Engine {
    pub(super) fn start(
        file: String,
        opener: impl Fn(&Builder) -> Result<Database, redb::DatabaseError> + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        let engine = Self {
            opener: Box::new(opener),
            database: RwLock::new(None),
            file,
        };
        engine.open()?;
        Ok(engine)
    }

    /// Returns the name of the database, for messages.
    pub(super) fn file(&self) -> &str {
        &self.file
    }

    /// Runs a transaction, which is applied completely or not at all.
    pub(super) fn write<T>(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<T, TxError>,
    ) -> Result<T, StoreError> {
        self.with(|database| {
            let txn = database.begin_write()?;
            let done = work(&txn)?;
            txn.commit()?;
            Ok(done)
        })
    }

    /// Reads a consistent state, whatever is written meanwhile.
    pub(super) fn read<T>(
        &self,
        work: impl FnOnce(&ReadTransaction) -> Result<T, TxError>,
    ) -> Result<T, StoreError> {
        self.with(|database| work(&database.begin_read()?))
    }

    fn with<T>(&self, work: impl FnOnce(&Database) -> Result<T, TxError>) -> Result<T, StoreError> {
        let mut database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        if database.is_none() {
            drop(database);
            self.open()?;
            database = self.database.read().unwrap_or_else(PoisonError::into_inner);
        }
        let Some(open) = &*database else {
            return Err(self.error(&redb::Error::PreviousIo));
        };
        let outcome = guarded(|| work(open));
        drop(database);
        match outcome {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(TxError::Store(error))) => Err(error),
            Ok(Err(TxError::Engine(error))) => {
                self.close();
                Err(self.error(&error))
            }
            Err(contradiction) => {
                self.close();
                Err(contradiction.at(&self.file))
            }
        }
    }

    fn open(&self) -> Result<(), StoreError> {
        let mut place = self
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        if place.is_some() {
            return Ok(());
        }
        let mut builder = Builder::new();
        builder.set_cache_size(CACHE);
        // The newer of two formats: only that one is read by later versions of the engine.
        builder.create_with_file_format_v3(true);
        let opened = guarded(|| (self.opener)(&builder));
        let opened = opened.map_err(|contradiction| contradiction.at(&self.file))?;
        *place = Some(opened.map_err(|error| self.error(&error.into()))?);
        Ok(())
    }

    fn close(&self) {
        let mut place = self
            .database
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let broken = place.take();
        // It tries to tidy up, which may fail once more.
        let _ = guarded(|| drop(broken));
    }

    fn error(&self, error: &redb::Error) -> StoreError {
        StoreError::engine(&self.file, error)
    }
}

/// A panic of the engine, which detects some damage of a file with assertions.
struct Contradiction;

impl Contradiction {
    fn at(self, file: &str) -> StoreError {
        StoreError::damaged(file, "its parts contradict each other")
    }
}

thread_local! {
    /// Whether a panic of this thread is caught here and returned as an error.
    static IS_MET: Cell<bool> = const { Cell::new(false) };
}

fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, Contradiction> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if IS_MET.get() {
                tracing::debug!(%panic, "the engine of the store has panicked");
            } else {
                usual(panic);
            }
        }));
    });
    let before = IS_MET.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work)).map_err(|_| Contradiction);
    IS_MET.set(before);
    outcome
}

/// Creates a folder for this user only, with its parents.
pub(super) fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Opens a file to read and write; a new one is for this user only.
pub(super) fn make_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
