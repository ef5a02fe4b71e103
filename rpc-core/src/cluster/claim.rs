//! [`Claim`]: which node owns a name.

use std::time::Duration;

use super::key::{Flight, Operation, Reply, Request};
use crate::timers::later;
use crate::{Instant, Str};

crate::config! {
    /// How long a claim asks the store.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ClaimConfig {
        /// How long to wait for one answer before looking again. Default 2 s.
        pub answer_timeout: Duration = Duration::from_secs(2),
        /// How long to wait after an operation that failed. Default 200 ms.
        pub pause: Duration = Duration::from_millis(200),
        /// After how long it gives up. Default 10 s.
        pub deadline: Duration = Duration::from_secs(10),
    }
}

/// How a [`Claim`] has come out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClaimEvent {
    /// This node owns the name. Before its first write it reads what there is, with a
    /// [`Fence`](super::Fence), and writes that it is the owner.
    Owned {
        /// The number of this ownership: later owners of the name have greater ones.
        fence: u64,
        /// The owner before this one, if that one died without releasing the name.
        taken_from: Option<Str>,
    },
    /// Another node owns the name, and is alive.
    Held {
        /// The id of that node.
        node: Str,
    },
    /// The store did not answer in time. The name may be this node's: claim it again to know.
    Unavailable,
    /// The name was given back, or the store did not say so in time; then it stays this node's until it is
    /// claimed again or the node's lease ends.
    Released,
}

/// Finds or becomes the owner of one name.
///
/// The owner is in a key of a bucket without expiry, and valid as long as the lease of the
/// node in it: a node that is alive keeps all its names without a message. A name without owner is created;
/// one whose owner's node is gone is taken over by its revision, so that one of several nodes wins.
///
/// Claim only while the node's lease is valid, one claim of a name at a time, and stop working for all
/// names when it is lost.
///
/// A name that already names this node, because an earlier answer was lost, becomes this node's with a new
/// revision; what was sent for it earlier is then refused.
#[derive(Debug)]
pub struct Claim {
    node: Str,
    config: ClaimConfig,
    state: State,
    /// The owner that was read and whose node is gone.
    gone: Option<Str>,
    give_up_at: Instant,
    next: Option<(Instant, Operation)>,
    flight: Flight,
    event: Option<ClaimEvent>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Claiming,
    /// Another node is the owner, at this revision; whether it is alive is asked.
    Checking(u64),
    Owned(u64),
    Releasing(u64),
    Ended,
}

impl Claim {
    /// Starts to claim a name for this node.
    #[must_use]
    pub fn new(node: impl Into<Str>, config: ClaimConfig, now: Instant) -> Self {
        let mut claim = Self {
            node: node.into(),
            config,
            state: State::Claiming,
            gone: None,
            give_up_at: later(now, config.deadline),
            next: None,
            flight: Flight::new(now),
            event: None,
        };
        claim.flight.send(Operation::Read, now);
        claim
    }

    /// Returns the number of this ownership while the name is this node's. Valid while the node's lease is.
    #[must_use]
    pub const fn fence(&self) -> Option<u64> {
        match self.state {
            State::Owned(fence) => Some(fence),
            _ => None,
        }
    }

    /// Gives an owned name back. Stop writing for it first. Does nothing if it is not owned.
    pub fn release(&mut self, now: Instant) {
        if let State::Owned(revision) = self.state {
            self.state = State::Releasing(revision);
            self.give_up_at = later(now, self.config.deadline);
            self.flight.send(Operation::Delete { revision }, now);
        }
    }

    /// Takes the store's answer to a request. One that is no longer waited for is ignored.
    pub fn handle_reply(&mut self, number: u64, reply: Reply, now: Instant) {
        let Some((operation, _)) = self.flight.answered(number) else {
            return;
        };
        match (self.state, operation, reply) {
            (State::Claiming, Operation::Read, Reply::Missing) => {
                self.gone = None;
                self.flight.send(Operation::Create, now);
            }
            (State::Claiming, Operation::Read, Reply::Found { node, revision }) => {
                if node == self.node {
                    self.flight.send(Operation::Update { revision }, now);
                } else {
                    self.state = State::Checking(revision);
                    self.gone = Some(node.clone());
                    self.flight.send(Operation::ReadNode { node }, now);
                }
            }
            (State::Checking(_), _, Reply::Found { .. }) => {
                let node = self.gone.take().unwrap_or_default();
                self.end(ClaimEvent::Held { node });
            }
            (State::Checking(revision), _, Reply::Missing) => {
                self.state = State::Claiming;
                self.flight.send(Operation::Update { revision }, now);
            }
            (State::Claiming, _, Reply::Stored { revision }) => {
                self.state = State::Owned(revision);
                self.event = Some(ClaimEvent::Owned {
                    fence: revision,
                    taken_from: self.gone.take(),
                });
            }
            // Someone was faster: see who.
            (State::Claiming, _, Reply::Conflict) => self.flight.send(Operation::Read, now),
            (State::Releasing(_), _, Reply::Stored { .. } | Reply::Conflict) => {
                self.end(ClaimEvent::Released);
            }
            (State::Releasing(revision), ..) => self.again(Operation::Delete { revision }, now),
            (State::Checking(_) | State::Claiming, ..) => {
                self.state = State::Claiming;
                self.again(Operation::Read, now);
            }
            (State::Owned(_) | State::Ended, ..) => {}
        }
        self.check(now);
    }

    /// Lets the claim act on deadlines at or before `now`. An early call is a no-op.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.check(now);
        let deadline = self.flight.deadline(self.config.answer_timeout);
        if deadline.is_some_and(|at| at <= now) {
            self.handle_reply(self.flight.number, Reply::Unknown, now);
        }
        if let Some((_, operation)) = self.next.take_if(|(at, _)| *at <= now) {
            self.flight.send(operation, now);
        }
    }

    /// Returns the next request for the store.
    #[must_use]
    pub fn poll_request(&mut self) -> Option<Request> {
        self.flight.unsent.pop_front()
    }

    /// Returns how the claim has come out. One event follows the creation, one a release.
    #[must_use]
    pub const fn poll_event(&mut self) -> Option<ClaimEvent> {
        self.event.take()
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) has to be called next; `None` while there is
    /// nothing to wait for.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let deadline = self.flight.deadline(self.config.answer_timeout);
        let next = deadline.or_else(|| self.next.as_ref().map(|(at, _)| *at));
        next.map(|at| at.min(self.give_up_at))
    }

    fn again(&mut self, operation: Operation, now: Instant) {
        let pause = self.config.pause.max(Duration::from_millis(1));
        self.next = Some((later(now, pause), operation));
    }

    fn check(&mut self, now: Instant) {
        if now < self.give_up_at {
            return;
        }
        match self.state {
            State::Claiming | State::Checking(_) => self.end(ClaimEvent::Unavailable),
            State::Releasing(_) => self.end(ClaimEvent::Released),
            State::Owned(_) | State::Ended => {}
        }
    }

    fn end(&mut self, event: ClaimEvent) {
        self.state = State::Ended;
        self.next = None;
        self.flight.operation = None;
        self.flight.unsent.clear();
        self.event = Some(event);
    }
}
