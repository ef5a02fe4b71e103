//! [`StoreError`]: the error of a store.

use rpc_core::store::StoreError as Failure;

/// The error of a [`GatewayStore`](super::GatewayStore).
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The data of an earlier version cannot be taken over. A retry fails again.
    #[error(
        "{file} cannot be taken over ({detail}): start the version that wrote it, or move it away to start over"
    )]
    Import {
        /// The file.
        file: String,
        /// The details.
        detail: String,
    },
    /// What is stored cannot be read, or cannot be written. A retry fails again.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// The store failed. After [`Failure::Unavailable`] a write may have happened or not; otherwise nothing
    /// was written.
    #[error(transparent)]
    Store(#[from] Failure),
    /// This node counted as gone, and another one has the session. Nothing is remembered; the tokens
    /// are counted.
    #[error("this node counted as gone, and another one has the session")]
    PastOwner,
}

impl From<serde_json::Error> for StoreError {
    fn from(error: serde_json::Error) -> Self {
        // It names a place, not what stands there.
        Self::Damaged(format!("line {}, column {}", error.line(), error.column()))
    }
}
