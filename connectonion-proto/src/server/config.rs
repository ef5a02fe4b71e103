//! [`ServerConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

use crate::limits::{MAX_CLIENT_MESSAGE, PING_INTERVAL, server_limits};

/// How often the known hosts send a WebSocket ping, and how long they wait for its pong.
const SOCKET_PING: Duration = Duration::from_secs(20);

/// How a server treats a connection.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// How often a PING is sent, from the opening of the socket on; `None` is never. Nobody has to
    /// answer. Default 30 s.
    pub ping_interval: Option<Duration>,
    /// How long it may take until the client is let in; then it is disconnected with code 1008.
    /// Default `None`: for ever, because a human may be looking for an invite code.
    pub connect_timeout: Option<Duration>,
    /// WebSocket pings, and when silence counts as death; anything that arrives counts as life. A
    /// dead client is dropped without a closing handshake. Default: every 20 s, and 20 s for the
    /// pong, as the known hosts.
    pub keep_alive: KeepAlive,
    /// Largest CONNECT that waits at the gate, in bytes: strangers are many. Default 1 MiB.
    pub max_gated_bytes: usize,
    /// Largest frame that is sent, in bytes; a larger one is refused at once. Default 64 MiB: what
    /// clients take. The known Python clients up to 1.2.1 take
    /// [1 MiB](crate::limits::OLD_CLIENT_MESSAGE).
    pub max_sent_bytes: usize,
    /// Bounds on size and number. A client above
    /// [`max_message_rate`](Limits::max_message_rate) is disconnected with code 1008. Default
    /// [`server_limits`].
    pub limits: Limits,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            ping_interval: Some(PING_INTERVAL),
            connect_timeout: None,
            keep_alive: KeepAlive::default()
                .with_interval(Some(SOCKET_PING))
                .with_pong_timeout(SOCKET_PING),
            max_gated_bytes: 1024 * 1024,
            max_sent_bytes: MAX_CLIENT_MESSAGE,
            limits: server_limits(),
        }
    }
}

impl ServerConfig {
    /// Sets [`ping_interval`](Self::ping_interval).
    #[must_use]
    pub const fn with_ping_interval(mut self, interval: Option<Duration>) -> Self {
        self.ping_interval = interval;
        self
    }

    /// Sets [`connect_timeout`](Self::connect_timeout).
    #[must_use]
    pub const fn with_connect_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets [`keep_alive`](Self::keep_alive).
    #[must_use]
    pub const fn with_keep_alive(mut self, keep_alive: KeepAlive) -> Self {
        self.keep_alive = keep_alive;
        self
    }

    /// Sets [`max_gated_bytes`](Self::max_gated_bytes).
    #[must_use]
    pub const fn with_max_gated_bytes(mut self, bytes: usize) -> Self {
        self.max_gated_bytes = bytes;
        self
    }

    /// Sets [`max_sent_bytes`](Self::max_sent_bytes).
    #[must_use]
    pub const fn with_max_sent_bytes(mut self, bytes: usize) -> Self {
        self.max_sent_bytes = bytes;
        self
    }

    /// Sets [`limits`](Self::limits).
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }
}
