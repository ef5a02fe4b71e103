//! [`ServerConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

use crate::limits::{MAX_CLIENT_MESSAGE, PING_INTERVAL, server_limits};

/// How often the known hosts send a WebSocket ping, and how long they wait for its pong.
const SOCKET_PING: Duration = Duration::from_secs(20);

rpc_core::config! {
    /// How a server treats a connection.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ServerConfig {
        /// How often a PING is sent, from the opening of the socket on; `None` is never. Nobody has to
        /// answer. Default 30 s.
        pub ping_interval: Option<Duration> = Some(PING_INTERVAL) => with_ping_interval,
        /// How long it may take until the client is let in; then it is disconnected with code 1008.
        /// Default `None`: for ever, because a human may be looking for an invite code.
        pub connect_timeout: Option<Duration> = None => with_connect_timeout,
        /// WebSocket pings, and when silence counts as death; anything that arrives counts as life. A
        /// dead client is dropped without a closing handshake. Default: every 20 s, and 20 s for the
        /// pong, as the known hosts.
        pub keep_alive: KeepAlive = KeepAlive::default()
            .with_interval(Some(SOCKET_PING))
            .with_pong_timeout(SOCKET_PING) => with_keep_alive,
        /// Largest CONNECT that waits at the gate, in bytes: strangers are many. Default 1 MiB.
        pub max_gated_bytes: usize = 1024 * 1024 => with_max_gated_bytes,
        /// Largest frame that is sent, in bytes; a larger one is refused at once. Default 64 MiB: what
        /// clients take. The known Python clients up to 1.2.1 take
        /// [1 MiB](crate::limits::OLD_CLIENT_MESSAGE).
        pub max_sent_bytes: usize = MAX_CLIENT_MESSAGE => with_max_sent_bytes,
        /// Bounds on size and number. A client above
        /// [`max_message_rate`](Limits::max_message_rate) is disconnected with code 1008. Default
        /// [`server_limits`].
        pub limits: Limits = server_limits() => with_limits,
    }
}
