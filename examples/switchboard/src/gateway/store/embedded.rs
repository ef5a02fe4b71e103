//! [`EmbeddedStore`]: a [`Store`] in one file, or in memory.

use std::io::Write as _;
use std::path::Path;

use redb::ReadableTable as _;
use redb::backends::InMemoryBackend;
use rpc_core::file::{Lock, LockError};

use super::engine::{Engine, TxError, make_file, make_folder};
use super::row::{
    ACTIVE, DAYS, FORMAT, FORMAT_KEY, META, SESSIONS, SessionRow, TURNS, USAGE, decode,
};
use super::tables::Tables;
use super::{Commit, Forget, SessionInfo, Store, StoreError, StoreLimits, Totals};
use crate::gateway::memory::Turn;
use crate::gateway::usage::UsageEntry;

/// The name of the file in the data folder.
pub const FILE_NAME: &str = "exoclaw.redb";

/// Returns a warning if the file exists and is empty, as after a full disk.
pub fn empty_file(folder: &Path) -> Option<String> {
    let path = folder.join(FILE_NAME);
    let is_empty = path
        .metadata()
        .is_ok_and(|it| it.is_file() && it.len() == 0);
    let file = path.display();
    is_empty.then(|| format!("{file} is empty: nothing is remembered, and budgets start at 0"))
}

/// Checks whether a folder can have a store: opens an existing one, unless it is in use, or
/// otherwise writes and removes another file. Blocks on the file system.
///
/// # Errors
/// As for [`EmbeddedStore::open`].
pub fn probe(folder: &Path) -> Result<(), StoreError> {
    if folder.join(FILE_NAME).exists() && empty_file(folder).is_none() {
        let store = EmbeddedStore::open(folder, StoreLimits::default());
        match store.and_then(|store| store.totals()) {
            Ok(_) => return Ok(()),
            Err(StoreError::InUse { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    // What is missing would be made.
    let mut there = folder;
    while !there.as_os_str().is_empty() && !there.exists() {
        there = there.parent().unwrap_or(Path::new(""));
    }
    let path = there.join(format!(".exoclaw-check-{}", std::process::id()));
    let tried = make_file(&path).and_then(|mut file| {
        file.write_all(&[0; 4096])?;
        file.sync_all()
    });
    let _ = std::fs::remove_file(&path);
    tried.map_err(|error| StoreError::io(&folder.display().to_string(), &error))
}

/// A store in an embedded database. Readers do not wait for writers; writers wait for each other.
/// Only one process can have a file open. After an error of the file system the next call opens it
/// again.
#[derive(Debug)]
pub struct EmbeddedStore {
    engine: Engine,
    limits: StoreLimits,
    /// Held, and not looked at. None in memory.
    _lock: Option<Lock>,
}

impl EmbeddedStore {
    /// Opens the store in a folder. Creates the folder and the file if they are missing, readable
    /// by this user only. Repairs the file first after a crash. Blocks on the file system.
    ///
    /// # Errors
    /// [`StoreError::InUse`] if another process has it, [`StoreError::Damaged`] or
    /// [`StoreError::Newer`] if its contents are invalid or unknown, otherwise [`StoreError::Io`].
    pub fn open(folder: &Path, limits: StoreLimits) -> Result<Self, StoreError> {
        let path = folder.join(FILE_NAME);
        let file = path.display().to_string();
        make_folder(folder).map_err(|error| StoreError::io(&file, &error))?;
        let lock = Lock::take(&path).map_err(|error| match error {
            LockError::Io(error) => StoreError::io(&file, &error),
            other => StoreError::InUse {
                file: file.clone(),
                words: other.to_string(),
            },
        })?;
        let engine = Engine::start(file, move |builder| builder.create_file(make_file(&path)?))?;
        let mut store = Self::new(engine, limits)?;
        store._lock = Some(lock);
        Ok(store)
    }

    /// Creates a store in memory.
    ///
    /// # Errors
    /// [`StoreError`] if there is not enough memory, in theory.
    pub fn in_memory(limits: StoreLimits) -> Result<Self, StoreError> {
        let engine = Engine::start("memory".to_owned(), |builder| {
            builder.create_with_backend(InMemoryBackend::new())
        })?;
        Self::new(engine, limits)
    }

    pub(super) fn new(engine: Engine, limits: StoreLimits) -> Result<Self, StoreError> {
        engine.write(|txn| {
            let mut meta = txn.open_table(META)?;
            let found = meta.get(FORMAT_KEY)?.map(|found| found.value());
            match found {
                None => {
                    meta.insert(FORMAT_KEY, FORMAT)?;
                }
                Some(FORMAT) => {}
                Some(found) => {
                    return Err(TxError::Store(StoreError::Newer {
                        file: engine.file().to_owned(),
                        found,
                        known: FORMAT,
                    }));
                }
            }
            drop(meta);
            // Readers find every table.
            Tables::open(txn, engine.file(), limits)?.trim()
        })?;
        Ok(Self {
            engine,
            limits,
            _lock: None,
        })
    }

    fn decode<T: serde::de::DeserializeOwned>(
        &self,
        table: &str,
        row: &[u8],
    ) -> Result<T, TxError> {
        decode(self.engine.file(), table, row).map_err(TxError::Store)
    }
}

impl Store for EmbeddedStore {
    fn commit(&self, commits: &[Commit]) -> Result<(), StoreError> {
        self.engine.write(|txn| {
            let mut tables = Tables::open(txn, self.engine.file(), self.limits)?;
            for commit in commits {
                tables.add(commit)?;
            }
            tables.trim()
        })
    }

    fn recall(&self, session: &str, turns: usize) -> Result<Vec<Turn>, StoreError> {
        self.engine.read(|txn| {
            let mut recalled = Vec::new();
            let kept = txn.open_table(TURNS)?;
            for row in kept
                .range((session, 0)..=(session, u64::MAX))?
                .rev()
                .take(turns)
            {
                let turn: Turn = self.decode("turns", row?.1.value())?;
                recalled.push(turn);
            }
            recalled.reverse();
            Ok(recalled)
        })
    }

    fn sessions(&self, max: usize) -> Result<Vec<SessionInfo>, StoreError> {
        self.engine.read(|txn| {
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
                    kept: row.next.saturating_sub(row.first),
                    tokens: row.tokens,
                });
            }
            Ok(found)
        })
    }

    fn session_count(&self, since: u64) -> Result<u64, StoreError> {
        self.engine.read(|txn| {
            let active = txn.open_table(ACTIVE)?;
            let mut count = 0;
            for row in active.range((since, "")..)? {
                row?;
                count += 1;
            }
            Ok(count)
        })
    }

    fn usage(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError> {
        self.engine.read(|txn| {
            let usage = txn.open_table(USAGE)?;
            let rows = usage.iter()?.rev().take(max);
            rows.map(|row| self.decode("usage", row?.1.value()))
                .collect()
        })
    }

    fn totals(&self) -> Result<Totals, StoreError> {
        self.engine.read(|txn| {
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

    fn forget(&self, session: &str, what: Forget) -> Result<bool, StoreError> {
        self.engine.write(|txn| {
            let mut tables = Tables::open(txn, self.engine.file(), self.limits)?;
            let Some(mut row) = tables.row(session)? else {
                return Ok(false);
            };
            match what {
                Forget::All => tables.delete(session, &row)?,
                Forget::Turns => {
                    tables.clear_turns(session)?;
                    tables.release(&row);
                    (row.first, row.bytes) = (row.next, 0);
                    tables.put(session, &row)?;
                }
            }
            tables.trim()?;
            Ok(true)
        })
    }
}
