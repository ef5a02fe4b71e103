//! A store in a database of one's own, here `SQLite`: a [`Table`] is all that it takes.

use std::path::Path;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use rpc_core::store::{Changes, LocalStore, Row, Store, StoreError, Table, Which};
use rusqlite::{Connection, ErrorCode, params};
use store_suite::Engine;

use crate::file::Folder;

/// Rows in a table of `SQLite`, whose `BLOB`s are in the order of their bytes.
#[derive(Debug)]
struct Sqlite {
    writer: Mutex<Connection>,
    reader: Mutex<Connection>,
}

impl Sqlite {
    fn open(path: &Path) -> rusqlite::Result<Self> {
        let writer = Connection::open(path)?;
        // Readers do not wait for writers, and what is committed is on the disk.
        writer.pragma_update(None, "journal_mode", "WAL")?;
        writer.pragma_update(None, "synchronous", "FULL")?;
        writer.execute(
            "CREATE TABLE IF NOT EXISTS rows (key BLOB PRIMARY KEY, value BLOB NOT NULL) WITHOUT ROWID",
            (),
        )?;
        Ok(Self {
            writer: Mutex::new(writer),
            reader: Mutex::new(Connection::open(path)?),
        })
    }

    fn find(
        &self,
        (from, to): (&[u8], &[u8]),
        which: Which,
        max: usize,
    ) -> rusqlite::Result<Vec<Row>> {
        let order = match which {
            Which::First => "ASC",
            Which::Last => "DESC",
        };
        let query = format!(
            "SELECT key, value FROM rows WHERE key >= ?1 AND key < ?2 ORDER BY key {order} LIMIT ?3"
        );
        let reader = self.reader.lock().unwrap();
        let mut query = reader.prepare_cached(&query)?;
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let rows = query.query_map(params![from, to, max], |row| {
            let value: Vec<u8> = row.get(1)?;
            Ok((row.get(0)?, Some(Bytes::from(value))))
        })?;
        rows.collect()
    }

    fn change(&self, changes: &Changes) -> rusqlite::Result<()> {
        let mut writer = self.writer.lock().unwrap();
        let all = writer.transaction()?;
        for (key, value) in changes {
            match value {
                Some(value) => all
                    .prepare_cached("INSERT OR REPLACE INTO rows VALUES (?1, ?2)")?
                    .execute(params![key, &value[..]])?,
                None => all
                    .prepare_cached("DELETE FROM rows WHERE key = ?1")?
                    .execute(params![key])?,
            };
        }
        all.commit()
    }
}

fn reported(error: &rusqlite::Error) -> StoreError {
    let message = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full { message },
        _ => StoreError::Failed { message },
    }
}

impl Table for Sqlite {
    fn range(
        &self,
        keys: (&[u8], &[u8]),
        which: Which,
        max: usize,
    ) -> Result<Vec<Row>, StoreError> {
        self.find(keys, which, max)
            .map_err(|error| reported(&error))
    }

    fn write(&self, changes: &Changes) -> Result<(), StoreError> {
        self.change(changes).map_err(|error| reported(&error))
    }
}

struct InSqlite(LocalStore<Sqlite>);

#[async_trait]
impl Engine for InSqlite {
    async fn connect(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }
}

#[tokio::test]
async fn a_store_in_sqlite_conforms_to_all_rules() {
    let folder = Folder::new("sqlite");
    let table = Sqlite::open(&folder.file()).unwrap();
    store_suite::all(&InSqlite(LocalStore::over(table).unwrap())).await;
}
