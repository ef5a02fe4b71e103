//! [`Dialling`]: when a client dials.

use std::time::{Duration, Instant};

use super::{Rng, trace};
use rpc_core::Retry;
use rpc_core::reconnect::{ReconnectPolicy, Reconnector};

/// How long a user waits who starts again what has given up.
const USER_RETURNS: Duration = Duration::from_secs(60);

/// When a client dials: a [`Reconnector`], and a user who starts again a minute
/// after it has given up.
#[derive(Debug)]
pub(super) struct Dialling {
    reconnector: Reconnector,
    at: Option<Instant>,
}

impl Dialling {
    /// Dials at once.
    pub(super) fn new(policy: ReconnectPolicy, now: Instant) -> Self {
        Self {
            reconnector: Reconnector::new(policy),
            at: Some(now),
        }
    }

    /// When it dials next; `None` while there is a connection.
    pub(super) const fn next_instant(&self) -> Option<Instant> {
        self.at
    }

    /// Whether it dials now. Some attempts fail before a line is open: `failing` in 100.
    pub(super) fn dials(&mut self, failing: u64, now: Instant, rng: &mut Rng) -> bool {
        if self.at.is_none_or(|at| at > now) {
            return false;
        }
        if rng.chance(failing) {
            self.lost(Retry::Backoff, now, rng);
            return false;
        }
        self.at = None;
        self.reconnector.on_open();
        true
    }

    /// The handshake has finished.
    pub(super) fn ready(&mut self) {
        self.reconnector.on_ready();
    }

    /// The connection was lost.
    pub(super) fn lost(&mut self, retry: Retry, now: Instant, rng: &mut Rng) {
        let dial = self.reconnector.on_lost(retry, now, rng.next_u64());
        trace(|| format!("lost: {dial:?}"));
        self.at = dial.map(|dial| dial.at);
        if self.at.is_none() {
            self.reconnector.reset();
            self.at = Some(now + USER_RETURNS);
        }
    }
}
