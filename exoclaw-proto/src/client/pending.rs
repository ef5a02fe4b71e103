//! [`Pending`]: what the machine keeps of a request in flight.

use std::time::{Duration, Instant};

use rpc_core::FrameNumber;
use rpc_core::timers::later;

use super::ChatSummary;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Pending {
    /// The frame that asked.
    pub(super) frame: FrameNumber,
    /// How long the gateway may make no progress.
    pub(super) idle: Option<Duration>,
    /// When it ends, whatever comes.
    pub(super) until: Option<Instant>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// One answer ends it.
    Unary,
    /// Frames until the last one.
    Chat(ChatSummary),
    /// Nobody waits for it any more, but the gateway may be at work on it.
    Forgotten,
}

impl Pending {
    /// When it has waited too long, if the last progress was made then.
    pub(super) fn deadline(&self, progress: Instant) -> Option<Instant> {
        let idle = self.idle.map(|idle| later(progress, idle));
        [idle, self.until].into_iter().flatten().min()
    }

    pub(super) const fn is_forgotten(&self) -> bool {
        matches!(self.kind, Kind::Forgotten)
    }
}
