//! [`RateLimit`]: how many messages and pings a peer may send, as a token bucket.

use std::time::Duration;

use crate::Instant;
use crate::timers::later;

crate::config! {
    /// A token bucket: `burst` messages at once, and one more every `interval`. A server
    /// disconnects a peer that sends more. Pings and pongs count as messages, since a ping costs
    /// its answer; of a message in parts of less than 1 KiB, each part behind the first 32 does. An
    /// `interval` longer than that of the keepalive disconnects peers because of their pongs.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct RateLimit {
        /// How many messages may arrive at once. Default 5,000; 0 counts as 1.
        pub burst: u32 = 5_000,
        /// How long until one more may arrive. Default 1 ms.
        pub interval: Duration = Duration::from_millis(1),
    }
}

impl RateLimit {
    /// Allows `burst` messages at once, and one more every `interval`.
    #[must_use]
    pub const fn new(burst: u32, interval: Duration) -> Self {
        Self { burst, interval }
    }
}

/// How much of a [`RateLimit`] one connection has used.
#[derive(Debug, Default)]
pub(crate) struct Bucket {
    /// When the bucket will be full again; `None` is full from the start.
    full_at: Option<Instant>,
}

impl Bucket {
    /// Returns whether a message of any kind that arrives now is within the limit, and counts it
    /// then. Without a limit every message is.
    pub(crate) fn admits(&mut self, limit: Option<RateLimit>, now: Instant) -> bool {
        let Some(limit) = limit else { return true };
        let full_at = self.full_at.map_or(now, |at| at.max(now));
        let full_at = later(full_at, limit.interval);
        let room = limit.interval.saturating_mul(limit.burst.max(1));
        if full_at.duration_since(now) > room {
            return false;
        }
        self.full_at = Some(full_at);
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
        let limit = Some(RateLimit::new(3, second));
        let mut bucket = Bucket::default();
        let mut takes = |at| bucket.admits(limit, at);
        assert_eq!([start; 4].map(&mut takes), [true, true, true, false]);
        assert_eq!([start + second; 2].map(&mut takes), [true, false]);
        let rested = start + second * 100;
        assert_eq!([rested; 4].map(&mut takes), [true, true, true, false]);
    }

    #[test]
    fn without_a_limit_everything_is_admitted() {
        let now = Instant::now();
        let mut bucket = Bucket::default();
        assert!((0..10_000).all(|_| bucket.admits(None, now)));
    }
}
