//! [`ServerOptions`].

use std::time::Duration;

use rpc_core::net::DriverConfig;
use rpc_core::net::server::{Guards, HttpConfig, OriginPolicy};

use crate::auth::Auth;
use crate::limits::SHUTDOWN_TIMEOUT;
use crate::server::ServerConfig;

/// Returns the default HTTP configuration: only web pages of this machine may connect, and a
/// loopback address refuses a foreign `Host`. Allow more with [`Guards::with_allowed_origin`].
#[must_use]
pub fn http_config() -> HttpConfig {
    let guards = Guards {
        origins: OriginPolicy::Loopback(Vec::new()),
        ..Guards::default()
    };
    HttpConfig {
        guards,
        ..HttpConfig::default()
    }
}

rpc_core::config! {
    /// The configuration of a [`Server`](super::Server).
    ///
    /// ```
    /// use std::time::Duration;
    /// use exoclaw_proto::auth::Auth;
    /// use exoclaw_proto::net::ServerOptions;
    ///
    /// let options = ServerOptions {
    ///     shutdown_timeout: Duration::from_secs(30),
    ///     ..ServerOptions::new(Auth::token("secret")?)
    /// };
    /// # Ok::<(), exoclaw_proto::auth::AuthError>(())
    /// ```
    #[derive(Debug)]
    pub struct ServerOptions {
        /// Whether clients must send a token, and which. Default none.
        pub auth: Auth = Auth::open(),
        /// Limits and timeouts of each connection.
        pub connection: ServerConfig = ServerConfig::default(),
        /// Limits, guards and TLS before the upgrade, and the HTTP service beside it.
        /// [`WS_PATH`](crate::limits::WS_PATH) always upgrades. Start from the default,
        /// [`http_config`].
        pub http: HttpConfig = http_config(),
        /// Transport settings and observer of each connection. The write timeout ends a connection
        /// whose client does not read.
        pub driver: DriverConfig = DriverConfig::default(),
        /// How long a connection's requests may run on when the server drains. Default 5 s.
        pub shutdown_timeout: Duration = SHUTDOWN_TIMEOUT,
    }
}

impl ServerOptions {
    /// Creates the options of a server with this authentication.
    #[must_use]
    pub fn new(auth: Auth) -> Self {
        Self {
            auth,
            ..Self::default()
        }
    }
}
