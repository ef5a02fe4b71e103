//! What the machines of keys ask of a store: [`Request`] and [`Reply`].

use std::collections::VecDeque;
use std::time::Duration;

use crate::timers::later;
use crate::{Instant, Str};

/// An operation that a `Lease` or a `Claim` asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the [`Reply`] has to repeat.
    pub number: u64,
    /// What to do.
    pub operation: Operation,
}

/// What to do with the key of a `Lease` or a `Claim`. Whatever is written names this node.
///
/// Exhaustive on purpose: the driver of a machine has to do all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Read the key: [`Reply::Found`] or [`Reply::Missing`].
    Read,
    /// Write the key if it is missing.
    Create,
    /// Write the key if it has this revision.
    Update {
        /// The expected revision.
        revision: u64,
    },
    /// Remove the key if it has this revision.
    Delete {
        /// The expected revision.
        revision: u64,
    },
    /// Read the key of another node's `Lease`. Only a `Claim` asks.
    ReadNode {
        /// The id of that node.
        node: Str,
    },
}

/// What the store says to an [`Operation`].
///
/// Exhaustive on purpose: a store has nothing else to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Written or removed; the key's revision now.
    Stored {
        /// The new revision.
        revision: u64,
    },
    /// The key is there.
    Found {
        /// The node that the key names.
        node: Str,
        /// The key's revision.
        revision: u64,
    },
    /// The key is not there.
    Missing,
    /// Not written: the key has another revision, or exists already.
    Conflict,
    /// Not done for another reason: the store is full or refuses.
    Refused,
    /// No answer: perhaps done, perhaps not, perhaps later.
    Unknown,
}

/// The request in flight of a machine that has one at a time.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) number: u64,
    pub(super) operation: Option<Operation>,
    sent: Instant,
    pub(super) unsent: VecDeque<Request>,
}

impl Flight {
    pub(super) const fn new(now: Instant) -> Self {
        Self {
            number: 0,
            operation: None,
            sent: now,
            unsent: VecDeque::new(),
        }
    }

    /// Asks for this; a request before it is no longer waited for.
    pub(super) fn send(&mut self, operation: Operation, now: Instant) {
        self.number += 1;
        self.sent = now;
        self.operation = Some(operation.clone());
        self.unsent.clear();
        self.unsent.push_back(Request {
            number: self.number,
            operation,
        });
    }

    /// The operation that this number answers and when it was sent, if it is waited for.
    pub(super) fn answered(&mut self, number: u64) -> Option<(Operation, Instant)> {
        let operation = self.operation.take_if(|_| number == self.number)?;
        Some((operation, self.sent))
    }

    /// When waiting ends, if something is in flight.
    pub(super) fn deadline(&self, timeout: Duration) -> Option<Instant> {
        self.operation
            .is_some()
            .then(|| later(self.sent, timeout.max(Duration::from_millis(1))))
    }
}
