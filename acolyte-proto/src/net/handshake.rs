//! [`HandshakeError`]: why a handshake failed.

use rpc_core::CallError;

use crate::error::RpcError;
use crate::handshake::Mismatch;

/// Why a [`handshake`](super::Client::handshake) failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The server is not compatible. Asking again gives the same result.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The server's status could not be read.
    #[error(transparent)]
    Status(#[from] CallError<RpcError>),
}
