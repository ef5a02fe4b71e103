//! [`Peer`]: one connection, as a [`Backend`](super::Backend) sees it.

use std::net::SocketAddr;
use std::sync::Arc;

use rpc_core::net::{Cancellation, Handle, time};
use rpc_core::{CloseFrame, Machine, Refused};

use super::reply::Gone;
use crate::error::RpcError;
use crate::server::{RequestId, ServerConn};

/// A connection to a client.
pub struct Peer {
    pub(super) id: u64,
    pub(super) address: SocketAddr,
    pub(super) parts: Arc<http::request::Parts>,
    pub(super) handle: Handle<ServerConn>,
    pub(super) cancellation: Cancellation,
    /// The size of the pieces that texts are cut into: they fit a message even if every character
    /// is escaped.
    pub(super) max_text: usize,
}

impl Peer {
    /// Returns the connection's number on this server, from 1.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Returns the address of the client.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the upgrade request: headers, URI, and extensions set by an upgrade hook.
    #[must_use]
    pub fn parts(&self) -> &http::request::Parts {
        &self.parts
    }

    /// Returns a signal that the server is shutting down: finish soon. (There is no signal for a
    /// client that leaves: the futures of its requests are dropped.)
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    /// Closes the connection with this frame, after everything that was written. Ends open
    /// requests.
    pub fn close(&self, frame: CloseFrame) {
        self.handle.close_with(frame);
    }

    /// Drops the connection without a closing handshake, like a pulled cable.
    pub fn cut(&self) {
        self.handle.cut();
    }

    /// Writes a frame of a request as soon as there is room. A frame over the message limit ends
    /// the request with an error.
    pub(super) async fn write(
        &self,
        id: RequestId,
        mut write: impl FnMut(&mut ServerConn) -> Result<(), Refused>,
    ) -> Result<(), Gone> {
        let written = self.handle.retry(|conn| {
            let written = match write(conn) {
                Err(Refused::TooLarge { .. } | Refused::Encode { .. }) => too_large(conn, id),
                other => other,
            };
            (written != Err(Refused::QueueFull)).then_some(written)
        });
        written.await.map_err(|_| Gone)
    }

    /// Ends a request, if it is still open.
    pub(super) async fn end(
        &self,
        id: RequestId,
        write: impl FnMut(&mut ServerConn) -> Result<(), Refused>,
    ) {
        // An error means that the client has left.
        let _ = self.write(id, write).await;
    }
}

/// Refuses a request; a chat that has begun ends with the event `error`.
pub(super) fn refuse(
    conn: &mut ServerConn,
    id: RequestId,
    error: &RpcError,
) -> Result<(), Refused> {
    match conn.fail(id, error) {
        Err(Refused::Invalid { .. }) => conn.error(id, error.message()),
        other => other,
    }
}

/// Ends a request with a frame over the message limit.
fn too_large(conn: &mut ServerConn, id: RequestId) -> Result<(), Refused> {
    let sent = refuse(conn, id, &RpcError::new("the answer is too large"));
    if let Err(Refused::TooLarge { .. }) = sent {
        // The limits leave no room for any answer: better no connection than a request for ever.
        let frame = CloseFrame::new(CloseFrame::TOO_BIG, "no answer fits");
        conn.close_with(frame, time::now());
    }
    sent
}

rpc_core::debug_fields!([] Peer, this => { id: this.id, address: this.address });

#[cfg(test)]
mod tests;
