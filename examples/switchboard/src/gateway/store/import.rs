//! [`OldFile`]: the file of a gateway before it stored in logs, and taking it over.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use exoclaw_proto::budget::pools::{Pools, day_of};
use futures_util::future::try_join_all;
use redb::{Database, ReadTransaction, ReadableTable as _, TableDefinition};
use rpc_core::file::Lock;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::record::Record;
use super::{GatewayStore, StoreError};
use crate::gateway::memory::Turn;
use crate::gateway::usage::UsageEntry;

/// The name of the file in the data folder.
pub const OLD_FILE_NAME: &str = "exoclaw.redb";
/// The number of its layout, under this key of this table.
const FORMAT: u64 = 1;
const FORMAT_KEY: &str = "format";
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// A session's [`Row`] by its key.
const SESSIONS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("sessions");
/// Turns by session and number.
const TURNS: TableDefinition<'_, (&str, u64), &[u8]> = TableDefinition::new("turns");
/// The usage log by number.
const USAGE: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("usage");
/// Tokens by day.
const DAYS: TableDefinition<'_, u64, u64> = TableDefinition::new("days");
/// How many sessions are written at once: they share the wait for the disk.
const AT_ONCE: usize = 64;

/// The file.
pub(super) struct OldFile {
    path: PathBuf,
    database: Database,
    /// Held while the file is read.
    _lock: Lock,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Row {
    created: u64,
    active: u64,
    /// The number of the next turn, which is how many turns there were.
    next: u64,
    tokens: u64,
}

/// What is in the file beside the turns.
#[derive(Default)]
struct Contents {
    /// Those used last are last.
    sessions: Vec<Record>,
    usage: Vec<UsageEntry>,
    pools: Pools,
    /// How many rows could not be read.
    lost: u64,
}

impl OldFile {
    pub(super) fn open(path: &Path) -> Result<Self, StoreError> {
        let lock = Lock::take(path).map_err(|error| refused(path, &error))?;
        let database = guarded(path, || Ok(Database::open(path)?))?;
        let file = Self {
            path: path.to_owned(),
            database,
            _lock: lock,
        };
        let format = file.read(|txn| {
            let format = txn.open_table(META)?.get(FORMAT_KEY)?;
            Ok(format.map(|format| format.value()))
        });
        match format? {
            Some(FORMAT) => Ok(file),
            other => {
                let why = format!("its format is {other:?}, known is {FORMAT}");
                Err(refused(path, &why))
            }
        }
    }

    fn read<T>(
        &self,
        work: impl FnOnce(&ReadTransaction) -> Result<T, Fault>,
    ) -> Result<T, StoreError> {
        guarded(&self.path, || work(&self.database.begin_read()?))
    }

    fn contents(&self, now: u64) -> Result<Contents, StoreError> {
        self.read(|txn| {
            let mut contents = Contents::default();
            for row in txn.open_table(SESSIONS)?.iter()? {
                let (session, row) = row?;
                let row: Row = decode(row.value(), &mut contents.lost).unwrap_or_default();
                contents.sessions.push(Record {
                    session: session.value().to_owned(),
                    created: row.created,
                    active: row.active,
                    count: row.next,
                    tokens: row.tokens,
                    ..Record::default()
                });
            }
            contents.sessions.sort_by_key(|session| session.active);
            for row in txn.open_table(USAGE)?.iter()? {
                let entry = decode(row?.1.value(), &mut contents.lost);
                contents.usage.extend(entry);
            }
            contents.pools.advance(day_of(now));
            for row in txn.open_table(DAYS)?.iter()? {
                let (day, tokens) = row?;
                contents.pools.advance(day.value());
                contents.pools.take(day.value(), tokens.value(), 0);
            }
            Ok(contents)
        })
    }

    fn turns(&self, session: &str) -> Result<(Vec<Turn>, u64), StoreError> {
        self.read(|txn| {
            let (mut turns, mut lost) = (Vec::new(), 0);
            let stored = txn.open_table(TURNS)?;
            for row in stored.range((session, 0)..=(session, u64::MAX))? {
                turns.extend(decode::<Turn>(row?.1.value(), &mut lost));
            }
            Ok((turns, lost))
        })
    }
}

/// An error of the engine.
struct Fault(Box<redb::Error>);

impl<E: Into<redb::Error>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self(Box::new(error.into()))
    }
}

fn decode<T: DeserializeOwned>(row: &[u8], lost: &mut u64) -> Option<T> {
    let decoded = rpc_core::json::from_slice(row).ok();
    *lost += u64::from(decoded.is_none());
    decoded
}

fn refused(path: &Path, why: &dyn std::fmt::Display) -> StoreError {
    StoreError::Import {
        file: path.display().to_string(),
        detail: why.to_string(),
    }
}

/// Runs work of the engine, which finds some damage by assertions.
fn guarded<T>(path: &Path, work: impl FnOnce() -> Result<T, Fault>) -> Result<T, StoreError> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => done.map_err(|Fault(error)| refused(path, &error)),
        Err(_) => Err(refused(path, &"its parts contradict each other")),
    }
}

impl GatewayStore {
    /// Takes over the file of an earlier version, if there is one that was not taken over yet. It stays as it is.
    /// Returns what was taken over.
    ///
    /// # Errors
    /// [`StoreError`]; the next attempt goes on.
    ///
    /// # Cancel safety
    /// If the future is dropped, the next one goes on.
    pub async fn import(&self, path: &Path, now: u64) -> Result<Option<String>, StoreError> {
        let is_there = path.metadata().is_ok_and(|it| it.len() > 0);
        if !is_there || self.budget.has_begun().await? {
            return Ok(None);
        }
        let file = OldFile::open(path)?;
        let Contents {
            sessions,
            usage,
            pools,
            mut lost,
        } = file.contents(now)?;
        let (count, mut turns) = (sessions.len(), 0);
        let mut writes = Vec::new();
        for record in sessions {
            let (imported, damaged) = file.turns(&record.session)?;
            (turns, lost) = (turns + imported.len(), lost + damaged);
            writes.push(self.import_session(record, imported));
            if writes.len() == AT_ONCE {
                try_join_all(writes.drain(..)).await?;
            }
        }
        try_join_all(writes).await?;
        self.usage.import(&usage).await?;
        // Last: it says that all is there.
        self.budget.begin(pools).await?;
        let words = format!(
            "{count} sessions with {turns} turns and {} entries of usage are taken over from {}, which stays as it is",
            usage.len(),
            path.display()
        );
        Ok(Some(match lost {
            0 => words,
            lost => format!("{words}; {lost} of its rows cannot be read"),
        }))
    }
}
