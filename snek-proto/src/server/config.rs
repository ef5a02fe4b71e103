//! [`ServerConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

use crate::limits::{LOGIN_TIMEOUT, MAX_CONCURRENT_OPERATIONS, keep_alive};

/// How long and how much a server's connection takes.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerConfig {
    pub(crate) login_timeout: Option<Duration>,
    pub(crate) max_failed_logins: u32,
    pub(crate) max_requests: usize,
    /// Pings, and when silence counts as death. Default every 30 s, and 15 s after a ping.
    pub keep_alive: KeepAlive,
    /// Bounds on size and number. A client above
    /// [`max_message_rate`](Limits::max_message_rate) is disconnected with code 1008.
    pub limits: Limits,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            login_timeout: Some(LOGIN_TIMEOUT),
            max_failed_logins: 5,
            max_requests: MAX_CONCURRENT_OPERATIONS,
            keep_alive: keep_alive(),
            limits: Limits::default(),
        }
    }
}

impl ServerConfig {
    /// How long a client may take to log in; `None` is for ever. Default 30 s.
    #[must_use]
    pub const fn with_login_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.login_timeout = timeout;
        self
    }

    /// Refused logins that close the connection. Default 5; 0 counts as 1.
    #[must_use]
    pub const fn with_max_failed_logins(mut self, logins: u32) -> Self {
        self.max_failed_logins = logins;
        self
    }

    /// Requests that the application has not answered yet; at this number nothing more is read.
    /// Default 100.
    #[must_use]
    pub const fn with_max_requests(mut self, requests: usize) -> Self {
        self.max_requests = requests;
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
