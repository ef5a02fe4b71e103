//! [`Backoff`]: growing delays between attempts.

use std::time::Duration;

crate::config! {
    /// How the delays between attempts grow, and when to stop.
    ///
    /// The delay before attempt `n` (from 0) is `initial * factor^n`, at most `max`, then changed by
    /// the jitter. The protocols' own sequences are built from this:
    ///
    /// ```
    /// use std::time::Duration;
    /// use rpc_core::backoff::{Backoff, BackoffPolicy};
    ///
    /// let policy = BackoffPolicy {
    ///     max_attempts: Some(3),
    ///     ..BackoffPolicy::new(Duration::from_secs(1), 2.0)
    /// };
    /// let mut backoff = Backoff::new(policy);
    /// let delays: Vec<_> = std::iter::from_fn(|| backoff.next_delay(0)).collect();
    /// assert_eq!(delays, [1, 2, 4].map(Duration::from_secs));
    /// ```
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct BackoffPolicy {
        /// The first delay. Default 1 s.
        pub initial: Duration = Duration::from_secs(1),
        /// The factor by which each delay is longer than the one before. Default 2. A value below
        /// 1, or NaN, counts as 1: every delay is the same.
        pub factor: f64 = 2.0,
        /// The longest delay. `None` means no limit. Default 30 s.
        pub max: Option<Duration> = Some(Duration::from_secs(30)),
        /// The number of delays. `None` means no limit, 0 is "off". Default `None`.
        pub max_attempts: Option<u32> = None,
        /// The random change of each delay. Default [`Jitter::Equal`].
        pub jitter: Jitter = Jitter::Equal,
    }
}

/// The random change of a delay, so that many clients do not reconnect at the same moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Jitter {
    /// No change.
    None,
    /// Between half of the delay and the delay.
    #[default]
    Equal,
}

impl BackoffPolicy {
    /// Returns delays that start at `initial` and grow by `factor`, without cap, end or jitter.
    #[must_use]
    pub const fn new(initial: Duration, factor: f64) -> Self {
        Self {
            initial,
            factor,
            max: None,
            max_attempts: None,
            jitter: Jitter::None,
        }
    }

    /// Returns a policy without any attempt.
    #[must_use]
    pub const fn off() -> Self {
        BackoffPolicy {
            max_attempts: Some(0),
            ..Self::new(Duration::ZERO, 1.0)
        }
    }

    /// Returns whether the policy allows no attempt.
    #[must_use]
    pub(crate) const fn is_off(&self) -> bool {
        matches!(self.max_attempts, Some(0))
    }

    /// Returns the delay before attempt `attempt` (from 0), before jitter, or [`Duration::MAX`] if
    /// it is too long for a [`Duration`].
    #[must_use]
    pub fn delay(&self, attempt: u32) -> Duration {
        let factor = if self.factor >= 1.0 { self.factor } else { 1.0 };
        let delay = if attempt == 0 || self.initial.is_zero() {
            self.initial
        } else {
            let times = factor.powi(i32::try_from(attempt).unwrap_or(i32::MAX));
            Duration::try_from_secs_f64(self.initial.as_secs_f64() * times).unwrap_or(Duration::MAX)
        };
        self.max.map_or(delay, |max| delay.min(max))
    }
}

/// One pass through the delays of a [`BackoffPolicy`].
#[derive(Clone, Debug, PartialEq)]
pub struct Backoff {
    policy: BackoffPolicy,
    attempts: u32,
}

impl Backoff {
    /// The shortest delay, whatever policy and jitter say: an attempt that fails at once must not
    /// spin.
    const SHORTEST: Duration = Duration::from_millis(1);

    /// Starts at the first delay.
    #[must_use]
    pub const fn new(policy: BackoffPolicy) -> Self {
        Self {
            policy,
            attempts: 0,
        }
    }

    /// Returns the delay before the next attempt; `None` when the attempts are used up. `entropy`
    /// is a random number; only jitter uses it.
    pub fn next_delay(&mut self, entropy: u64) -> Option<Duration> {
        let max = self.policy.max_attempts;
        if max.is_some_and(|max| self.attempts >= max) {
            return None;
        }
        let delay = self.policy.delay(self.attempts);
        self.attempts = self.attempts.saturating_add(1);
        let delay = match self.policy.jitter {
            Jitter::None => delay,
            Jitter::Equal => delay / 2 + share(delay - delay / 2, entropy),
        };
        Some(delay.max(Self::SHORTEST))
    }

    /// Starts again at the first delay.
    pub(crate) const fn reset(&mut self) {
        self.attempts = 0;
    }

    /// Returns the number of delays since the start or the last reset.
    pub(crate) const fn attempts(&self) -> u32 {
        self.attempts
    }
}

