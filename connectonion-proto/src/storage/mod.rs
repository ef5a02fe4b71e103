//! The storage of a host: [`Storage`], in a file ([`JsonlStorage`]) or in memory
//! ([`MemoryStorage`]).
//!
//! A host stores a [`Record`] when a run starts, when it waits for a human and when it ends. The
//! last record of each session counts; one without a session object keeps that of the record before
//! it, so that a crash during a run does not lose earlier answers.
//!
//! An [appended](Storage::append) record survives the process: the system has it when the call
//! returns. So append first, and then send the OUTPUT or the `RUNTIME_INPUT_ACK`.
//!
//! ```
//! use connectonion_proto::storage::{MemoryStorage, Record, RecordStatus, Storage};
//!
//! let storage = MemoryStorage::new(1000);
//! let mut run = Record::new("abc", RecordStatus::Running, "hello", 1795293457.5);
//! storage.append(&run)?;
//! run.status = RecordStatus::Done;
//! run.result = Some("hi there".into());
//! storage.append(&run)?;
//! let found = storage.load("abc", 1795293458.0)?.unwrap();
//! assert_eq!(found.status, RecordStatus::Done);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod jsonl;
mod lines;
mod memory;
mod record;
pub(crate) mod short;

use std::io;

use crate::hub::Owner;
use crate::replay::Entry;

pub use jsonl::{JsonlOptions, JsonlStorage};
pub use memory::MemoryStorage;
pub use record::{Record, RecordStatus};

/// A storage of sessions. Times are in seconds since 1970.
///
/// The methods block for as long as a disk takes: call them where blocking is allowed.
pub trait Storage: Send + Sync {
    /// Returns the last record of a session, with the newest known session object; `None` if there
    /// is no record that has not expired.
    ///
    /// # Errors
    /// [`StorageError`]; retrying is safe.
    fn load(&self, session_id: &str, now: f64) -> Result<Option<Record>, StorageError>;

    /// Adds a record.
    ///
    /// # Errors
    /// [`StorageError`]; earlier records are kept. Retrying is safe.
    fn append(&self, record: &Record) -> Result<(), StorageError>;

    /// Removes a session of this owner, or of none, with all its records. That of another owner stays.
    ///
    /// # Errors
    /// [`StorageError`]; the session is still there, and retrying is safe.
    fn delete(&self, session_id: &str, owner: Owner) -> Result<(), StorageError>;

    /// Adds events of the current run of a session, in order. They are lost without harm: no one waits
    /// for them. Only called with `HubConfig::store_events`. Default:
    /// nothing. See `Record::events`.
    ///
    /// # Errors
    /// [`StorageError`]; some may be stored, so do not retry.
    #[doc(hidden)]
    fn append_events(&self, session_id: &str, events: &[Entry]) -> Result<(), StorageError> {
        let _ = (session_id, events);
        Ok(())
    }

    /// Recovers the storage; call it once, when a host starts. Runs that no host works on any more
    /// are recorded as [`RecordStatus::Interrupted`], with the same lifetime from `now` as they had
    /// from their start. Returns them, with the prompt and the acknowledged inputs that have no
    /// answer.
    ///
    /// # Errors
    /// [`StorageError`]; some may already be recorded, and retrying is safe.
    fn recover(&self, now: f64) -> Result<Vec<Record>, StorageError>;

    /// Frees the space of expired and replaced records.
    ///
    /// # Errors
    /// [`StorageError`]; nothing is lost, and retrying is safe.
    fn compact(&self, now: f64) -> Result<(), StorageError>;

    /// Notes that this host has forgotten a session: another host may serve it. Called after its
    /// last record. Default: nothing, for storages of one host.
    #[doc(hidden)]
    fn release(&self, session_id: &str) {
        let _ = session_id;
    }
}

/// Why a record was not stored or not found. Nothing that was stored is lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The system's error. Retrying may help: a disk can be full temporarily.
    #[error("{what}: {message}")]
    Io {
        /// The operation.
        what: &'static str,
        /// The kind of the error.
        kind: io::ErrorKind,
        /// Its text.
        message: String,
    },
    /// Another program, or another storage of this one, has the file. Retry after it has ended.
    #[error("the file is {words}")]
    InUse {
        /// The holder, for people.
        words: String,
    },
    /// The storage has no room for the record, or none for one more of its owner. Retrying may help:
    /// others expire.
    #[error("the storage is full: it takes {max} bytes")]
    Full {
        /// The limit in bytes.
        max: u64,
    },
    /// The record exceeds the longest line. Retrying fails again.
    #[error("a record of {size} bytes is longer than {max}")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
        /// The limit in bytes.
        max: usize,
    },
    /// Another host serves the session now, and this one may not write to it. The host stops its run
    /// and closes its connections, so that their clients connect to the other one. Retrying fails
    /// again.
    #[error("another host serves the session")]
    Fenced,
    /// A line is no longer where it was: another program has changed the file. Retrying fails
    /// again.
    #[error("another program has changed the file")]
    Changed,
}

impl StorageError {
    /// Returns whether the same call may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Io { .. } | Self::InUse { .. } | Self::Full { .. } => true,
            Self::TooLarge { .. } | Self::Changed | Self::Fenced => false,
        }
    }

    pub(crate) fn io(what: &'static str) -> impl Fn(io::Error) -> Self {
        move |error| Self::Io {
            what,
            kind: error.kind(),
            message: error.to_string(),
        }
    }
}

/// Returns the record of an interrupted run.
pub(crate) fn interrupted(mut record: Record, now: f64) -> Record {
    let lifetime = record.expires.map(|expires| expires - record.created);
    record.status = RecordStatus::Interrupted;
    record.expires = lifetime.map(|lifetime| now + lifetime.max(0.0));
    record
}
