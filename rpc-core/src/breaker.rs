//! [`CircuitBreaker`]: stops calls that keep failing.

use std::time::Duration;

use crate::Instant;

crate::config! {
    /// When a [`CircuitBreaker`] opens, and how it recovers.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BreakerConfig {
        /// How many failures in a row open it. Default 5. 0 counts as 1.
        pub failure_threshold: u32 = 5,
        /// How long it stays open before a trial. Default 60 s.
        pub recovery_timeout: Duration = Duration::from_secs(60),
        /// How many trial calls may be in flight while it is half-open. Default 3. 0 counts as 1.
        pub half_open_max_calls: u32 = 3,
    }
}

/// The state of a [`CircuitBreaker`], which decides about the next call.
///
/// Exhaustive on purpose: a circuit breaker has these three states.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Every call passes; failures in a row are counted.
    Closed,
    /// Calls are refused until the recovery timeout is over.
    Open,
    /// A few trial calls are let through; the first result decides.
    HalfOpen,
}

/// The permission to make one call; hand it back with the call's result.
///
/// A permit that is lost in the half-open state keeps its place, so hand back every one: with
/// [`cancel`](CircuitBreaker::cancel) if the call has no result.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "hand the permit back with the result of the call"]
pub struct Permit {
    generation: u64,
}

/// The error of a call that is refused because the circuit is open. Nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the circuit breaker is open")]
#[non_exhaustive]
pub struct BreakerOpen {
    /// How long until a trial call may pass. `None` while trial calls are in flight: their results
    /// decide.
    pub retry_after: Option<Duration>,
}

/// Counts failures in a row and, after too many, refuses calls for a while.
///
/// - *Closed*: calls pass. A success clears the count; the last of `failure_threshold` failures in
///   a row opens the circuit.
/// - *Open*: calls are refused. The first call at or after `recovery_timeout` makes the circuit
///   half-open and passes.
/// - *Half-open*: at most `half_open_max_calls` calls are in flight. The first success closes the
///   circuit with the count cleared; a failure opens it again with a fresh timeout.
///
/// A result counts only in the state in which its call began. Each change of state starts a new
/// generation, and a permit of an older generation has no effect: a call from before the circuit
/// opened neither prolongs the timeout nor closes the circuit, and trial calls that end after the
/// first one change nothing.
///
/// ```
/// use std::time::Instant;
/// use rpc_core::breaker::{BreakerConfig, CircuitBreaker, State};
///
/// let now = Instant::now();
/// let mut breaker = CircuitBreaker::new(BreakerConfig { failure_threshold: 1, ..BreakerConfig::default() });
/// let permit = breaker.try_acquire(now)?;
/// breaker.failure(permit, now);
/// assert_eq!(breaker.state(), State::Open);
/// assert!(breaker.try_acquire(now).is_err());
/// # Ok::<(), rpc_core::breaker::BreakerOpen>(())
/// ```
#[derive(Clone, Debug)]
pub struct CircuitBreaker {
    config: BreakerConfig,
    generation: u64,
    phase: Phase,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Closed { failures: u32 },
    Open { since: Instant },
    HalfOpen { in_flight: u32 },
}

impl CircuitBreaker {
    /// Creates a closed circuit.
    #[must_use]
    pub const fn new(config: BreakerConfig) -> Self {
        Self {
            config,
            generation: 0,
            phase: Phase::Closed { failures: 0 },
        }
    }

    /// Asks for permission to make a call.
    ///
    /// # Errors
    /// [`BreakerOpen`] if the circuit is open or enough trial calls are in flight.
    pub fn try_acquire(&mut self, now: Instant) -> Result<Permit, BreakerOpen> {
        match &mut self.phase {
            Phase::Closed { .. } => {}
            Phase::Open { since } => {
                let waited = now.saturating_duration_since(*since);
                if waited < self.config.recovery_timeout {
                    let retry_after = Some(self.config.recovery_timeout - waited);
                    return Err(BreakerOpen { retry_after });
                }
                self.enter(Phase::HalfOpen { in_flight: 1 });
            }
            Phase::HalfOpen { in_flight } => {
                if *in_flight >= self.config.half_open_max_calls.max(1) {
                    return Err(BreakerOpen { retry_after: None });
                }
                *in_flight += 1;
            }
        }
        Ok(Permit {
            generation: self.generation,
        })
    }

