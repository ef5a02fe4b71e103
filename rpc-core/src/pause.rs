//! [`ReadPause`]: no deadline for an answer passes while the answer may have come unread.

use std::time::{Duration, Instant};

use crate::timers::later;

/// How long is read after a long pause before deadlines count again.
const CATCH_UP: Duration = Duration::from_secs(1);

/// When deadlines for what the peer owes are suspended, for use inside a machine.
///
/// A machine whose application takes no events [reads nothing](crate::Machine::wants_input), so what
/// it waits for may have come and lie in the line. Its deadlines are suspended meanwhile, and for as
/// long as the pause took, at most a second, once it reads again: by then what has come is read.
///
/// ```
/// use std::time::{Duration, Instant};
/// use rpc_core::pause::ReadPause;
///
/// let (start, second) = (Instant::now(), Duration::from_secs(1));
/// let mut pause = ReadPause::default();
/// let deadline = start + 30 * second;
/// assert_eq!(pause.suspend(deadline, true), Some(deadline));
/// pause.note(false, start);
/// assert_eq!(pause.suspend(deadline, false), None);
/// // An hour later the application takes an event.
/// let back = start + 3600 * second;
/// assert!(!pause.is_over(true, back));
/// assert_eq!(pause.suspend(deadline, true), Some(back + second));
/// assert!(pause.is_over(true, back + second));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadPause {
    /// Since when nothing is read.
    since: Option<Instant>,
    /// Until then what has come meanwhile is being read.
    catching_up: Option<Instant>,
}

impl ReadPause {
    /// Notes whether the machine reads. Call it before and after each message.
    pub fn note(&mut self, reads: bool, now: Instant) {
        if !reads {
            self.since.get_or_insert(now);
        } else if let Some(since) = self.since.take() {
            let pause = now.saturating_duration_since(since);
            self.catching_up = Some(later(now, pause.min(CATCH_UP)));
        }
    }

    /// Notes it too, and says whether deadlines count: what has come has been read, so that what is
    /// missing is late. Call it before each deadline that is acted on.
    #[must_use]
    pub fn is_over(&mut self, reads: bool, now: Instant) -> bool {
        self.note(reads, now);
        self.since.is_none() && self.catching_up.is_none_or(|until| until <= now)
    }

    /// When a machine that reads, or does not, has to look at this deadline; `None` while it does not.
    #[must_use]
    pub fn suspend(&self, deadline: Instant, reads: bool) -> Option<Instant> {
        let until = self.catching_up.unwrap_or(deadline);
        reads.then(|| deadline.max(until))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_pause_is_caught_up_in_its_own_time() {
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
    fn nothing_is_suspended_while_everything_is_read() {
        let now = Instant::now();
        let mut pause = ReadPause::default();
        assert!(pause.is_over(true, now));
        assert_eq!(pause.suspend(now, true), Some(now));
    }
}
