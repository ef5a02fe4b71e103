//! [`EmbeddedStore`]: a [`Store`] in one file, or in memory.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use redb::backends::InMemoryBackend;
use redb::{
    Builder, Database, ReadTransaction, ReadableTable as _, ReadableTableMetadata as _,
    WriteTransaction,
};

use super::row::{ACTIVE, DAYS, FACTS, FORMAT, META, SESSIONS, SessionRow, TURNS, USAGE, decode};
use super::tables::{Tables, Trouble};
use super::{Commit, Recalled, SessionInfo, Store, StoreError, StoreLimits, Totals};
use crate::gateway::memory::Turn;
use crate::gateway::usage::UsageEntry;

/// The name of the file in the folder of the data.
pub const FILE_NAME: &str = "exoclaw.redb";
/// Memory for pages of the file, in bytes.
const CACHE: usize = 32 * 1024 * 1024;

/// Keeps everything with an embedded database. Readers do not wait for writers; writers wait for
/// one another. Only one process can have a file open.
#[derive(Debug)]
pub struct EmbeddedStore {
    database: Database,
    limits: StoreLimits,
    file: String,
}

impl EmbeddedStore {
    /// Opens the store in a folder. What is missing is made, for this user alone to read. After a
    /// crash the file is repaired first. Blocks on the file system.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process has it, [`StoreError::Damaged`] or
    /// [`StoreError::Newer`] if its content is not understood, else [`StoreError::Io`].
    pub fn open(folder: &Path, limits: StoreLimits) -> Result<Self, StoreError> {
        let path = folder.join(FILE_NAME);
        let file = path.display().to_string();
        make_folder(folder).map_err(|error| StoreError::io(&file, &error))?;
        let opened = make_file(&path).map_err(|error| StoreError::io(&file, &error))?;
        Self::start(file, limits, |builder| builder.create_file(opened))
    }

    /// A store that forgets everything with the process.
    ///
    /// # Errors
    /// [`StoreError`] if there is not enough memory, in theory.
    pub fn in_memory(limits: StoreLimits) -> Result<Self, StoreError> {
        Self::start("memory".to_owned(), limits, |builder| {
            builder.create_with_backend(InMemoryBackend::new())
        })
    }

    fn start(
        file: String,
        limits: StoreLimits,
        create: impl FnOnce(&Builder) -> Result<Database, redb::DatabaseError>,
    ) -> Result<Self, StoreError> {
        let mut builder = Builder::new();
        builder
            .set_cache_size(CACHE)
            .create_with_file_format_v3(true);
        let database = guarded(&file, || create(&builder).map_err(Into::into))?;
        let store = Self {
            database,
            limits,
            file,
        };
        let found = store.write(|txn| {
            let mut meta = txn.open_table(META)?;
            let found = meta.get("format")?.map(|found| found.value());
            if found.is_none() {
                meta.insert("format", FORMAT)?;
            }
            txn.open_table(SESSIONS)?;
            txn.open_table(ACTIVE)?;
            txn.open_table(TURNS)?;
            txn.open_table(FACTS)?;
            txn.open_table(USAGE)?;
            txn.open_table(DAYS)?;
            Ok(found.unwrap_or(FORMAT))
        })?;
        if found > FORMAT {
            return Err(StoreError::Newer {
                file: store.file,
                found,
                known: FORMAT,
            });
        }
        Ok(store)
    }

    fn write<T>(
        &self,
        work: impl FnOnce(&WriteTransaction) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        guarded(&self.file, || {
            let txn = self.database.begin_write()?;
            let done = work(&txn)?;
            txn.commit()?;
            Ok(done)
        })
    }

    fn read<T>(
        &self,
        work: impl FnOnce(&ReadTransaction) -> Result<T, Trouble>,
    ) -> Result<T, StoreError> {
        guarded(&self.file, || work(&self.database.begin_read()?))
    }
}

