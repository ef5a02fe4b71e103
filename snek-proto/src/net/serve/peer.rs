//! [`Peer`]: one connection, as a [`Backend`](super::Backend) sees it.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rpc_core::net::{Cancellation, Link};
use rpc_core::{CloseFrame, Limits, Refused, Text};

use super::protocol::ServerSide;
use crate::hub::ConnId;
use crate::server::ServerConn;

/// One connection.
pub struct Peer {
    pub(super) id: ConnId,
    pub(super) address: SocketAddr,
    pub(super) parts: http::request::Parts,
    pub(super) link: Link<ServerSide>,
    pub(super) pushes: Arc<Pushes>,
    pub(super) cancellation: Cancellation,
}

impl Peer {
    /// The connection's number on this server.
    #[must_use]
    pub const fn id(&self) -> ConnId {
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

    /// Given when the server wants to end: finish soon.
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    /// Pushes an encoded event to the client, without waiting. Frames arrive in the order of the
    /// calls. A client that does not read them fast enough is disconnected with 1013.
    pub fn push(&self, event: Text) {
        match self.pushes.add(event) {
            Added::Waits => {}
            Added::First => {
                let pushes = Arc::clone(&self.pushes);
                let drained = self.link.try_command(move |conn, now| {
                    let full = |event| conn.push(event) == Err(Refused::QueueFull);
                    if pushes.take().into_iter().any(full) {
                        conn.close_with(slow_reader(), now);
                    }
                });
                if drained == Err(Refused::QueueFull) {
                    self.link.close_with(slow_reader());
                }
            }
            Added::Full => self.link.close_with(slow_reader()),
        }
    }

    /// Closes the connection with this frame.
    pub fn close(&self, frame: CloseFrame) {
        self.link.close_with(frame);
    }

    /// Drops the line without a closing handshake, as a pulled cable does.
    pub fn cut(&self) {
        self.link.cut();
    }

    /// Runs this on the connection; `None` if it has ended.
    pub(super) async fn run<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut ServerConn) -> R + Send + 'static,
    ) -> Option<R> {
        self.link.command(move |conn, _| command(conn)).await.ok()
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

pub(super) fn slow_reader() -> CloseFrame {
    CloseFrame::new(CloseFrame::TRY_AGAIN, "slow reader")
}

/// Events on their way to one connection's task: one wake-up takes all that have gathered.
pub(super) struct Pushes {
    waiting: Mutex<(Vec<Text>, usize)>,
    max_frames: usize,
    max_bytes: usize,
}

enum Added {
    /// The task has to be told.
    First,
    /// It has been told already.
    Waits,
    /// The bound is reached.
    Full,
}

impl Pushes {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            waiting: Mutex::default(),
            max_frames: limits.max_outbox_frames,
            max_bytes: limits.max_outbox_bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Vec<Text>, usize)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, event: Text) -> Added {
        let mut waiting = self.lock();
        let (events, bytes) = &mut *waiting;
        if events.len() >= self.max_frames || *bytes >= self.max_bytes {
            return Added::Full;
        }
        *bytes += event.len();
        events.push(event);
        if events.len() == 1 {
            Added::First
        } else {
            Added::Waits
        }
    }

    fn take(&self) -> Vec<Text> {
        let mut waiting = self.lock();
        waiting.1 = 0;
        std::mem::take(&mut waiting.0)
    }
}
