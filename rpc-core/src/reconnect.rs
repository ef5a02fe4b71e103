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
        /// What counts as success and resets the delays. Default [`ResetOn::Ready`].
        pub reset_on: ResetOn = ResetOn::Ready,
        /// How many cycles to run before giving up; `None` means no limit. Default 1; 0 counts as
        /// 1. It matters only if the backoff has an end.
        pub cycles: Option<u32> = Some(1),
    }
}

/// What resets the delays.
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

/// Whether and when to dial next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub enum Dial {
    /// Dial at once. Only the very first dial does.
    Now,
    /// Dial at this time.
    At {
        /// The time.
        at: Instant,
        /// The number of the attempt in its cycle, from 1.
        attempt: u32,
        /// The number of the cycle, from 1.
        cycle: u32,
    },
    /// Do not dial again.
    GiveUp,
}

impl Dial {
    /// Returns whether this is the first attempt of a cycle after another was used up.
    #[must_use]
    pub const fn starts_new_cycle(&self) -> bool {
        matches!(
            self,
            Self::At {
                attempt: 1,
                cycle: 2..,
                ..
            }
        )
    }

    /// Returns when to dial, unless at once or never.
    #[must_use]
    pub const fn at(&self) -> Option<Instant> {
        match self {
            Self::At { at, .. } => Some(*at),
            Self::Now | Self::GiveUp => None,
        }
    }
}

/// Decides when a client dials. It holds no connection and reads no clock.
///
/// Call [`first`](Self::first) once; then for every dial either [`on_lost`](Self::on_lost), if it
/// failed, or [`on_open`](Self::on_open), then [`on_ready`](Self::on_ready) if the handshake
/// finishes, and `on_lost` when the connection is gone. Every dial after the first has a delay.
///
/// ```
/// use std::time::{Duration, Instant};
/// use rpc_core::Retry;
/// use rpc_core::backoff::BackoffPolicy;
/// use rpc_core::reconnect::{Dial, ReconnectPolicy, Reconnector};
///
/// let now = Instant::now();
/// let backoff = BackoffPolicy::new(Duration::from_secs(1), 2.0);
/// let mut reconnector = Reconnector::new(ReconnectPolicy::new(backoff));
/// assert_eq!(reconnector.first(), Dial::Now);
/// let dial = reconnector.on_lost(Retry::Backoff, now, 0);
/// assert_eq!(dial.at(), Some(now + Duration::from_secs(1)));
/// assert_eq!(reconnector.on_lost(Retry::Never, now, 0), Dial::GiveUp);
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

    /// Starts with the very first dial, which needs no delay, and resets everything. Call it again
    /// only when the user asks for a connection after [`Dial::GiveUp`].
    pub const fn first(&mut self) -> Dial {
        self.reset();
        Dial::Now
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
    /// like any other.
    pub fn on_lost(&mut self, retry: Retry, now: Instant, entropy: u64) -> Dial {
        let least = match retry {
            Retry::Never => return Dial::GiveUp,
            Retry::Backoff => Duration::ZERO,
            Retry::After(delay) => delay,
        };
        let Some(delay) = self.next_delay(entropy) else {
            return Dial::GiveUp;
        };
        Dial::At {
            at: later(now, delay.max(least)),
            attempt: self.backoff.attempts(),
            cycle: self.cycle,
        }
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

    const fn reset(&mut self) {
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
        match reconnector.on_lost(Retry::Backoff, now, 0) {
            Dial::Now => panic!("a retry without a delay"),
            Dial::At { at, attempt, cycle } => Some(((at - now).as_secs(), attempt, cycle)),
            Dial::GiveUp => None,
        }
    }

    #[test]
    fn the_first_dial_needs_no_delay_and_failures_walk_through_the_sequence() {
        let now = Instant::now();
        let mut reconnector = Reconnector::new(three());
        assert_eq!(reconnector.first(), Dial::Now);
        assert_eq!(lose(&mut reconnector, now), Some((1, 1, 1)));
        assert_eq!(lose(&mut reconnector, now), Some((2, 2, 1)));
        assert_eq!(lose(&mut reconnector, now), Some((4, 3, 1)));
        assert_eq!(lose(&mut reconnector, now), None);
        assert_eq!(lose(&mut reconnector, now), None);
        assert_eq!(reconnector.first(), Dial::Now);
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
    fn a_reset_on_open_is_there_for_the_specifications_that_want_it() {
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
    fn a_new_cycle_starts_at_the_first_delay_and_says_so() {
        let now = Instant::now();
        let mut reconnector = Reconnector::new(ReconnectPolicy {
            cycles: None,
            ..three()
        });
        for cycle in 1..50 {
            for (attempt, delay) in (1..).zip([1, 2, 4]) {
                let dial = reconnector.on_lost(Retry::Backoff, now, 0);
                assert_eq!(
                    dial,
                    Dial::At {
                        at: now + SECOND * delay,
                        attempt,
                        cycle
                    }
                );
                assert_eq!(dial.starts_new_cycle(), attempt == 1 && cycle > 1);
            }
        }
        reconnector.on_ready();
        assert_eq!(lose(&mut reconnector, now), Some((1, 1, 1)));
    }

    #[test]
    fn the_number_of_cycles_is_kept() {
        let now = Instant::now();
        let mut reconnector = Reconnector::new(ReconnectPolicy {
            cycles: Some(2),
            ..three()
        });
        let dials = std::iter::from_fn(|| lose(&mut reconnector, now)).count();
        assert_eq!(dials, 6);
    }

    #[test]
    fn off_gives_up_whatever_the_cycles_say() {
        let now = Instant::now();
        for cycles in [None, Some(0), Some(5)] {
            let mut reconnector = Reconnector::new(ReconnectPolicy {
                cycles,
                ..ReconnectPolicy::off()
            });
            assert_eq!(reconnector.first(), Dial::Now);
            assert_eq!(
                reconnector.on_lost(Retry::After(SECOND), now, 0),
                Dial::GiveUp
            );
        }
    }

    #[test]
    fn a_final_reason_gives_up() {
        let mut reconnector = Reconnector::new(ReconnectPolicy::default());
        assert_eq!(
            reconnector.on_lost(Retry::Never, Instant::now(), 0),
            Dial::GiveUp
        );
    }

    #[test]
    fn the_peers_wish_lengthens_the_delay_and_never_shortens_it() {
        let now = Instant::now();
        let mut reconnector = Reconnector::new(three());
        let dial = reconnector.on_lost(Retry::After(SECOND * 9), now, 0);
        assert_eq!(dial.at(), Some(now + SECOND * 9));
        let dial = reconnector.on_lost(Retry::After(SECOND), now, 0);
        assert_eq!(dial.at(), Some(now + SECOND * 2));
        assert_eq!(reconnector.backoff.attempts(), 2);
        assert!(
            reconnector
                .on_lost(Retry::After(Duration::MAX), now, 0)
                .at()
                > Some(now)
        );
    }
}