    /// Reports that the call succeeded.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is used up")]
    pub fn success(&mut self, permit: Permit, _now: Instant) {
        if permit.generation != self.generation {
            return;
        }
        match &mut self.phase {
            Phase::Closed { failures } => *failures = 0,
            Phase::HalfOpen { .. } => self.enter(Phase::Closed { failures: 0 }),
            Phase::Open { .. } => {}
        }
    }

    /// Reports that the call failed.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is used up")]
    pub fn failure(&mut self, permit: Permit, now: Instant) {
        if permit.generation != self.generation {
            return;
        }
        match &mut self.phase {
            Phase::Closed { failures } => {
                *failures += 1;
                if *failures >= self.config.failure_threshold {
                    self.enter(Phase::Open { since: now });
                }
            }
            Phase::HalfOpen { .. } => self.enter(Phase::Open { since: now }),
            Phase::Open { .. } => {}
        }
    }

    /// Reports that the call has no result: it was cancelled or never made. In the half-open state
    /// this frees its place; otherwise nothing changes.
    #[expect(clippy::needless_pass_by_value, reason = "a permit is used up")]
    pub fn cancel(&mut self, permit: Permit) {
        if permit.generation == self.generation
            && let Phase::HalfOpen { in_flight } = &mut self.phase
        {
            *in_flight = in_flight.saturating_sub(1);
        }
    }

    /// Returns the state after the last call. An open circuit stays open until the next call, even
    /// when the recovery timeout is over; [`admits`](Self::admits) says whether that call will
    /// pass.
    #[must_use]
    pub const fn state(&self) -> State {
        match self.phase {
            Phase::Closed { .. } => State::Closed,
            Phase::Open { .. } => State::Open,
            Phase::HalfOpen { .. } => State::HalfOpen,
        }
    }

    /// Returns whether [`try_acquire`](Self::try_acquire) would succeed. Changes nothing.
    #[must_use]
    pub fn admits(&self, now: Instant) -> bool {
        match self.phase {
            Phase::Closed { .. } => true,
            Phase::Open { since } => {
                now.saturating_duration_since(since) >= self.config.recovery_timeout
            }
            Phase::HalfOpen { in_flight } => in_flight < self.config.half_open_max_calls.max(1),
        }
    }

    fn enter(&mut self, phase: Phase) {
        self.generation += 1;
        self.phase = phase;
    }
}

