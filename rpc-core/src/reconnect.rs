//! [`Reconnector`]: when to dial again after a connection was lost.

use std::time::Duration;

use crate::Instant;
use crate::backoff::{Backoff, BackoffPolicy};
use crate::error::Retry;
use crate::timers::later;

crate::config! {
    /// How a client reconnects.
    ///
    /// The delays of the backoff are one *cycle*. When its attempts are used up, the client gives
    /// up or, with more [`cycles`](Self::cycles), starts again at the first delay.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ReconnectPolicy {
        /// The delays before the attempts of one cycle.
        pub backoff: BackoffPolicy = BackoffPolicy::default(),
        /// The success that resets the delays. Default [`ResetOn::Ready`].
        pub reset_on: ResetOn = ResetOn::Ready,
        /// How many cycles to run before giving up; `None` means no limit. Default 1; 0 counts as
        /// 1. It matters only if the backoff has an end.
        pub cycles: Option<u32> = Some(1),
    }
}

/// The success that resets the delays.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ResetOn {
    /// An open connection, before any handshake. With a peer that accepts and then refuses the
    /// login, this repeats the first delay forever.
    Open,
    /// A finished handshake.
    #[default]
    Ready,
}

impl ReconnectPolicy {
    /// Returns one cycle of this backoff, reset by a finished handshake.
    #[must_use]
    pub const fn new(backoff: BackoffPolicy) -> Self {
        Self {
            backoff,
            reset_on: ResetOn::Ready,
            cycles: Some(1),
        }
    }

    /// Returns a policy that never reconnects.
    #[must_use]
    pub const fn off() -> Self {
        Self::new(BackoffPolicy::off())
    }
}

/// When to dial again, after a lost connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct Dial {
    /// The time.
    pub at: Instant,
    /// The number of the attempt in its cycle, from 1 on.
    pub attempt: u32,
    /// The number of the cycle, from 1 on.
    pub cycle: u32,
}

impl Dial {
    /// Returns whether all attempts of a cycle have failed, and the next cycle begins.
    #[must_use]
    pub const fn starts_new_cycle(&self) -> bool {
        self.attempt == 1 && self.cycle > 1
    }
}

/// Decides when a client dials. It holds no connection and reads no clock.
///
/// The first dial needs no delay. For every dial, call either [`on_lost`](Self::on_lost), if it
/// failed, or [`on_open`](Self::on_open), then [`on_ready`](Self::on_ready) if the handshake
/// finishes, and `on_lost` when the connection is gone.
///
/// ```
/// use std::time::{Duration, Instant};
/// use rpc_core::Retry;
/// use rpc_core::backoff::BackoffPolicy;
/// use rpc_core::reconnect::{ReconnectPolicy, Reconnector};
///
/// let now = Instant::now();
/// let backoff = BackoffPolicy::new(Duration::from_secs(1), 2.0);
/// let mut reconnector = Reconnector::new(ReconnectPolicy::new(backoff));
/// let dial = reconnector.on_lost(Retry::Backoff, now, 0).unwrap();
/// assert_eq!(dial.at, now + Duration::from_secs(1));
/// assert_eq!(reconnector.on_lost(Retry::Never, now, 0), None);
/// ```
#[derive(Clone, Debug)]
pub struct Reconnector {
    policy: ReconnectPolicy,
    backoff: Backoff,
    cycle: u32,
}

impl Reconnector {
    /// Creates a reconnector that has not dialled.
    #[must_use]
    pub const fn new(policy: ReconnectPolicy) -> Self {
        Self {
            policy,
            backoff: Backoff::new(policy.backoff),
            cycle: 1,
        }
    }

    /// Notes that the transport is open; the protocol's handshake has yet to finish.
    pub fn on_open(&mut self) {
        if self.policy.reset_on == ResetOn::Open {
            self.reset();
        }
    }

    /// Notes that the handshake has finished.
    pub fn on_ready(&mut self) {
        if self.policy.reset_on == ResetOn::Ready {
            self.reset();
        }
    }

    /// Decides after a failed dial or a lost connection. `retry` is its
    /// [`CloseReason::retry`](crate::CloseReason::retry), `entropy` a random number for the jitter.
    ///
    /// A peer's [`Retry::After`] can lengthen the delay but not shorten it, and uses up an attempt
    /// like any other. `None`: do not dial again.
    pub fn on_lost(&mut self, retry: Retry, now: Instant, entropy: u64) -> Option<Dial> {
        let least = match retry {
            Retry::Never => return None,
            Retry::Backoff => Duration::ZERO,
            Retry::After(delay) => delay,
        };
        let delay = self.next_delay(entropy)?;
        Some(Dial {
            at: later(now, delay.max(least)),
            attempt: self.backoff.attempts(),
            cycle: self.cycle,
        })
    }

