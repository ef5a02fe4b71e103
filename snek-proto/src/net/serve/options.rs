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

/// How a [`Server`](super::Server) behaves.
#[derive(Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Limits and times of each connection.
    pub connection: ServerConfig,
    /// Limits, guards and TLS before the upgrade. Every path upgrades unless you name some. Default
    /// [`http_config`].
    pub http: HttpConfig,
    /// Transport treatment and observer of each connection.
    pub driver: DriverConfig,
    pub(crate) shutdown_timeout: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            connection: ServerConfig::default(),
            http: http_config(),
            driver: DriverConfig::default(),
            shutdown_timeout: SHUTDOWN_TIMEOUT,
        }
    }
}

impl ServerOptions {
    /// Sets [`connection`](Self::connection).
    #[must_use]
    pub fn with_connection(mut self, config: ServerConfig) -> Self {
        self.connection = config;
        self
    }

    /// Sets [`http`](Self::http). Start from [`http_config`].
    #[must_use]
    pub fn with_http(mut self, config: HttpConfig) -> Self {
        self.http = config;
        self
    }

    /// Sets [`driver`](Self::driver).
    #[must_use]
    pub fn with_driver(mut self, config: DriverConfig) -> Self {
        self.driver = config;
        self
    }

    /// How long a connection's calls may go on when the server ends. Default 5 s.
    #[must_use]
    pub const fn with_shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }
}
