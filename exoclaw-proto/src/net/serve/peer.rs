//! [`Peer`]: one connection, as a [`Backend`](super::Backend) sees it.

use std::fmt;
use std::net::SocketAddr;

use rpc_core::net::{Cancellation, Handle, clock};
use rpc_core::{CloseFrame, Refused};

use super::reply::Gone;
use crate::error::RpcError;
use crate::server::{RequestId, ServerConn};

/// One connection.
pub struct Peer {
    pub(super) id: u64,
    pub(super) address: SocketAddr,
    pub(super) parts: http::request::Parts,
    pub(super) handle: Handle<ServerConn>,
    pub(super) cancellation: Cancellation,
    /// Texts are cut into pieces of this length, which fit a message even if every character has to
    /// be escaped.
    pub(super) max_text: usize,
}

impl Peer {
    /// The connection's number on this server, from 1.
    #[must_use]
    pub const fn id(&self) -> u64 {
        self.id
    }

    /// Where it comes from.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The upgrade request: headers, URI, and extensions that an upgrade hook has put there.
    #[must_use]
    pub const fn parts(&self) -> &http::request::Parts {
        &self.parts
    }

    /// Given when the server wants to end: finish soon. (That the client has left needs no signal:
    /// the futures of its requests are dropped.)
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    /// Closes the connection with this frame, behind what has been written. What is still open then
    /// ends.
    pub fn close(&self, frame: CloseFrame) {
        self.handle.close_with(frame);
    }

    /// Drops the line without a closing handshake, as a pulled cable does.
    pub fn cut(&self) {
        self.handle.cut();
    }

    /// Writes something about a request as soon as there is room. What does not fit a message ends
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
        // Nobody is left to be told that the client has left.
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

/// Ends a request of which something does not fit a message.
fn too_large(conn: &mut ServerConn, id: RequestId) -> Result<(), Refused> {
    let told = refuse(conn, id, &RpcError::new("the answer is too large"));
    if let Err(Refused::TooLarge { .. }) = told {
        // The limits leave no room for any answer: better no connection than a request for ever.
        let frame = CloseFrame::new(CloseFrame::TOO_BIG, "no answer fits");
        conn.close_with(frame, clock());
    }
    told
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("id", &self.id)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
