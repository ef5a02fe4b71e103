//! [`ServerConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

use crate::frame::Method;
use crate::limits::{AUTH_TIMEOUT, HELLO_VERSION, MAX_REQUESTS, PING_INTERVAL, PONG_TIMEOUT};

rpc_core::config! {
    /// The configuration of a server's connection.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ServerConfig {
        /// How long a client may take to send its token; `None` means no limit. Default 10 s.
        pub handshake_timeout: Option<Duration> = Some(AUTH_TIMEOUT),
        /// The `version` of the hello frame. Default [`HELLO_VERSION`].
        pub version: String = HELLO_VERSION.to_owned(),
        /// The [extensions](Method::EXTENSIONS) that reach the application, which the hello
        /// frame lists; a server takes them from its backend. Default none: the answer is `unknown
        /// method`.
        pub extensions: Vec<Method> = Vec::new(),
        /// Whether methods that are not a [`Method`] reach the application, as
        /// [`Call::Unknown`](crate::frame::Call::Unknown); a server passes them to its backend.
        /// Default `false`: the answer is `unknown method`.
        pub other_methods: bool = false,
        /// Most open requests; at this number reading stops, even of WebSocket pings and a Close,
        /// so keep it above the needs of an honest client. Default 1,024; 0 counts as 1.
        pub max_requests: usize = MAX_REQUESTS,
        /// Whether a request waits until the previous one has ended, as with the known gateway;
        /// answers then come in the order of the requests. Default `false`: concurrently.
        pub in_order: bool = false,
        /// Whether to return a numeric id as a number. Default `false`: as a string, as with the
        /// known gateway.
        pub echo_numbers: bool = false,
        /// How often to ping, and how long to wait for any sign of life after a ping. Default 30 s
        /// and 30 s.
        pub keep_alive: KeepAlive = KeepAlive::every(PING_INTERVAL, PONG_TIMEOUT),
        /// Limits on sizes and counts. A client above
        /// [`max_message_rate`](Limits::max_message_rate) is disconnected with code 1008.
        pub limits: Limits = Limits::default(),
    }
}
