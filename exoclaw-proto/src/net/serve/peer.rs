//! [`Peer`]: one connection, as a [`Backend`](super::Backend) sees it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use rpc_core::net::{Cancellation, Link};
use rpc_core::{CloseFrame, Refused};

use super::outlet::{Added, Outlet};
use super::protocol::ServerSide;

/// One connection.
pub struct Peer {
    pub(super) id: u64,
    pub(super) address: SocketAddr,
    pub(super) parts: http::request::Parts,
    pub(super) link: Link<ServerSide>,
    pub(super) outlet: Arc<Outlet>,
    pub(super) cancellation: Cancellation,
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

    /// Closes the connection with this frame, behind what has been written, as far as there is room
    /// for it. What is still open ends.
    pub fn close(&self, frame: CloseFrame) {
        let outlet = Arc::clone(&self.outlet);
        let last = frame.clone();
        // An order to the link would overtake what the outlet holds.
        let told = self.link.try_command(move |conn, now| {
            outlet.move_into(conn);
            conn.close_with(last, now);
        });
        if told == Err(Refused::QueueFull) {
            self.link.close_with(frame);
        }
    }

    /// Drops the line without a closing handshake, as a pulled cable does.
    pub fn cut(&self) {
        self.link.cut();
    }

    /// Lets the connection's task take what waits, if it has to be told.
    pub(super) fn tell(&self, added: Added) {
        if added == Added::First {
            self.link.nudge();
        }
    }
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("id", &self.id)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}
