//! [`ServerConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

use crate::limits::{defaults, keep_alive};

/// How a server treats a connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerConfig {
    pub(crate) registration_timeout: Option<Duration>,
    /// Pings, and when silence counts as death; only a pong counts as life. Default
    /// [`keep_alive`](crate::limits::keep_alive): a ping every 30 s, and 10 s for its pong.
    pub keep_alive: KeepAlive,
    /// Bounds on size and number. A client above
    /// [`max_message_rate`](Limits::max_message_rate) is disconnected with code 1008. Default
    /// [`limits`](crate::limits::defaults).
    pub limits: Limits,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            registration_timeout: None,
            keep_alive: keep_alive(),
            limits: defaults(),
        }
    }
}

impl ServerConfig {
    /// How long it may take until the client is registered; then it is disconnected with code 1008.
    /// Default `None`: for ever, as with the known server.
    #[must_use]
    pub const fn with_registration_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.registration_timeout = timeout;
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
