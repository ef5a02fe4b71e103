//! [`RegistryConfig`]: how long, how many.

use std::time::Duration;

use super::run::RunLimits;
use crate::limits::{GRACE, IDLE_TIMEOUT, STUCK_TIMEOUT};
use crate::replay::LogLimits;

/// How long sessions live, and bounds on what a registry holds.
///
/// ```
/// use std::time::Duration;
/// use connectonion_proto::session::RegistryConfig;
///
/// let config = RegistryConfig::default().with_grace(Duration::from_secs(60));
/// assert_eq!(config.idle_timeout, Duration::from_secs(600));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistryConfig {
    /// How long a session lives without a run while sockets are attached that say nothing, not even
    /// PONG. Default 10 min.
    pub idle_timeout: Duration,
    /// How long a session lives without a run and without a socket. Default 10 min.
    pub grace: Duration,
    /// How long a run may go without an event of the agent and without a word of a client. Default
    /// 1 h.
    pub stuck_timeout: Duration,
    /// Most sessions. When there are so many, a new one replaces the one that has been without a
    /// socket longest. Default 16,384.
    pub max_sessions: usize,
    /// Most runs at once. Default 4,096.
    pub max_running: usize,
    /// Most sockets of one session. Default 64.
    pub max_sockets: usize,
    /// Bounds on the inputs and questions of one run.
    pub run: RunLimits,
    /// Bounds on the events of one session that are held.
    pub log: LogLimits,
    /// Bytes of the events of all sessions together. Beyond it the session that adds an event drops
    /// its older ones. Default 512 MiB.
    pub max_log_bytes: usize,
}

impl Default for RegistryConfig {
    fn default() -> Self {
        Self {
            idle_timeout: IDLE_TIMEOUT,
            grace: GRACE,
            stuck_timeout: STUCK_TIMEOUT,
            max_sessions: 16_384,
            max_running: 4_096,
            max_sockets: 64,
            run: RunLimits::default(),
            log: LogLimits::default(),
            max_log_bytes: 512 * 1024 * 1024,
        }
    }
}

impl RegistryConfig {
    /// Sets [`idle_timeout`](Self::idle_timeout).
    #[must_use]
    pub const fn with_idle_timeout(mut self, timeout: Duration) -> Self {
        self.idle_timeout = timeout;
        self
    }

    /// Sets [`grace`](Self::grace).
    #[must_use]
    pub const fn with_grace(mut self, grace: Duration) -> Self {
        self.grace = grace;
        self
    }

    /// Sets [`stuck_timeout`](Self::stuck_timeout).
    #[must_use]
    pub const fn with_stuck_timeout(mut self, timeout: Duration) -> Self {
        self.stuck_timeout = timeout;
        self
    }

    /// Sets [`max_sessions`](Self::max_sessions).
    #[must_use]
    pub const fn with_max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// Sets [`max_running`](Self::max_running).
    #[must_use]
    pub const fn with_max_running(mut self, runs: usize) -> Self {
        self.max_running = runs;
        self
    }

    /// Sets [`max_sockets`](Self::max_sockets).
    #[must_use]
    pub const fn with_max_sockets(mut self, sockets: usize) -> Self {
        self.max_sockets = sockets;
        self
    }

    /// Sets [`run`](Self::run).
    #[must_use]
    pub const fn with_run(mut self, limits: RunLimits) -> Self {
        self.run = limits;
        self
    }

    /// Sets [`log`](Self::log).
    #[must_use]
    pub const fn with_log(mut self, limits: LogLimits) -> Self {
        self.log = limits;
        self
    }

    /// Sets [`max_log_bytes`](Self::max_log_bytes).
    #[must_use]
    pub const fn with_max_log_bytes(mut self, bytes: usize) -> Self {
        self.max_log_bytes = bytes;
        self
    }
}
