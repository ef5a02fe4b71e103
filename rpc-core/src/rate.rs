//! [`RateLimit`]: how many messages a peer may send, as a token bucket.

use std::time::{Duration, Instant};

use crate::timers::later;

/// A token bucket: `burst` messages at once, and one more every `interval`. A server
/// disconnects a peer that sends more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimit {
    /// How many messages may come at once. Default 5,000; 0 counts as 1.
    pub burst: u32,
    /// How long until one more may come. Default 1 ms.
    pub interval: Duration,
}

impl Default for RateLimit {
    fn default() -> Self {
        Self {
            burst: 5_000,
            interval: Duration::from_millis(1),
        }
    }
}

impl RateLimit {
    /// `burst` messages at once, and one more every `interval`.
    #[must_use]
    pub const fn new(burst: u32, interval: Duration) -> Self {
        Self { burst, interval }
    }
}

/// The state of a [`RateLimit`] on one connection.
///
/// ```
/// use std::time::{Duration, Instant};
/// use rpc_core::rate::{Bucket, RateLimit};
///
/// let now = Instant::now();
/// let mut bucket = Bucket::new(RateLimit::new(1, Duration::from_secs(1)), now);
/// assert!(bucket.take(now));
/// assert!(!bucket.take(now));
/// assert!(bucket.take(now + Duration::from_secs(1)));
/// ```
#[derive(Debug)]
pub struct Bucket {
    limit: RateLimit,
    /// When the bucket will be full again.
    full_at: Instant,
}

impl Bucket {
    /// A full bucket.
    #[must_use]
    pub const fn new(limit: RateLimit, now: Instant) -> Self {
        Self {
            limit,
            full_at: now,
        }
    }

    /// Takes one token; `false` if there is none.
    pub fn take(&mut self, now: Instant) -> bool {
        let full_at = later(self.full_at.max(now), self.limit.interval);
        let room = self.limit.interval.saturating_mul(self.limit.burst.max(1));
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
        let mut bucket = Bucket::new(RateLimit::new(3, second), start);
        assert_eq!(
            [(); 4].map(|()| bucket.take(start)),
            [true, true, true, false]
        );
        assert_eq!([(); 2].map(|()| bucket.take(start + second)), [true, false]);
        let rested = start + second * 100;
        assert_eq!(
            [(); 4].map(|()| bucket.take(rested)),
            [true, true, true, false]
        );
    }
}
