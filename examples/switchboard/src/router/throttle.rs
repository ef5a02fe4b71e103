//! [`Throttle`]: a rate limit for desktop notifications.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Most notifications within a minute.
const PER_MINUTE: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);
/// The least time between two notifications.
const PAUSE: Duration = Duration::from_secs(1);
/// Most waiting notifications.
const WAITING: usize = 20;

/// A rate limit: at most ten notifications in a minute and one in a second may pass, so that no
/// client can flood a desktop. Some may wait; beyond that the oldest is dropped. Reads no clock.
#[derive(Clone, Debug)]
pub struct Throttle<T> {
    waiting: VecDeque<T>,
    /// When the last ones passed, at most [`PER_MINUTE`].
    passed: VecDeque<Instant>,
}

impl<T> Default for Throttle<T> {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            passed: VecDeque::new(),
        }
    }
}

impl<T> Throttle<T> {
    /// Adds a notification. Returns the one that is dropped for it, if there is no room.
    pub fn push(&mut self, notification: T) -> Option<T> {
        let full = self.waiting.len() >= WAITING;
        let dropped = if full { self.waiting.pop_front() } else { None };
        self.waiting.push_back(notification);
        dropped
    }

    /// Returns how long to wait until one may pass; zero if one may pass now, `None` if none waits.
    #[must_use]
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        self.waiting.front()?;
        let rest =
            |since: &Instant, pause: Duration| pause.saturating_sub(now.duration_since(*since));
        let pause = self.passed.back().map(|last| rest(last, PAUSE));
        let full = self.passed.len() >= PER_MINUTE;
        let minute = self.passed.front().filter(|_| full);
        let minute = minute.map(|first| rest(first, MINUTE));
        Some(pause.max(minute).unwrap_or_default())
    }

    /// Returns the next notification, if one may pass now.
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        if !self.wait(now)?.is_zero() {
            return None;
        }
        if self.passed.len() >= PER_MINUTE {
            self.passed.pop_front();
        }
        self.passed.push_back(now);
        self.waiting.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At which seconds the notifications pass, and which.
    fn passes(throttle: &mut Throttle<u32>, start: Instant) -> Vec<(u64, u32)> {
        let mut passed = Vec::new();
        let mut now = start;
        while let Some(wait) = throttle.wait(now) {
            now += wait;
            let next = throttle.pop(now).unwrap();
            passed.push(((now - start).as_secs(), next));
        }
        passed
    }

    #[test]
    fn one_passes_at_once_and_the_next_after_a_second() {
        let (mut throttle, now) = (Throttle::default(), Instant::now());
        assert_eq!(throttle.wait(now), None);
        throttle.push(1);
        throttle.push(2);
        assert_eq!(throttle.pop(now), Some(1));
        assert_eq!(throttle.pop(now), None);
        assert_eq!(passes(&mut throttle, now), [(1, 2)]);
    }

    #[test]
    fn ten_pass_in_a_minute() {
        let mut throttle = Throttle::default();
        for number in 0..12 {
            assert_eq!(throttle.push(number), None);
        }
        let expected = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 60, 61];
        let seconds: Vec<_> = passes(&mut throttle, Instant::now());
        let seconds: Vec<_> = seconds.into_iter().map(|(second, _)| second).collect();
        assert_eq!(seconds, expected);
    }

    #[test]
    fn the_oldest_is_dropped_beyond_twenty() {
        let mut throttle = Throttle::default();
        let dropped: Vec<_> = (0..23).filter_map(|number| throttle.push(number)).collect();
        assert_eq!(dropped, [0, 1, 2]);
        assert_eq!(passes(&mut throttle, Instant::now()).len(), 20);
    }
}
