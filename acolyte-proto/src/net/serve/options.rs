//! [`ServerOptions`].

use std::time::Duration;

use rpc_core::net::DriverConfig;
use rpc_core::net::server::{Guards, HttpConfig, ServerLimits};

use crate::auth::Auth;
use crate::limits::{MAX_MESSAGE_BYTES, MAX_TASKS, SHUTDOWN_TIMEOUT, STREAM_KEEP_ALIVE};
use crate::server::ServerConfig;

/// Returns the default settings for HTTP: only web pages of the server's own origin may connect, a
/// foreign `Host` is refused on a loopback address, and bodies have at most 16 MiB. Allow more
/// pages with [`Guards::with_allowed_origin`]. Without a key a page could make the agent do
/// anything, so pages of other ports of this machine are refused, too.
#[must_use]
pub fn http_config() -> HttpConfig {
    let guards = Guards {
        same_origin: true,
        ..Guards::default()
    };
    let limits = ServerLimits {
        max_body_bytes: MAX_MESSAGE_BYTES,
        ..ServerLimits::default()
    };
    HttpConfig {
        limits,
        guards,
        ..HttpConfig::default()
    }
}

rpc_core::config! {
    /// The configuration of a [`Server`](super::Server).
    ///
    /// ```
    /// use acolyte_proto::auth::{ApiKey, Auth};
    /// use acolyte_proto::net::ServerOptions;
    /// use acolyte_proto::server::ServerConfig;
    ///
    /// let options = ServerOptions {
    ///     auth: Auth::key(ApiKey::new("secret")?),
    ///     connection: ServerConfig { max_queued: 5, ..ServerConfig::default() },
    ///     ..ServerOptions::default()
    /// };
    /// # Ok::<(), acolyte_proto::Refused>(())
    /// ```
    #[derive(Debug)]
    pub struct ServerOptions {
        /// The required key. Default none.
        pub auth: Auth = Auth::open(),
        /// The queue, limits and timeouts of each WebSocket connection.
        pub connection: ServerConfig = ServerConfig::default(),
        /// Limits, guards and TLS before the upgrade; its HTTP service is replaced. Default
        /// [`http_config`]; start from it.
        pub http: HttpConfig = http_config(),
        /// Transport settings and observer of each WebSocket. The write timeout ends a connection
        /// whose client reads nothing.
        pub driver: DriverConfig = DriverConfig::default(),
        /// The number of remembered tasks. Default 1,000.
        pub max_tasks: usize = MAX_TASKS,
        /// How long a chat over HTTP may be silent before a comment is sent. Default 15 s.
        pub stream_keep_alive: Duration = STREAM_KEEP_ALIVE,
        /// Whether `POST /v1/admin/shutdown` ends the server. Default `true`, as at the known
        /// server; otherwise the endpoint does not exist.
        pub admin_shutdown: bool = true,
        /// How long running chats may go on when the server ends. Default 5 s.
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
