//! [`Pending`]: what the machine keeps of a request in flight.

use std::time::{Duration, Instant};

use rpc_core::outbox::FrameNumber;
use rpc_core::timers::later;

use super::ChatSummary;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Pending {
    /// The frame that asked.
    pub(super) frame: FrameNumber,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// One answer ends it.
    Unary,
    /// Frames until the last one.
    Chat(Run),
}

/// A chat in flight.
#[derive(Debug)]
pub(super) struct Run {
    /// How long it waits for its next frame.
    pub(super) idle: Option<Duration>,
    /// When it ends, whatever comes.
    pub(super) until: Option<Instant>,
    pub(super) summary: ChatSummary,
}

impl Run {
    pub(super) fn deadline(&self, now: Instant) -> Option<Instant> {
        let idle = self.idle.map(|idle| later(now, idle));
        [idle, self.until].into_iter().flatten().min()
    }
}
