//! [`Mismatch`]: why a client does not work with a server.

use crate::limits::PROTOCOL_VERSION;

/// Why a server is not compatible. Asking again gives the same result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// It speaks another version.
    #[error("the server speaks version {theirs:?} of the protocol, not {PROTOCOL_VERSION:?}")]
    Version {
        /// The reported version; empty if there is none.
        theirs: String,
    },
    /// It lacks capabilities.
    #[error("the server lacks {}", .missing.join(", "))]
    Capabilities {
        /// The missing ones.
        missing: Vec<String>,
    },
}
