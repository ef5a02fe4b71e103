//! [`Lease`]: whether this node counts as alive.

use std::collections::VecDeque;
use std::time::Duration;

use super::key::{Flight, Operation, Reply, Request};
use crate::timers::later;
use crate::{Instant, Str};

crate::config! {
    /// How long a node counts as alive, and how it stays so. All nodes of a cluster have the same.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LeaseConfig {
        /// After how long without renewal the store removes the node's key. Default 10 s. It is renewed
        /// every third of it, so that two renewals may fail.
        pub lease: Duration = Duration::from_secs(10),
        /// How much earlier than the store this node gives up, in case that clocks run at different
        /// speeds. Default 1 s. A lease is never valid if this is not shorter than it.
        pub margin: Duration = Duration::from_secs(1),
        /// How long to wait for the store's answer before asking again, at most a fifth of the lease.
        /// Default 2 s.
        pub answer_timeout: Duration = Duration::from_secs(2),
    }
}

/// What happens to a [`Lease`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseEvent {
    /// The node counts as alive from now on. Comes once.
    Acquired,
    /// The node no longer counts as alive, for good: it ends its work. Comes once, and is the last event.
    Lost(LeaseLost),
}

/// Why a `NodeLease` has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseLost {
    /// It was not renewed in time: the store was out of reach, or this process was paused.
    #[error("the node's lease was not renewed in time")]
    Expired,
    /// The store no longer has the key, so that other nodes may have taken over.
    #[error("the node's key is gone")]
    Removed,
    /// Another node has the key: node ids must be unique.
    #[error("another node has this node's id")]
    Taken,
    /// This node gave it back.
    #[error("the node has released its lease")]
    Released,
}

/// Keeps the key by which other nodes see that this node is alive.
///
/// The key is in a bucket whose entries expire after [`LeaseConfig::lease`], and names the node. Only this
/// node writes it, and only ever over its own last revision: a key that has expired does not come back.
///
/// The lease is valid until [`lease`](LeaseConfig::lease) less [`margin`](LeaseConfig::margin) after the
/// *sending* of the last renewal that succeeded, so that it ends here before it ends in the store. A node
/// that loses it serves nothing more; it comes back with a new id and a new `Lease`.
///
/// # Pauses
///
/// [`is_valid`](Self::is_valid) compares with the time that it is given: a process that was stopped finds
/// its lease over when it looks, before it has handled anything. Between looking and writing it may be
/// stopped again, which is why the store also refuses the writes of past owners: see [`Fence`](super::Fence).
/// The same holds for machines whose clock stands still while they are suspended.
#[derive(Debug)]
pub struct Lease {
    node: Str,
    config: LeaseConfig,
    /// The last known revision of the key.
    known: Known,
    valid_until: Option<Instant>,
    /// When to ask next, while nothing is in flight.
    next_at: Option<Instant>,
    flight: Flight,
    lost: Option<LeaseLost>,
    events: VecDeque<LeaseEvent>,
}

/// What this node knows of its key.
#[derive(Clone, Copy, Debug)]
enum Known {
    /// It is not there, or never was.
    Missing,
    /// It had this revision.
    Revision(u64),
    /// It has another revision than expected.
    Doubtful,
}

impl Lease {
    /// Starts to acquire the lease of the node with this id, which must be new: no other node and no
    /// earlier life of this one may have had it.
    #[must_use]
    pub fn new(node: impl Into<Str>, config: LeaseConfig, now: Instant) -> Self {
        let mut lease = Self {
            node: node.into(),
            config,
            known: Known::Missing,
            valid_until: None,
            next_at: None,
            flight: Flight::new(now),
            lost: None,
            events: VecDeque::new(),
        };
        lease.ask(now);
        lease
    }

    /// Returns the node's id.
    #[must_use]
    pub const fn node(&self) -> &Str {
        &self.node
    }

    /// Returns whether the node counts as alive at this time. Once `false` after it was `true`, it stays
    /// `false`. Look again after every wait, right before what needs it.
    #[must_use]
    pub fn is_valid(&self, now: Instant) -> bool {
        self.lost.is_none() && self.valid_until.is_some_and(|until| now < until)
    }

    /// Returns until when the lease is valid unless it is renewed; `None` before it is acquired and after
    /// it is lost.
    #[must_use]
    pub fn valid_until(&self) -> Option<Instant> {
        self.valid_until.filter(|_| self.lost.is_none())
    }

