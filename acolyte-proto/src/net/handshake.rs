//! [`HandshakeError`]: why a client and a server do not suit each other.

use rpc_core::CallError;

use crate::client::RpcError;
use crate::handshake::Mismatch;

/// Why a [`handshake`](super::Client::handshake) failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum HandshakeError {
    /// The server is another than this client needs. Asking again gives the same.
    #[error(transparent)]
    Mismatch(#[from] Mismatch),
    /// The server did not tell its status.
    #[error(transparent)]
    Status(#[from] CallError<RpcError>),
}
