//! [`Timers`]: a small table of named deadlines.

use std::fmt;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

/// The timers that a machine has, as a small enum.
///
/// ```
/// use rpc_core::timers::TimerKind;
///
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// enum Timer {
///     Handshake,
///     Ping,
/// }
///
/// impl TimerKind for Timer {
///     const ALL: &'static [Self] = &[Self::Handshake, Self::Ping];
///     fn index(self) -> usize {
///         self as usize
///     }
///     fn name(self) -> &'static str {
///         match self {
///             Self::Handshake => "handshake",
///             Self::Ping => "ping",
///         }
///     }
/// }
/// ```
pub trait TimerKind: Copy + 'static {
    /// Every kind, each at its [`index`](Self::index).
    const ALL: &'static [Self];

    /// The kind's place in [`ALL`](Self::ALL).
    fn index(self) -> usize;

    /// A short name for logs and transcripts.
    fn name(self) -> &'static str;
}

/// When each timer of a machine fires next, if ever.
///
/// A machine has a handful of timers, so everything here looks at all of them; what there may be
/// many of goes into [`PendingCalls`](crate::PendingCalls). Nothing allocates after construction.
pub struct Timers<K> {
    at: Box<[Option<Instant>]>,
    kind: PhantomData<fn() -> K>,
}

impl<K: TimerKind> Timers<K> {
    /// A table with every timer stopped.
    #[must_use]
    pub fn new() -> Self {
        Self {
            at: vec![None; K::ALL.len()].into_boxed_slice(),
            kind: PhantomData,
        }
    }

    /// Lets the timer fire at `at`, whatever it was set to before.
    pub fn set(&mut self, kind: K, at: Instant) {
        self.put(kind, Some(at));
    }

    /// Stops the timer. It need not run.
    pub fn stop(&mut self, kind: K) {
        self.put(kind, None);
    }

    /// Stops every timer.
    pub fn stop_all(&mut self) {
        self.at.fill(None);
    }

    /// When the timer fires; `None` if it is stopped.
    #[must_use]
    pub fn get(&self, kind: K) -> Option<Instant> {
        self.at.get(kind.index()).copied().flatten()
    }

    /// The timer that fires next, and when. Of two at the same time the one with the lower index.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<(Instant, K)> {
        let timers = self.at.iter().zip(K::ALL);
        timers.fold(None, |next, (at, kind)| {
            sooner(next, at.map(|at| (at, *kind)))
        })
    }

    /// The name of the timer that fires next, and when.
    #[must_use]
    pub fn next_timeout(&self) -> Option<(Instant, &'static str)> {
        self.poll_timeout().map(|(at, kind)| (at, kind.name()))
    }

    /// Stops and returns a timer that is due at `now`; call it until `None`. Earliest first.
    pub fn pop_expired(&mut self, now: Instant) -> Option<K> {
        let (_, kind) = self.poll_timeout().filter(|(at, _)| *at <= now)?;
        self.stop(kind);
        Some(kind)
    }

    fn put(&mut self, kind: K, at: Option<Instant>) {
        let place = self.at.get_mut(kind.index());
        debug_assert!(place.is_some(), "timer {} is not in its ALL", kind.name());
        if let Some(place) = place {
            *place = at;
        }
    }
}

impl<K: TimerKind> Default for Timers<K> {
    fn default() -> Self {
        Self::new()
    }
}

/// Prints the running timers by name.
impl<K: TimerKind> fmt::Debug for Timers<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let running = self.at.iter().zip(K::ALL);
        f.debug_map()
            .entries(running.filter_map(|(at, kind)| at.map(|at| (kind.name(), at))))
            .finish()
    }
}

/// The sooner of two deadlines, each with what it is for; `one` if they are at the same time.
/// `None` is never.
#[must_use]
#[inline]
pub fn sooner<W>(one: Option<(Instant, W)>, other: Option<(Instant, W)>) -> Option<(Instant, W)> {
    match (one, other) {
        (Some(one), Some(other)) if other.0 < one.0 => Some(other),
        (None, other) => other,
        (one, _) => one,
    }
}

/// `now + delay`, for delays that a user configures: one beyond the clock's range ends as a year,
/// which is as long as "never" has to be.
#[must_use]
pub fn later(now: Instant, delay: Duration) -> Instant {
    const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);
    now.checked_add(delay)
        .or_else(|| now.checked_add(YEAR))
        .unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Kind {
        Ping,
        Pong,
        Idle,
    }

    impl TimerKind for Kind {
        const ALL: &'static [Self] = &[Self::Ping, Self::Pong, Self::Idle];

        fn index(self) -> usize {
            self as usize
        }

        fn name(self) -> &'static str {
            match self {
                Self::Ping => "ping",
                Self::Pong => "pong",
                Self::Idle => "idle",
            }
        }
    }

    #[test]
    fn the_earliest_timer_is_named() {
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut timers = Timers::new();
        assert_eq!(timers.poll_timeout(), None);
        timers.set(Kind::Idle, now + second);
        timers.set(Kind::Ping, now + second * 2);
        assert_eq!(timers.poll_timeout(), Some((now + second, Kind::Idle)));
        timers.set(Kind::Idle, now + second * 3);
        assert_eq!(timers.poll_timeout(), Some((now + second * 2, Kind::Ping)));
        timers.stop(Kind::Ping);
        assert_eq!(timers.get(Kind::Ping), None);
        assert_eq!(timers.get(Kind::Idle), Some(now + second * 3));
        timers.stop_all();
        assert_eq!(timers.poll_timeout(), None);
    }

    #[test]
    fn timers_of_the_same_instant_fire_in_the_order_of_their_index() {
        let now = Instant::now();
        let mut timers = Timers::new();
        for kind in [Kind::Idle, Kind::Pong, Kind::Ping] {
            timers.set(kind, now);
        }
        let fired: Vec<_> = std::iter::from_fn(|| timers.pop_expired(now)).collect();
        assert_eq!(fired, Kind::ALL);
    }

    #[test]
    fn of_two_deadlines_the_sooner_counts_and_of_equal_ones_the_first() {
        let now = Instant::now();
        let late = now + Duration::from_secs(1);
        let (one, other) = (Some((now, 1)), Some((late, 2)));
        assert_eq!(sooner(one, other), one);
        assert_eq!(sooner(other, one), one);
        assert_eq!(sooner(one, Some((now, 2))), one);
        assert_eq!(sooner(None, other), other);
        assert_eq!(sooner(other, None), other);
    }

    #[test]
    fn an_early_look_fires_nothing() {
        let now = Instant::now();
        let mut timers = Timers::default();
        timers.set(Kind::Ping, now + Duration::from_millis(1));
        assert_eq!(timers.pop_expired(now), None);
        assert!(timers.get(Kind::Ping).is_some());
    }

    #[test]
    fn debug_output_names_the_running_timers() {
        let mut timers = Timers::default();
        timers.set(Kind::Pong, Instant::now());
        let text = format!("{timers:?}");
        assert!(text.contains("pong") && !text.contains("ping"), "{text}");
    }
}
