//! [`RateLimit`]: how many messages and pings a peer may send, as a token bucket.

use std::time::{Duration, Instant};

use crate::timers::later;

crate::config! {
    /// A token bucket: `burst` messages at once, and one more every `interval`. A server
    /// disconnects a peer that sends more. Pings and pongs count as messages do, since a ping costs its
    /// answer: an `interval` longer than that of the keepalive disconnects peers for their pongs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RateLimit {
        /// How many messages may come at once. Default 5,000; 0 counts as 1.
        pub burst: u32 = 5_000,
        /// How long until one more may come. Default 1 ms.
        pub interval: Duration = Duration::from_millis(1),
    }
}

impl RateLimit {
    /// `burst` messages at once, and one more every `interval`.
    #[must_use]
    pub const fn new(burst: u32, interval: Duration) -> Self {
        Self { burst, interval }
    }
}

/// The state of a [`RateLimit`] on one connection, or of none.
///
/// ```
/// use std::time::{Duration, Instant};
/// use rpc_core::rate::{Bucket, RateLimit};
///
/// let (now, second) = (Instant::now(), Duration::from_secs(1));
/// let mut bucket = Bucket::new(Some(RateLimit::new(1, second)), now);
/// assert!(bucket.admits(now));
/// assert!(!bucket.admits(now));
/// assert!(bucket.admits(now + second));
/// ```
#[derive(Debug)]
pub struct Bucket {
    /// `None` admits everything.
    limit: Option<RateLimit>,
    /// When the bucket will be full again.
    full_at: Instant,
}

impl Bucket {
    /// A full bucket.
    #[must_use]
    pub const fn new(limit: Option<RateLimit>, now: Instant) -> Self {
        Self {
            limit,
            full_at: now,
        }
    }

    /// Whether a message that comes now, of whatever kind, is within the limit; then it is counted.
    #[must_use]
    pub fn admits(&mut self, now: Instant) -> bool {
        self.limit.is_none_or(|limit| self.take(limit, now))
    }

    fn take(&mut self, limit: RateLimit, now: Instant) -> bool {
        let full_at = later(self.full_at.max(now), limit.interval);
        let room = limit.interval.saturating_mul(limit.burst.max(1));
        if full_at.duration_since(now) > room {
            return false;
        }
        self.full_at = full_at;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_gives_its_burst_and_then_one_per_interval() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut bucket = Bucket::new(Some(RateLimit::new(3, second)), start);
        let mut takes = |at| bucket.admits(at);
        assert_eq!([start; 4].map(&mut takes), [true, true, true, false]);
        assert_eq!([start + second; 2].map(&mut takes), [true, false]);
        let rested = start + second * 100;
        assert_eq!([rested; 4].map(&mut takes), [true, true, true, false]);
    }

    #[test]
    fn without_a_limit_everything_is_admitted() {
        let now = Instant::now();
        let mut bucket = Bucket::new(None, now);
        assert!((0..10_000).all(|_| bucket.admits(now)));
    }
}
