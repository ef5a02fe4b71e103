//! [`ServerConfig`].

use std::time::Duration;

use rpc_core::Limits;
use rpc_core::keepalive::KeepAlive;

use crate::auth::Auth;
use crate::limits::{AUTH_TIMEOUT, HELLO_VERSION, MAX_REQUESTS, PING_INTERVAL, PONG_TIMEOUT};

rpc_core::config! {
    /// How a server treats a connection.
    #[derive(Clone, Debug, PartialEq)]
    pub struct ServerConfig {
        /// Whether a token has to come first, and which. Default none.
        pub auth: Auth = Auth::open() => with_auth(Auth),
        /// How long a client may take to send its token; `None` is for ever. Default 10 s.
        pub auth_timeout: Option<Duration> = Some(AUTH_TIMEOUT) => with_auth_timeout,
        /// The `version` of the hello frame. Default [`HELLO_VERSION`].
        pub version: String = HELLO_VERSION.to_owned() => with_version(impl Into<String>),
        /// Whether [extensions](crate::frame::Method::is_extension) reach the application. The hello
        /// frame names them then. Default `false`: they are answered with `unknown method`.
        pub extensions: bool = false => with_extensions,
        /// Requests that have not ended yet; at this number nothing more is read, WebSocket pings and a
        /// Close included, so keep it above what an honest client has open. Default 1,024; 0 counts as 1.
        pub max_requests: usize = MAX_REQUESTS => with_max_requests,
        /// Whether a request waits until the one before has ended, as with the known gateway; its
        /// answers then come in the order of the requests. Default `false`: side by side.
        pub in_order: bool = false => with_in_order,
        /// Whether a numeric id comes back as the number that it was. Default `false`: as a string, as
        /// with the known gateway.
        pub echo_numbers: bool = false => with_echo_numbers,
        /// Pings, and when silence counts as death. Default every 30 s, and 30 s after a ping.
        pub keep_alive: KeepAlive = KeepAlive::default()
            .with_interval(Some(PING_INTERVAL))
            .with_pong_timeout(PONG_TIMEOUT) => with_keep_alive,
        /// Bounds on size and number. A client above
        /// [`max_message_rate`](Limits::max_message_rate) is disconnected with code 1008.
        pub limits: Limits = Limits::default() => with_limits,
    }
}

impl ServerConfig {
    /// The defaults, with this choice about tokens.
    #[must_use]
    pub fn new(auth: Auth) -> Self {
        Self::default().with_auth(auth)
    }
}
