//! [`ServerOptions`].

use std::time::Duration;

use rpc_core::net::DriverConfig;
use rpc_core::net::server::{Guards, HttpConfig, OriginPolicy};

use crate::limits::SHUTDOWN_TIMEOUT;
use crate::server::ServerConfig;

/// What is served beside and before the upgrade by default: no web pages but those of this machine
/// may connect, and on a loopback address no foreign `Host` is served. Allow more with
/// [`Guards::with_allowed_origin`].
#[must_use]
pub fn http_config() -> HttpConfig {
    let guards = Guards::default().with_origins(OriginPolicy::Loopback(Vec::new()));
    HttpConfig::default().with_guards(guards)
}

rpc_core::config! {
    /// How a [`Server`](super::Server) behaves.
    ///
    /// ```
    /// use std::time::Duration;
    /// use exoclaw_proto::auth::Auth;
    /// use exoclaw_proto::net::ServerOptions;
    /// use exoclaw_proto::server::ServerConfig;
    ///
    /// let options = ServerOptions::default()
    ///     .with_connection(ServerConfig::new(Auth::token("secret")?))
    ///     .with_shutdown_timeout(Duration::from_secs(30));
    /// # Ok::<(), exoclaw_proto::auth::AuthError>(())
    /// ```
    #[derive(Debug)]
    pub struct ServerOptions {
        /// Token, limits and times of each connection.
        pub connection: ServerConfig = ServerConfig::default() => with_connection(ServerConfig),
        /// Limits, guards and TLS before the upgrade, and the HTTP service beside it.
        /// [`WS_PATH`](crate::limits::WS_PATH) upgrades in any case. Default [`http_config`]; start from it.
        pub http: HttpConfig = http_config() => with_http(HttpConfig),
        /// Transport treatment and observer of each connection. Its write timeout ends a connection
        /// whose client takes nothing.
        pub driver: DriverConfig = DriverConfig::default() => with_driver(DriverConfig),
        /// How long a connection's requests may go on when the server ends. Default 5 s.
        pub shutdown_timeout: Duration = SHUTDOWN_TIMEOUT => with_shutdown_timeout,
    }
}
