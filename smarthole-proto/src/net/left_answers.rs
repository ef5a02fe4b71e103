//! [`LeftAnswers`]: queued answers of messages, sent without a waiting caller.
//!
//! The connection's task collects them in its next turn. Without a connection they wait until there
//! is one, or until the message's deadline has passed.

use std::sync::{Arc, OnceLock};

use rpc_core::Instant;
use rpc_core::net::{Link, WeakLink};
use rpc_core::sync::Mutex;

use super::inbound::Ticket;
use super::protocol::ClientProtocol;
use crate::client::ClientConn;
use crate::frame::{Answer, Response};

/// The queue. Each message adds at most one answer, so it needs no limit of its own.
#[derive(Default)]
pub(super) struct LeftAnswers {
    /// Weak, so that a stored message keeps no connection open.
    link: OnceLock<WeakLink<ClientProtocol>>,
    left: Mutex<Vec<(Arc<Ticket>, Answer)>>,
}

impl LeftAnswers {
    /// Sets the link whose task collects the answers.
    pub(super) fn attach(&self, link: WeakLink<ClientProtocol>) {
        // There is one link for each of these, so none is attached before.
        let _ = self.link.set(link);
    }

    /// Returns the link, for responses with a waiting caller; `None` if the client has been
    /// dropped.
    pub(super) fn link(&self) -> Option<Link<ClientProtocol>> {
        self.link.get()?.upgrade()
    }

    /// Queues an answer and wakes the task.
    pub(super) fn leave(&self, ticket: Arc<Ticket>, answer: Answer) {
        self.left.lock().push((ticket, answer));
        self.wake();
    }

    /// Wakes the task to collect answers.
    pub(super) fn wake(&self) {
        if let Some(link) = self.link.get() {
            link.wake();
        }
    }

    /// Passes queued answers to the machine, except those that are late or whose message was
    /// answered meanwhile. While a response is in transit, the queued answer waits for its result.
    pub(super) fn collect(&self, conn: &mut ClientConn, now: Instant) {
        self.left.lock().retain(|(ticket, answer)| {
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

rpc_core::debug_fields!([] LeftAnswers, this => { left: this.left.lock().len() });