    fn next_delay(&mut self, entropy: u64) -> Option<Duration> {
        if let Some(delay) = self.backoff.next_delay(entropy) {
            return Some(delay);
        }
        if self.policy.backoff.is_off() || self.policy.cycles.is_some_and(|max| self.cycle >= max) {
            return None;
        }
        self.cycle = self.cycle.saturating_add(1);
        self.backoff.reset();
        self.backoff.next_delay(entropy)
    }

    /// Starts again, for a user who asks for a connection after the last attempt. The next dial needs no
    /// delay.
    pub const fn reset(&mut self) {
        self.backoff.reset();
        self.cycle = 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn three() -> ReconnectPolicy {
        ReconnectPolicy::new(BackoffPolicy {
            max_attempts: Some(3),
            ..BackoffPolicy::new(SECOND, 2.0)
        })
    }

    fn lose(reconnector: &mut Reconnector, now: Instant) -> Option<(u64, u32, u32)> {
        let dial = reconnector.on_lost(Retry::Backoff, now, 0)?;
        Some(((dial.at - now).as_secs(), dial.attempt, dial.cycle))
    }

    #[test]
    fn failures_follow_the_delays_until_reset() {
        let now = Instant::now();
        let mut reconnector = Reconnector::new(three());
        assert_eq!(lose(&mut reconnector, now), Some((1, 1, 1)));
        assert_eq!(lose(&mut reconnector, now), Some((2, 2, 1)));
        assert_eq!(lose(&mut reconnector, now), Some((4, 3, 1)));
        assert_eq!(lose(&mut reconnector, now), None);
        assert_eq!(lose(&mut reconnector, now), None);
        reconnector.reset();
        assert_eq!(lose(&mut reconnector, now), Some((1, 1, 1)));
    }

    #[test]
    fn a_failing_login_does_not_loop_at_the_first_delay() {
        let now = Instant::now();
        let mut reconnector = Reconnector::new(three());
        for delay in [1, 2, 4] {
            reconnector.on_open();
            assert_eq!(lose(&mut reconnector, now).map(|dial| dial.0), Some(delay));
        }
        reconnector.on_open();
        reconnector.on_ready();
        assert_eq!(lose(&mut reconnector, now), Some((1, 1, 1)));
    }

    #[test]
    fn delays_can_reset_when_the_connection_opens() {
        let now = Instant::now();
        let mut reconnector = Reconnector::new(ReconnectPolicy {
            reset_on: ResetOn::Open,
            ..three()
        });
        for _ in 0..5 {
            reconnector.on_open();
            assert_eq!(lose(&mut reconnector, now), Some((1, 1, 1)));
        }
    }

    #[test]
    fn a_new_cycle_starts_at_the_first_delay() {
        let now = Instant::now();
        let mut reconnector = Reconnector::new(ReconnectPolicy {
            cycles: None,
            ..three()
        });
        for cycle in 1..50 {
            for (attempt, delay) in (1..).zip([1, 2, 4]) {
                let dial = reconnector.on_lost(Retry::Backoff, now, 0).unwrap();
                let at = now + SECOND * delay;
                assert_eq!(dial, Dial { at, attempt, cycle });
                assert_eq!(dial.starts_new_cycle(), attempt == 1 && cycle > 1);
            }
        }
        reconnector.on_ready();
        assert_eq!(lose(&mut reconnector, now), Some((1, 1, 1)));
    }

    #[test]
    fn cycles_are_counted() {
        let now = Instant::now();
        let mut reconnector = Reconnector::new(ReconnectPolicy {
            cycles: Some(2),
            ..three()
        });
        let dials = std::iter::from_fn(|| lose(&mut reconnector, now)).count();
        assert_eq!(dials, 6);
    }

    #[test]
    fn a_disabled_policy_gives_up_at_once() {
        let now = Instant::now();
        for cycles in [None, Some(0), Some(5)] {
            let mut reconnector = Reconnector::new(ReconnectPolicy {
                cycles,
                ..ReconnectPolicy::off()
            });
            assert_eq!(reconnector.on_lost(Retry::After(SECOND), now, 0), None);
        }
    }

    #[test]
    fn a_final_reason_gives_up() {
        let mut reconnector = Reconnector::new(ReconnectPolicy::default());
        assert_eq!(reconnector.on_lost(Retry::Never, Instant::now(), 0), None);
    }

    #[test]
    fn retry_after_only_lengthens_the_delay() {
        let now = Instant::now();
        let mut reconnector = Reconnector::new(three());
        let mut at = |wish| {
            let dial = reconnector.on_lost(Retry::After(wish), now, 0);
            dial.unwrap().at
        };
        assert_eq!(at(SECOND * 9), now + SECOND * 9);
        assert_eq!(at(SECOND), now + SECOND * 2);
        assert!(at(Duration::MAX) > now);
    }
}
