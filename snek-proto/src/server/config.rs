//! [`ServerConfig`] and [`RateLimit`].

use std::time::{Duration, Instant};

use rpc_core::Limits;
use rpc_core::timers::later;

use crate::keepalive::KeepAlive;
use crate::limits::{LOGIN_TIMEOUT, MAX_CONCURRENT_OPERATIONS};

/// How long and how much a server's connection takes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// How long a client may take to log in; `None` is for ever. Default 30 s.
    pub login_timeout: Option<Duration>,
    /// Refused logins that close the connection. Default 5; 0 counts as 1.
    pub max_failed_logins: u32,
    /// Requests that the application has not answered yet; at this number nothing more is read.
    /// Default 100.
    pub max_requests: usize,
    /// How many messages the client may send; `None` is any number.
    pub rate_limit: Option<RateLimit>,
    /// Pings, and when silence counts as death.
    pub keep_alive: KeepAlive,
    /// Bounds on size and number.
    pub limits: Limits,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            login_timeout: Some(LOGIN_TIMEOUT),
            max_failed_logins: 5,
            max_requests: MAX_CONCURRENT_OPERATIONS,
            rate_limit: Some(RateLimit::default()),
            keep_alive: KeepAlive::default(),
            limits: Limits::default(),
        }
    }
}

impl ServerConfig {
    /// Sets [`login_timeout`](Self::login_timeout).
    #[must_use]
    pub const fn with_login_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.login_timeout = timeout;
        self
    }

    /// Sets [`max_failed_logins`](Self::max_failed_logins).
    #[must_use]
    pub const fn with_max_failed_logins(mut self, logins: u32) -> Self {
        self.max_failed_logins = logins;
        self
    }

    /// Sets [`max_requests`](Self::max_requests).
    #[must_use]
    pub const fn with_max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests;
        self
    }

    /// Sets [`rate_limit`](Self::rate_limit).
    #[must_use]
    pub const fn with_rate_limit(mut self, limit: Option<RateLimit>) -> Self {
        self.rate_limit = limit;
        self
    }

    /// Sets [`keep_alive`](Self::keep_alive).
    #[must_use]
    pub const fn with_keep_alive(mut self, keep_alive: KeepAlive) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// Sets [`limits`](Self::limits).
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}

/// A token bucket: `burst` messages at once, and one more every `interval`. A client that sends
/// more is disconnected with code 1008.
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

/// The state of a [`RateLimit`].
#[derive(Debug)]
pub(super) struct Bucket {
    limit: RateLimit,
    /// When the bucket will be full again.
    full_at: Instant,
}

impl Bucket {
    pub(super) const fn new(limit: RateLimit, now: Instant) -> Self {
        Self {
            limit,
            full_at: now,
        }
    }

    /// Takes one token; `false` if there is none.
    pub(super) fn take(&mut self, now: Instant) -> bool {
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
