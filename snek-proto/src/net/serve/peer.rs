//! [`Peer`]: one connection, as a [`Backend`](super::Backend) sees it.

use std::net::SocketAddr;
use std::sync::Arc;

use rpc_core::net::{Cancellation, Handle};
use rpc_core::{CloseFrame, Refused, Text};

use crate::hub::ConnId;
use crate::server::ServerConn;

/// A connection to a client.
pub struct Peer {
    pub(super) id: ConnId,
    pub(super) address: SocketAddr,
    pub(super) parts: Arc<http::request::Parts>,
    pub(super) handle: Handle<ServerConn>,
    pub(super) cancellation: Cancellation,
}

impl Peer {
    /// Returns the connection's number on this server.
    #[must_use]
    pub const fn id(&self) -> ConnId {
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

    /// Returns a signal that the server is shutting down: finish soon.
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    /// Pushes an encoded event to the client, without waiting. Frames arrive in the order of the
    /// calls. A client that reads too slowly is disconnected with 1013.
    pub fn push(&self, event: Text) {
        let pushed = self.handle.with(|conn| conn.push(event));
        if pushed == Err(Refused::QueueFull) {
            self.close(slow_reader());
        }
    }

    /// Closes the connection with this frame.
    pub fn close(&self, frame: CloseFrame) {
        self.handle.close_with(frame);
    }

    /// Drops the connection without a closing handshake, like a pulled cable.
    pub fn cut(&self) {
        self.handle.cut();
    }
}

rpc_core::debug_fields!([] Peer, this => {
    id: this.id,
    address: this.address,
});

pub(super) fn slow_reader() -> CloseFrame {
    CloseFrame::new(CloseFrame::TRY_AGAIN, "slow reader")
}
