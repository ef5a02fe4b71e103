//! [`ServerOptions`], and the default HTTP configuration.

use std::time::Duration;

use rpc_core::net::DriverConfig;
use rpc_core::net::server::HttpConfig;

use crate::limits::SHUTDOWN_TIMEOUT;
use crate::server::ServerConfig;

/// Returns the default HTTP configuration: every path upgrades, no web pages may connect, and a
/// loopback address refuses a foreign `Host`. Allow more with
/// [`Guards::with_allowed_origin`](rpc_core::net::server::Guards::with_allowed_origin).
#[must_use]
pub fn http_config() -> HttpConfig {
    HttpConfig::default()
}

rpc_core::config! {
    /// The configuration of a [`Server`](super::Server).
    ///
    /// ```
    /// use std::time::Duration;
    /// use rpc_core::net::server::HttpConfig;
    /// use snek_proto::net::{ServerOptions, http_config};
    /// use snek_proto::server::ServerConfig;
    ///
    /// let options = ServerOptions {
    ///     connection: ServerConfig {
    ///         max_requests: 10,
    ///         ..ServerConfig::default()
    ///     },
    ///     http: HttpConfig { paths: vec!["/rpc.ws".into()], ..http_config() }, // no other path upgrades
    ///     shutdown_timeout: Duration::from_secs(30),
    ///     ..ServerOptions::default()
    /// };
    /// ```
    #[derive(Debug)]
    pub struct ServerOptions {
        /// Limits and timeouts of each connection.
        pub connection: ServerConfig = ServerConfig::default(),
        /// Limits, guards and TLS before the upgrade. Every path upgrades unless you list some.
        /// Start from the default, [`http_config`].
        pub http: HttpConfig = http_config(),
        /// Transport settings and observer of each connection.
        pub driver: DriverConfig = DriverConfig::default(),
        /// How long a connection's calls may run on when the server drains. Default 5 s.
        pub shutdown_timeout: Duration = SHUTDOWN_TIMEOUT,
    }
}
