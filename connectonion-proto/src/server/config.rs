//! [`ServerConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

use crate::limits::{MAX_CLIENT_MESSAGE, of_server};

rpc_core::config! {
    /// The configuration of a connection at a server.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ServerConfig {
        /// How often a PING is sent, from the upgrade on; `None` is never. A PONG is not required.
        /// Default 30 s.
        pub ping_interval: Option<Duration> = Some(Duration::from_secs(30)),
        /// How long the client may take to be admitted; then it is disconnected with code 1008.
        /// Default `None`: for ever, because a human may be looking for an invite code.
        pub handshake_timeout: Option<Duration> = None,
        /// WebSocket pings, and the silence after which the connection counts as dead; anything
        /// that arrives is a sign of life. A dead connection is dropped without a closing
        /// handshake. Default: every 20 s, and 20 s for the pong, as the known hosts.
        pub keep_alive: KeepAlive = KeepAlive::every(Duration::from_secs(20), Duration::from_secs(20)),
        /// The largest CONNECT kept during onboarding, in bytes: there may be many strangers.
        /// Default 1 MiB.
        pub max_gated_bytes: usize = 1024 * 1024,
        /// The largest frame to send, in bytes; a larger one is refused at once. Default 64 MiB,
        /// the limit of clients. The known Python clients up to 1.2.1 accept
        /// 1 MiB.
        pub max_sent_bytes: usize = MAX_CLIENT_MESSAGE,
        /// Bounds on size and number. A client above
        /// [`max_message_rate`](Limits::max_message_rate) is disconnected with code 1008. Default
        /// [`defaults`](crate::limits::defaults) with 16 MiB for a message.
        pub limits: Limits = of_server(),
    }
}
