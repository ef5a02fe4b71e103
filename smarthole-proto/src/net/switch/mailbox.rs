//! [`Mailbox`]: what a hub has for one connection, on its way to the connection's machine.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use rpc_core::backlog::Backlog;
use rpc_core::{CloseFrame, Limits, Refused, Text};

use crate::error::RegistrationError;
use crate::id::ClientId;
use crate::server::ServerConn;

/// One thing to tell the machine.
#[derive(Debug)]
pub(super) enum Mail {
    Accept(ClientId),
    Refuse(RegistrationError),
    Frame(Text),
}

/// There is no room: the client reads too slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// Filled under the hub's lock, in the hub's order; emptied by the connection's own task, which one
/// wake-up tells about all that has gathered.
#[derive(Debug)]
pub(super) struct Mailbox {
    state: Mutex<State>,
    max_frames: usize,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct State {
    mail: Backlog<Mail>,
    bytes: usize,
}

impl Mailbox {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            state: Mutex::default(),
            max_frames: limits.max_outbox_frames,
            max_bytes: limits.max_outbox_bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn put(&self, mail: Mail) -> Result<(), Full> {
        let mut state = self.lock();
        if state.mail.len() >= self.max_frames || state.bytes >= self.max_bytes {
            return Err(Full);
        }
        if let Mail::Frame(frame) = &mail {
            state.bytes += frame.len();
        }
        state.mail.push_back(mail);
        Ok(())
    }

    /// Tells the machine everything that waits. A client that is too slow for it is disconnected.
    pub(super) fn empty_into(&self, conn: &mut ServerConn, now: Instant) {
        let mut state = self.lock();
        let State { mail, .. } = std::mem::take(&mut *state);
        drop(state);
        let mut mail = mail;
        while let Some(mail) = mail.pop_front() {
            let told = match mail {
                Mail::Accept(id) => conn.accept(&id),
                Mail::Refuse(error) => conn.refuse(error),
                Mail::Frame(frame) => conn.send(frame),
            };
            match told {
                Ok(()) => {}
                Err(Refused::QueueFull) => conn.close_with(slow_reader(), now),
                // Nobody responds to a message that was not sent, so its time will pass.
                Err(why) => tracing::debug!(%why, client = ?conn.name(), "a frame was not sent"),
            }
        }
    }
}

/// What a client is told that does not read as fast as it is written to.
pub(super) fn slow_reader() -> CloseFrame {
    CloseFrame::new(CloseFrame::TRY_AGAIN, "slow reader")
}
