//! [`ServerConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

use crate::limits::{defaults, keep_alive};

rpc_core::config! {
    /// The server's configuration of a connection.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ServerConfig {
        /// How long the registration of a client may take; then it is disconnected with code 1008.
        /// Default `None`: forever, as with the known server.
        pub handshake_timeout: Option<Duration> = None,
        /// Pings, and when silence means that the client is dead. Default: a ping every 30 s, and 10 s
        /// for its pong.
        pub keep_alive: KeepAlive = keep_alive(),
        /// Whether only a pong is a sign of life, as specified, instead of every frame of a
        /// registered client. Default `true`.
        pub only_pongs: bool = true,
        /// Limits on size and number. A client above [`max_message_rate`](Limits::max_message_rate)
        /// is disconnected with code 1008. Default [`limits`](crate::limits::defaults).
        pub limits: Limits = defaults(),
    }
}
