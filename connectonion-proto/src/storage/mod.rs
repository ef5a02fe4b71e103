//! What a host stores of its sessions, and the file in which ConnectOnion's own hosts do: `import` and `export`.
//!
//! A host stores a [`Record`] when a run starts, when it waits for a human and when it ends, in a
//! `Store`. The last record of each session counts; one without a session object
//! keeps that of the record before it, so that a crash during a run does not lose earlier answers.
//!
//! A prompt is stored before its `RUNTIME_INPUT_ACK`, and a result before its OUTPUT.

pub(crate) mod entry;
pub(crate) mod error;
pub(crate) mod file;
mod record;
#[cfg(feature = "server")]
mod transfer;

pub(crate) use error::StorageError;
pub use record::{Record, RecordStatus};
#[cfg(feature = "server")]
pub(crate) use record::{owner, owner_name, owner_of, owner_text};
#[cfg(feature = "file")]
pub use rpc_core::store::{FileConfig, FileStore, Fsync};
#[cfg(feature = "server")]
pub use transfer::{Imported, export, import};

/// Returns the record of an interrupted run.
pub(crate) fn interrupted(mut record: Record, now: f64) -> Record {
    let lifetime = record.expires.map(|expires| expires - record.created);
    record.status = RecordStatus::Interrupted;
    record.expires = lifetime.map(|lifetime| (now + lifetime.max(0.0)).ceil());
    record
}
