//! [`ServerConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

use crate::limits::{LOGIN_TIMEOUT, MAX_CONCURRENT_OPERATIONS, keep_alive};

rpc_core::config! {
    /// The timeouts and limits of a server's connection.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ServerConfig {
        /// How long a client may take to log in; `None` means no limit. Default 30 s.
        pub handshake_timeout: Option<Duration> = Some(LOGIN_TIMEOUT),
        /// How many refused logins close the connection. Default 5; 0 counts as 1.
        pub max_failed_logins: u32 = 5,
        /// Most requests without an answer; at this number reading stops. Default 100.
        pub max_requests: usize = MAX_CONCURRENT_OPERATIONS,
        /// How often to ping, and how long to wait for any sign of life after a ping. Default 30 s
        /// and 15 s.
        pub keep_alive: KeepAlive = keep_alive(),
        /// Limits on sizes and counts. A client above
        /// [`max_message_rate`](Limits::max_message_rate) is disconnected with code 1008.
        pub limits: Limits = Limits::default(),
    }
}