/// Does something with the engine. It checks a damaged file with assertions, among others; their
/// panics end here.
fn guarded<T>(file: &str, work: impl FnOnce() -> Result<T, Trouble>) -> Result<T, StoreError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(Trouble::Engine(error))) => Err(StoreError::engine(file, &error)),
        Ok(Err(Trouble::Store(error))) => Err(error),
        Err(_) => Err(StoreError::damaged(file, "its parts contradict each other")),
    }
}

impl Store for EmbeddedStore {
    fn commit(&self, commits: &[Commit]) -> Result<(), StoreError> {
        self.write(|txn| {
            let mut tables = Tables::open(txn, &self.file, self.limits)?;
            for commit in commits {
                tables.add(commit)?;
            }
            tables.trim()
        })
    }

    fn recall(&self, session: &str, agent: &str, turns: usize) -> Result<Recalled, StoreError> {
        self.read(|txn| {
            let mut recalled = Recalled::default();
            let kept = txn.open_table(TURNS)?;
            for row in kept
                .range((session, 0)..=(session, u64::MAX))?
                .rev()
                .take(turns)
            {
                let turn: Turn = self.decode("turns", row?.1.value())?;
                recalled.turns.push(turn);
            }
            recalled.turns.reverse();
            if let Some(row) = txn.open_table(FACTS)?.get((session, agent))? {
                recalled.facts = self.decode("facts", row.value())?;
            }
            Ok(recalled)
        })
    }

    fn sessions(&self, max: usize) -> Result<Vec<SessionInfo>, StoreError> {
        self.read(|txn| {
            let sessions = txn.open_table(SESSIONS)?;
            let mut found = Vec::new();
            for row in txn.open_table(ACTIVE)?.iter()?.rev().take(max) {
                let (key, _) = row?;
                let (_, session) = key.value();
                let Some(row) = sessions.get(session)? else {
                    continue;
                };
                let row: SessionRow = self.decode("sessions", row.value())?;
                found.push(SessionInfo {
                    session: session.to_owned(),
                    created: row.created,
                    active: row.active,
                    turns: row.next,
                    tokens: row.tokens,
                });
            }
            Ok(found)
        })
    }

    fn session_count(&self) -> Result<u64, StoreError> {
        self.read(|txn| Ok(txn.open_table(SESSIONS)?.len()?))
    }

    fn usage(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError> {
        self.read(|txn| {
            let usage = txn.open_table(USAGE)?;
            let rows = usage.iter()?.rev().take(max);
            rows.map(|row| self.decode("usage", row?.1.value()))
                .collect()
        })
    }

    fn totals(&self) -> Result<Totals, StoreError> {
        self.read(|txn| {
            let mut totals = Totals::default();
            for row in txn.open_table(SESSIONS)?.iter()? {
                let (session, row) = row?;
                let row: SessionRow = self.decode("sessions", row.value())?;
                if row.tokens > 0 {
                    totals
                        .sessions
                        .push((session.value().to_owned(), row.tokens));
                }
            }
            for row in txn.open_table(DAYS)?.iter()? {
                let (day, tokens) = row?;
                totals.days.push((day.value(), tokens.value()));
            }
            Ok(totals)
        })
    }

    fn forget(&self, session: &str) -> Result<bool, StoreError> {
        self.write(|txn| {
            let mut tables = Tables::open(txn, &self.file, self.limits)?;
            let Some(mut row) = tables.row(session)? else {
                return Ok(false);
            };
            tables.clear(session)?;
            (row.first, row.bytes) = (row.next, 0);
            tables.put(session, &row)?;
            Ok(true)
        })
    }
}

impl EmbeddedStore {
    fn decode<T: serde::de::DeserializeOwned>(
        &self,
        table: &str,
        row: &[u8],
    ) -> Result<T, Trouble> {
        decode(&self.file, table, row).map_err(Trouble::Store)
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn make_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
