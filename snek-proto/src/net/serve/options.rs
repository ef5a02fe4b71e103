//! [`ServerOptions`], and what is served before the upgrade.

use std::time::Duration;

use rpc_core::net::DriverConfig;
use rpc_core::net::server::HttpConfig;

use crate::limits::SHUTDOWN_TIMEOUT;
use crate::server::ServerConfig;

/// What is served before the upgrade by default: every path upgrades, no web pages may connect, and on
/// a loopback address no foreign `Host` is served. Allow more with
/// [`Guards::with_allowed_origin`](rpc_core::net::server::Guards::with_allowed_origin).
#[must_use]
pub fn http_config() -> HttpConfig {
    HttpConfig::default()
}

rpc_core::config! {
    /// How a [`Server`](super::Server) behaves.
    ///
    /// ```
    /// use std::time::Duration;
    /// use snek_proto::net::{ServerOptions, http_config};
    /// use snek_proto::server::ServerConfig;
    ///
    /// let options = ServerOptions::default()
    ///     .with_connection(ServerConfig::default().with_max_requests(10))
    ///     .with_http(http_config().with_path("/rpc.ws")) // no other path upgrades
    ///     .with_shutdown_timeout(Duration::from_secs(30));
    /// ```
    #[derive(Debug)]
    pub struct ServerOptions {
        /// Limits and times of each connection.
        pub connection: ServerConfig = ServerConfig::default() => with_connection(ServerConfig),
        /// Limits, guards and TLS before the upgrade. Every path upgrades unless you name some. Default
        /// [`http_config`]; start from it.
        pub http: HttpConfig = http_config() => with_http(HttpConfig),
        /// Transport treatment and observer of each connection.
        pub driver: DriverConfig = DriverConfig::default() => with_driver(DriverConfig),
        /// How long a connection's calls may go on when the server ends. Default 5 s.
        pub shutdown_timeout: Duration = SHUTDOWN_TIMEOUT => with_shutdown_timeout,
    }
}