    /// Returns why the lease has ended, if it has.
    #[must_use]
    pub const fn lost(&self) -> Option<LeaseLost> {
        self.lost
    }

    /// Gives the lease back: it is invalid at once, and the key is removed, so that other nodes need not
    /// wait. The removal is asked for once; if it fails the key expires.
    pub fn release(&mut self, now: Instant) {
        if self.lost.is_some() {
            return;
        }
        let known = self.known;
        self.end(LeaseLost::Released);
        if let Known::Revision(revision) = known {
            self.flight.send(Operation::Delete { revision }, now);
            self.flight.operation = None;
        }
    }

    /// Takes the store's answer to a request. One that is no longer waited for is ignored.
    pub fn handle_reply(&mut self, number: u64, reply: Reply, now: Instant) {
        self.check(now);
        if self.lost.is_some() {
            return;
        }
        let Some((operation, sent)) = self.flight.answered(number) else {
            return;
        };
        match (operation, reply) {
            (Operation::Create | Operation::Update { .. }, Reply::Stored { revision }) => {
                self.renewed(revision, sent);
                self.check(now);
            }
            (Operation::Create | Operation::Update { .. }, Reply::Conflict) => {
                self.known = Known::Doubtful;
                self.ask(now);
            }
            (Operation::Read, Reply::Found { node, revision }) if node == self.node => {
                self.known = Known::Revision(revision);
                self.ask(now);
            }
            (Operation::Read, Reply::Found { .. }) => self.end(LeaseLost::Taken),
            // What it had is gone: only a new node may come.
            (Operation::Read, Reply::Missing) if self.valid_until.is_some() => {
                self.end(LeaseLost::Removed);
            }
            (Operation::Read, Reply::Missing) => {
                self.known = Known::Missing;
                self.ask(now);
            }
            _ => self.next_at = Some(later(now, self.pause())),
        }
    }

    /// Lets the lease act on deadlines at or before `now`. An early call is a no-op.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.check(now);
        let deadline = self.flight.deadline(self.answer_timeout());
        if deadline.is_some_and(|at| at <= now) {
            self.handle_reply(self.flight.number, Reply::Unknown, now);
        }
        if self.next_at.is_some_and(|at| at <= now) {
            self.ask(now);
        }
    }

    /// Returns the next request for the store.
    #[must_use]
    pub fn poll_request(&mut self) -> Option<Request> {
        self.flight.unsent.pop_front()
    }

    /// Returns the next event.
    #[must_use]
    pub fn poll_event(&mut self) -> Option<LeaseEvent> {
        self.events.pop_front()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) has to be called next; `None` once lost.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        if self.lost.is_some() {
            return None;
        }
        let next = self.flight.deadline(self.answer_timeout());
        let next = next.or(self.next_at);
        match (next, self.valid_until) {
            (Some(next), Some(until)) => Some(next.min(until)),
            (next, until) => next.or(until),
        }
    }

    /// Ends the lease if its time is over.
    fn check(&mut self, now: Instant) {
        if self.lost.is_none() && self.valid_until.is_some_and(|until| until <= now) {
            self.end(LeaseLost::Expired);
        }
    }

    fn renewed(&mut self, revision: u64, sent: Instant) {
        let first = self.valid_until.is_none();
        let valid = self.config.lease.saturating_sub(self.config.margin);
        self.known = Known::Revision(revision);
        self.valid_until = Some(later(sent, valid));
        self.next_at = Some(later(sent, self.config.lease / 3));
        if first {
            self.events.push_back(LeaseEvent::Acquired);
        }
    }

    fn ask(&mut self, now: Instant) {
        self.next_at = None;
        let operation = match self.known {
            Known::Missing => Operation::Create,
            Known::Revision(revision) => Operation::Update { revision },
            Known::Doubtful => Operation::Read,
        };
        self.flight.send(operation, now);
    }

    fn answer_timeout(&self) -> Duration {
        self.config.answer_timeout.min(self.config.lease / 5)
    }

    /// How long to wait after a failure: there are several attempts in what a missed renewal leaves.
    fn pause(&self) -> Duration {
        (self.config.lease / 12).max(Duration::from_millis(1))
    }

    fn end(&mut self, why: LeaseLost) {
        self.lost = Some(why);
        self.next_at = None;
        self.flight.operation = None;
        self.flight.unsent.clear();
        self.events.push_back(LeaseEvent::Lost(why));
    }
}
