//! [`World`]: several lines and what is behind them under one clock; [`Dialling`] for its clients.

use std::time::{Duration, Instant};

use super::{Outcome, Rng, tell};
use rpc_core::Retry;
use rpc_core::reconnect::{ReconnectPolicy, Reconnector};

/// More rounds than this at one instant mean that something spins.
const STUCK: usize = 10_000;
/// How long a user waits who starts again what has given up.
const USER_RETURNS: Duration = Duration::from_secs(60);

/// Lines, and what is behind them. It has no clock: [`settle`] and [`advance`] tell it the time.
pub trait World {
    /// When something happens next by itself.
    fn next_instant(&self) -> Option<Instant>;

    /// Lets happen what is due now, perhaps not all of it. Returns whether something happened.
    ///
    /// # Errors
    /// The invariant that is broken.
    fn turn(&mut self, now: Instant) -> Outcome<bool>;
}

/// Lets happen everything that happens at this instant.
///
/// # Errors
/// The invariant that is broken; a world that is never done.
pub fn settle(world: &mut impl World, now: Instant) -> Outcome {
    for _ in 0..STUCK {
        if !world.turn(now)? {
            return Ok(());
        }
    }
    Err("the world makes no progress: something spins".to_owned())
}

/// Lets time pass; what happens on the way happens in order. Returns the new time.
///
/// # Errors
/// As for [`settle`].
pub fn advance(world: &mut impl World, now: Instant, time: Duration) -> Outcome<Instant> {
    let until = now + time;
    let mut now = now;
    settle(world, now)?;
    while let Some(next) = world.next_instant().filter(|next| *next <= until) {
        now = next.max(now);
        settle(world, now)?;
    }
    settle(world, until)?;
    Ok(until)
}

/// When a client of a [`World`] dials: a [`Reconnector`], and a user who starts again a minute
/// after it has given up.
#[derive(Debug)]
pub struct Dialling {
    reconnector: Reconnector,
    at: Option<Instant>,
}

impl Dialling {
    /// Dials at once.
    #[must_use]
    pub fn new(policy: ReconnectPolicy, now: Instant) -> Self {
        Self {
            reconnector: Reconnector::new(policy),
            at: Some(now),
        }
    }

    /// When it dials next; `None` while there is a connection.
    #[must_use]
    pub const fn next_instant(&self) -> Option<Instant> {
        self.at
    }

    /// Whether it dials now. Some attempts fail before a line is open: `failing` in 100.
    pub fn dials(&mut self, failing: u64, now: Instant, rng: &mut Rng) -> bool {
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
    pub fn ready(&mut self) {
        self.reconnector.on_ready();
    }

    /// The connection was lost.
    pub fn lost(&mut self, retry: Retry, now: Instant, rng: &mut Rng) {
        let dial = self.reconnector.on_lost(retry, now, rng.next_u64());
        tell(|| format!("lost: {dial:?}"));
        self.at = dial.map(|dial| dial.at);
        if self.at.is_none() {
            self.reconnector.reset();
            self.at = Some(now + USER_RETURNS);
        }
    }
}
