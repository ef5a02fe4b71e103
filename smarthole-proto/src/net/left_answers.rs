//! [`LeftAnswers`]: where messages leave the answers that nobody waits for.
//!
//! The connection's task collects them in its next turn. Without a connection they lie here until
//! there is one, or until the message's deadline has passed.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use rpc_core::net::{Link, WeakLink};

use super::inbound::Ticket;
use super::protocol::ClientProtocol;
use crate::client::ClientConn;
use crate::frame::{Answer, Response};

/// Each message leaves at most one answer here, so their number needs no bound of its own.
#[derive(Default)]
pub(super) struct LeftAnswers {
    /// Weak, so that a message that is kept keeps no connection open.
    link: OnceLock<WeakLink<ClientProtocol>>,
    left: Mutex<Vec<(Arc<Ticket>, Answer)>>,
}

impl LeftAnswers {
    /// The link whose task collects what is left here.
    pub(super) fn attach(&self, link: WeakLink<ClientProtocol>) {
        // There is one link for each of these, so none is attached before.
        let _ = self.link.set(link);
    }

    /// A handle for what is waited for; `None` if the client has been dropped.
    pub(super) fn link(&self) -> Option<Link<ClientProtocol>> {
        self.link.get()?.upgrade()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Arc<Ticket>, Answer)>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves an answer, and tells the task.
    pub(super) fn leave(&self, ticket: Arc<Ticket>, answer: Answer) {
        self.lock().push((ticket, answer));
        self.wake();
    }

    /// Tells the task that there is something to collect.
    pub(super) fn wake(&self) {
        if let Some(link) = self.link.get() {
            link.wake();
        }
    }

    /// Gives the machine what was left, but for what comes too late and what has been answered
    /// meanwhile. Where an answer is on its way, what was left stays until that is known.
    pub(super) fn collect(&self, conn: &mut ClientConn, now: Instant) {
        self.lock().retain(|(ticket, answer)| {
            if ticket.is_on_the_way() {
                return true;
            }
            if now < ticket.deadline && !ticket.is_sent() {
                conn.respond_later(Response::new(ticket.id.clone(), answer.clone()));
            }
            false
        });
    }
}

impl fmt::Debug for LeftAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LeftAnswers")
            .field("left", &self.lock().len())
            .finish_non_exhaustive()
    }
}
