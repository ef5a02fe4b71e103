//! [`StorageError`].

/// Why a record was not stored or not found. Nothing that was stored is lost.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StorageError {
    /// The store has no room, does not answer, or refuses.
    #[error("{message}")]
    Failed {
        /// What it says.
        message: String,
        /// Whether the same call may succeed later.
        is_retryable: bool,
    },
    /// The record exceeds the limit. Retrying fails again.
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
}

impl StorageError {
    /// Returns whether the same call may succeed later.
    pub(crate) const fn is_retryable(&self) -> bool {
        match self {
            Self::Failed { is_retryable, .. } => *is_retryable,
            Self::TooLarge { .. } | Self::Fenced => false,
        }
    }

    /// An error after which the same call may succeed.
    pub(crate) fn passing(message: impl Into<String>) -> Self {
        Self::Failed {
            message: message.into(),
            is_retryable: true,
        }
    }
}
