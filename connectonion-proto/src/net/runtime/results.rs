//! [`ResultsFile`]: the storage of a host that has no other one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rpc_core::sync::Mutex;

use crate::hub::Owner;
use crate::storage::{JsonlOptions, JsonlStorage, Record, Storage, StorageError};

/// The file of the specification. It is opened when it is needed, and created with the first record,
/// so that a host without clients leaves nothing behind.
pub(super) struct ResultsFile {
    path: PathBuf,
    opened: Mutex<Option<Arc<JsonlStorage>>>,
}

impl ResultsFile {
    /// Creates the storage in the current working directory.
    pub(super) fn new() -> Self {
        let path = Path::new(".co/session_results.jsonl");
        Self {
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
            opened: Mutex::default(),
        }
    }

    /// Calls `act` with the file; not if there is none and `makes` is false.
    fn file<T: Default>(
        &self,
        makes: bool,
        act: impl FnOnce(&JsonlStorage) -> Result<T, StorageError>,
    ) -> Result<T, StorageError> {
        // A panic elsewhere leaves nothing half done.
        let mut opened = self.opened.lock();
        if opened.is_none() && (makes || self.path.exists()) {
            let file = JsonlStorage::open(&self.path, JsonlOptions::default())?;
            if let skipped @ 1.. = file.skipped_lines() {
                tracing::warn!(skipped, "records that cannot be read are dropped");
            }
            *opened = Some(Arc::new(file));
        }
        let file = opened.clone();
        drop(opened);
        file.map_or_else(|| Ok(T::default()), |file| act(&file))
    }
}

impl Storage for ResultsFile {
    fn load(&self, session_id: &str, now: f64) -> Result<Option<Record>, StorageError> {
        self.file(false, |file| file.load(session_id, now))
    }

    fn append(&self, record: &Record) -> Result<(), StorageError> {
        self.file(true, |file| file.append(record))
    }

    fn delete(&self, session_id: &str, owner: Owner) -> Result<(), StorageError> {
        self.file(false, |file| file.delete(session_id, owner))
    }

    fn recover(&self, now: f64) -> Result<Vec<Record>, StorageError> {
        self.file(false, |file| file.recover(now))
    }

    fn compact(&self, now: f64) -> Result<(), StorageError> {
        self.file(false, |file| file.compact(now))
    }
}
