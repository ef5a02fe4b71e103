//! [`Pending`]: the machine's record of a request in flight.

use std::time::Duration;

use rpc_core::timers::later;
use rpc_core::{FrameNumber, Instant};

use super::ChatSummary;

/// A request in flight.
#[derive(Debug)]
pub(super) struct Pending {
    /// The frame that asked.
    pub(super) frame: FrameNumber,
    /// How long the gateway may make no progress.
    pub(super) idle: Option<Duration>,
    /// When it ends, whatever its progress.
    pub(super) until: Option<Instant>,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    /// A request that one answer ends.
    Unary,
    /// A chat, with several frames.
    Chat(ChatSummary),
    /// A cancelled request that the gateway may still work on.
    Forgotten,
}

impl Pending {
    /// Returns its deadline, given the time of the last progress.
    pub(super) fn deadline(&self, progress: Instant) -> Option<Instant> {
        let idle = self.idle.map(|idle| later(progress, idle));
        [idle, self.until].into_iter().flatten().min()
    }

    pub(super) const fn is_forgotten(&self) -> bool {
        matches!(self.kind, Kind::Forgotten)
    }
}
