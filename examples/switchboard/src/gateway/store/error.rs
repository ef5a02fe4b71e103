//! [`StoreError`]: the error of a store.

use std::io;

use rpc_core::store::StoreError as Failure;

/// The error of a store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// Another process has the file open. Retry after it has ended.
    #[error("{file} is {words}: end that gateway, or set another data_dir")]
    InUse {
        /// The file.
        file: String,
        /// Who has it.
        words: String,
    },
    /// The file is not one of this gateway. A retry fails again. The engine does not notice some
    /// kinds of damage in time; they may end the process instead.
    #[error("{file} is damaged or not a store of a gateway ({detail}); move it away to start over")]
    Damaged {
        /// The file.
        file: String,
        /// The details.
        detail: String,
    },
    /// A newer gateway wrote the file. A retry fails again.
    #[error(
        "{file} was written by a newer gateway (format {found}, known is {known}): start that version, or set another data_dir"
    )]
    Newer {
        /// The file.
        file: String,
        /// The format of the file.
        found: u64,
        /// The format of this gateway.
        known: u64,
    },
    /// The file system failed: no room, no permission, a broken disk. A retry may help.
    #[error("{file}: {detail}")]
    Io {
        /// The file.
        file: String,
        /// The system's error.
        detail: String,
    },
    /// What the nodes share failed. After [`Failure::Unavailable`] a write may have happened or not;
    /// otherwise nothing was written.
    #[error(transparent)]
    Cluster(#[from] Failure),
    /// This node counted as gone, and another one has the session. Nothing is remembered; the tokens
    /// are counted.
    #[error("this node counted as gone, and another one has the session")]
    PastOwner,
    /// The store was closed. Nothing was written.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    pub(in crate::gateway) fn damaged(file: &str, detail: impl Into<String>) -> Self {
        Self::Damaged {
            file: file.to_owned(),
            detail: detail.into(),
        }
    }

    pub(super) fn io(file: &str, error: &io::Error) -> Self {
        Self::Io {
            file: file.to_owned(),
            detail: error.to_string(),
        }
    }

    /// Converts an error of the engine.
    pub(super) fn engine(file: &str, error: &redb::Error) -> Self {
        use io::ErrorKind::{InvalidData, UnexpectedEof};
        match error {
            redb::Error::DatabaseAlreadyOpen => Self::InUse {
                file: file.to_owned(),
                words: "in use by another program".to_owned(),
            },
            redb::Error::Io(error) if !matches!(error.kind(), InvalidData | UnexpectedEof) => {
                Self::io(file, error)
            }
            redb::Error::PreviousIo => Self::Io {
                file: file.to_owned(),
                detail: "an earlier write has failed".to_owned(),
            },
            error => Self::damaged(file, error.to_string()),
        }
    }
}