impl Default for CircuitBreaker {
    fn default() -> Self {
        Self::new(BreakerConfig::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn opened(now: Instant) -> CircuitBreaker {
        let mut breaker = CircuitBreaker::default();
        for _ in 0..5 {
            let permit = breaker.try_acquire(now).unwrap();
            breaker.failure(permit, now);
        }
        assert_eq!(breaker.state(), State::Open);
        breaker
    }

    #[test]
    fn the_fifth_consecutive_failure_opens_the_breaker() {
        let now = Instant::now();
        let mut breaker = CircuitBreaker::default();
        for _ in 0..4 {
            let permit = breaker.try_acquire(now).unwrap();
            breaker.failure(permit, now);
        }
        let permit = breaker.try_acquire(now).unwrap();
        breaker.success(permit, now);
        assert!(matches!(breaker.phase, Phase::Closed { failures: 0 }));
        for failures in 1..=5 {
            assert_eq!(breaker.state(), State::Closed, "after {failures}");
            let permit = breaker.try_acquire(now).unwrap();
            breaker.failure(permit, now);
        }
        let refused = breaker.try_acquire(now + MINUTE / 4);
        assert_eq!(
            refused,
            Err(BreakerOpen {
                retry_after: Some(MINUTE * 3 / 4)
            })
        );
    }

    #[test]
    fn the_first_call_after_the_timeout_half_opens_the_breaker() {
        let now = Instant::now();
        let mut breaker = opened(now);
        assert!(
            breaker
                .try_acquire(now + MINUTE - Duration::from_nanos(1))
                .is_err()
        );
        assert!(breaker.admits(now + MINUTE));
        assert_eq!(breaker.state(), State::Open);
        let permit = breaker.try_acquire(now + MINUTE).unwrap();
        assert_eq!(breaker.state(), State::HalfOpen);
        breaker.success(permit, now + MINUTE);
        assert!(matches!(breaker.phase, Phase::Closed { failures: 0 }));
    }

    #[test]
    fn trial_calls_are_bounded_and_cancelled_ones_released() {
        let now = Instant::now();
        let later = now + MINUTE;
        let mut breaker = opened(now);
        let mut permits: Vec<_> = (0..3)
            .map(|_| breaker.try_acquire(later).unwrap())
            .collect();
        assert!(!breaker.admits(later));
        assert_eq!(
            breaker.try_acquire(later),
            Err(BreakerOpen { retry_after: None })
        );
        breaker.cancel(permits.pop().unwrap());
        assert_eq!(breaker.state(), State::HalfOpen);
        assert!(breaker.try_acquire(later).is_ok());
        assert!(breaker.try_acquire(later).is_err());
    }

    #[test]
    fn a_failed_trial_opens_it_again_with_a_fresh_timeout() {
        let now = Instant::now();
        let later = now + MINUTE * 2;
        let mut breaker = opened(now);
        let permit = breaker.try_acquire(later).unwrap();
        breaker.failure(permit, later);
        assert_eq!(breaker.state(), State::Open);
        assert!(breaker.try_acquire(later + MINUTE / 2).is_err());
        assert!(breaker.try_acquire(later + MINUTE).is_ok());
    }

    #[test]
    fn results_of_calls_from_an_earlier_state_are_ignored() {
        let now = Instant::now();
        let mut breaker = CircuitBreaker::default();
        let mut old: Vec<_> = (0..9).map(|_| breaker.try_acquire(now).unwrap()).collect();
        for _ in 0..5 {
            breaker.failure(old.pop().unwrap(), now);
        }
        assert_eq!(breaker.state(), State::Open);
        breaker.failure(old.pop().unwrap(), now + MINUTE / 2);
        breaker.success(old.pop().unwrap(), now + MINUTE / 2);
        assert_eq!(breaker.state(), State::Open);

        let trial = breaker.try_acquire(now + MINUTE).unwrap();
        let second = breaker.try_acquire(now + MINUTE).unwrap();
        breaker.failure(old.pop().unwrap(), now + MINUTE);
        breaker.cancel(old.pop().unwrap());
        assert_eq!(breaker.state(), State::HalfOpen);
        breaker.success(trial, now + MINUTE);
        breaker.failure(second, now + MINUTE);
        assert!(matches!(breaker.phase, Phase::Closed { failures: 0 }));
    }

    #[test]
    fn zero_limits_are_treated_as_one() {
        let now = Instant::now();
        let config = BreakerConfig {
            failure_threshold: 0,
            half_open_max_calls: 0,
            ..BreakerConfig::default()
        };
        let mut breaker = CircuitBreaker::new(BreakerConfig {
            recovery_timeout: Duration::ZERO,
            ..config
        });
        let permit = breaker.try_acquire(now).unwrap();
        breaker.failure(permit, now);
        assert_eq!(breaker.state(), State::Open);
        let permit = breaker.try_acquire(now).unwrap();
        assert!(breaker.try_acquire(now).is_err());
        breaker.success(permit, now);
        assert_eq!(breaker.state(), State::Closed);
    }
}
