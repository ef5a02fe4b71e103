//! [`ServerConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

use crate::limits::{LOGIN_TIMEOUT, MAX_CONCURRENT_OPERATIONS, keep_alive};

rpc_core::config! {
    /// How long and how much a server's connection takes.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ServerConfig {
        /// How long a client may take to log in; `None` is for ever. Default 30 s.
        pub login_timeout: Option<Duration> = Some(LOGIN_TIMEOUT) => with_login_timeout,
        /// Refused logins that close the connection. Default 5; 0 counts as 1.
        pub max_failed_logins: u32 = 5 => with_max_failed_logins,
        /// Requests that the application has not answered yet; at this number nothing more is read.
        /// Default 100.
        pub max_requests: usize = MAX_CONCURRENT_OPERATIONS => with_max_requests,
        /// Pings, and when silence counts as death. Default every 30 s, and 15 s after a ping.
        pub keep_alive: KeepAlive = keep_alive() => with_keep_alive,
        /// Bounds on size and number. A client above
        /// [`max_message_rate`](Limits::max_message_rate) is disconnected with code 1008.
        pub limits: Limits = Limits::default() => with_limits,
    }
}
