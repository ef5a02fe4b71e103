//! [`ReadPause`]: suspends deadlines for replies that may have arrived unread.

use std::time::Duration;

use crate::Instant;
use crate::timers::later;

/// The longest time for reading after a pause before deadlines count again.
const CATCH_UP: Duration = Duration::from_secs(1);

/// Suspends the deadlines for replies of the peer.
///
/// A machine whose application takes no events [reads nothing](crate::Machine::wants_input), so the
/// replies it waits for may have arrived unread. Its deadlines are suspended meanwhile, and after
/// the pause for as long as it took, at most a second: until then all that has arrived is read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ReadPause {
    /// Input is read. `last` is when the machine got the last input.
    Reading { last: Option<Instant> },
    /// Nothing is read.
    Paused { since: Instant },
    /// Input that arrived during a pause is being read.
    CatchingUp { until: Instant },
}

impl Default for ReadPause {
    fn default() -> Self {
        Self::Reading { last: None }
    }
}

impl ReadPause {
    /// Starts a pause: the last input has filled the machine's room.
    #[inline]
    pub(crate) fn begin(&mut self) {
        let since = match *self {
            Self::Reading { last } => last,
            Self::Paused { since } => Some(since),
            // At the earliest.
            Self::CatchingUp { until } => until.checked_sub(CATCH_UP),
        };
        if let Some(since) = since {
            *self = Self::Paused { since };
        }
    }

    /// Notes whether the machine reads now.
    #[inline]
    pub(crate) fn note(&mut self, reads: bool, now: Instant) {
        *self = match *self {
            Self::Paused { since } if reads => {
                let pause = now.saturating_duration_since(since);
                let until = later(now, pause.min(CATCH_UP));
                Self::CatchingUp { until }
            }
            Self::Paused { since } => Self::Paused { since },
            _ if !reads => Self::Paused { since: now },
            Self::CatchingUp { until } if until > now => Self::CatchingUp { until },
            _ => Self::Reading { last: Some(now) },
        };
    }

    /// Notes it too, and returns whether deadlines count: all that has arrived was read, so a
    /// missing reply is late.
    pub(crate) fn is_over(&mut self, reads: bool, now: Instant) -> bool {
        let until = self.catching_up(reads, now);
        until.map_or(matches!(self, Self::Reading { .. }), |until| until <= now)
    }

    /// Notes it too, and returns until when input that arrived during the pause is read.
    pub(crate) fn catching_up(&mut self, reads: bool, now: Instant) -> Option<Instant> {
        self.note(reads, now);
        self.until()
    }

    const fn until(&self) -> Option<Instant> {
        match *self {
            Self::CatchingUp { until } => Some(until),
            Self::Reading { .. } | Self::Paused { .. } => None,
        }
    }

    /// Returns when to look at this deadline; `None` while it is suspended.
    pub(crate) fn suspend(&self, deadline: Instant, reads: bool) -> Option<Instant> {
        reads.then(|| deadline.max(self.until().unwrap_or(deadline)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_short_pause_is_caught_up_in_equal_time() {
        let start = Instant::now();
        let ms = Duration::from_millis;
        let mut pause = ReadPause::default();
        pause.note(false, start);
        pause.note(false, start + ms(5));
        assert!(!pause.is_over(true, start + ms(10)));
        assert!(!pause.is_over(true, start + ms(19)));
        assert!(pause.is_over(true, start + ms(20)));
    }

    #[test]
    fn a_long_pause_is_caught_up_within_a_second() {
        let start = Instant::now();
        let deadline = start + 30 * SECOND;
        let mut pause = ReadPause::default();
        pause.note(true, start);
        assert_eq!(pause.suspend(deadline, true), Some(deadline));
        pause.begin();
        assert_eq!(pause.suspend(deadline, false), None);
        // An hour later the application takes an event.
        let back = start + 3600 * SECOND;
        assert!(!pause.is_over(true, back));
        assert_eq!(pause.suspend(deadline, true), Some(back + SECOND));
        assert!(pause.is_over(true, back + SECOND));
    }

    #[test]
    fn deadlines_run_while_reading_is_active() {
        let now = Instant::now();
        let mut pause = ReadPause::default();
        assert!(pause.is_over(true, now));
        assert_eq!(pause.suspend(now, true), Some(now));
    }
}