/// `delay * entropy / 2^64`, in whole nanoseconds.
fn share(delay: Duration, entropy: u64) -> Duration {
    // Past 584 years the share is one of 584 years.
    let nanos = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
    let share = (u128::from(nanos) * u128::from(entropy)) >> 64;
    Duration::from_nanos(u64::try_from(share).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn seconds(policy: BackoffPolicy) -> Vec<u64> {
        let mut backoff = Backoff::new(policy);
        std::iter::from_fn(|| backoff.next_delay(0))
            .map(|delay| delay.as_secs())
            .collect()
    }

    const ONE: Duration = Duration::from_secs(1);

    #[test]
    fn three_attempts_wait_one_two_and_four_seconds() {
        let policy = BackoffPolicy {
            max_attempts: Some(3),
            ..BackoffPolicy::new(ONE, 2.0)
        };
        assert_eq!(seconds(policy), [1, 2, 4]);
    }

    #[test]
    fn ten_attempts_double_up_to_thirty_seconds() {
        let policy = BackoffPolicy {
            max: Some(Duration::from_secs(30)),
            max_attempts: Some(10),
            ..BackoffPolicy::new(ONE, 2.0)
        };
        assert_eq!(seconds(policy), [1, 2, 4, 8, 16, 30, 30, 30, 30, 30]);
    }

    #[test]
    fn off_gives_no_delay() {
        assert!(BackoffPolicy::off().is_off());
        assert_eq!(Backoff::new(BackoffPolicy::off()).next_delay(7), None);
    }

    #[test]
    fn a_reset_starts_again_at_the_first_delay() {
        let mut backoff = Backoff::new(BackoffPolicy {
            max_attempts: Some(2),
            ..BackoffPolicy::new(ONE, 3.0)
        });
        assert_eq!(backoff.next_delay(0), Some(ONE));
        assert_eq!(backoff.next_delay(0), Some(ONE * 3));
        assert_eq!((backoff.next_delay(0), backoff.attempts()), (None, 2));
        backoff.reset();
        assert_eq!((backoff.next_delay(0), backoff.attempts()), (Some(ONE), 1));
    }

    #[test]
    fn an_invalid_factor_keeps_the_delay_constant() {
        for factor in [f64::NAN, f64::NEG_INFINITY, -2.0, 0.0, 0.5] {
            let policy = BackoffPolicy {
                max_attempts: Some(3),
                ..BackoffPolicy::new(ONE, factor)
            };
            assert_eq!(seconds(policy), [1, 1, 1], "{factor}");
        }
    }

    #[test]
    fn a_zero_delay_stays_zero() {
        let policy = BackoffPolicy::new(Duration::ZERO, 2.0);
        assert_eq!(policy.delay(1), Duration::ZERO);
        assert_eq!(policy.delay(u32::MAX), Duration::ZERO);
    }

    #[test]
    fn huge_delays_stop_at_the_cap_or_at_the_longest_duration() {
        let policy = BackoffPolicy::new(ONE, f64::INFINITY);
        assert_eq!(policy.delay(1), Duration::MAX);
        assert_eq!(BackoffPolicy::new(ONE, 2.0).delay(u32::MAX), Duration::MAX);
        assert_eq!(
            BackoffPolicy {
                max: Some(ONE),
                ..policy
            }
            .delay(u32::MAX),
            ONE
        );
        let jittered = BackoffPolicy {
            jitter: Jitter::Equal,
            ..policy
        };
        assert!(
            Backoff {
                policy: jittered,
                attempts: 9
            }
            .next_delay(u64::MAX)
            .is_some()
        );
    }

    proptest! {
        #[test]
        fn jitter_stays_within_its_bounds(millis in 0_u64..100_000, entropy: u64, n in 0_u32..9) {
            let policy = BackoffPolicy::new(Duration::from_millis(millis), 1.5);
            let whole = policy.delay(n).max(Backoff::SHORTEST);
            let policy = BackoffPolicy { jitter: Jitter::Equal, ..policy };
            let mut backoff = Backoff { policy, attempts: n };
            let delay = backoff.next_delay(entropy).unwrap();
            prop_assert!(delay >= (whole / 2).max(Backoff::SHORTEST) && delay <= whole);
        }

        #[test]
        fn no_policy_panics(secs: u64, factor: f64, attempts: u32, entropy: u64) {
            let policy = BackoffPolicy { jitter: Jitter::Equal, ..BackoffPolicy::new(Duration::from_secs(secs), factor) };
            let mut backoff = Backoff { policy, attempts };
            prop_assert!(backoff.next_delay(entropy).is_some());
        }
    }
}
