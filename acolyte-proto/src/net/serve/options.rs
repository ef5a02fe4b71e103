//! [`ServerOptions`].

use std::time::Duration;

use rpc_core::net::DriverConfig;
use rpc_core::net::server::{Guards, HttpConfig, ServerLimits};

use crate::auth::Auth;
use crate::limits::{MAX_MESSAGE_BYTES, MAX_TASKS, SHUTDOWN_TIMEOUT, STREAM_KEEP_ALIVE};
use crate::server::ServerConfig;

/// What is served before and beside the upgrade by default: no web pages but those of the server's
/// own origin may connect, on a loopback address no foreign `Host` is served, and bodies have at most
/// 16 MiB. Allow more pages with [`Guards::with_allowed_origin`]. Without a key a page can have the
/// agent do anything, so pages of other ports of this machine are not let in either.
#[must_use]
pub fn http_config() -> HttpConfig {
    let guards = Guards::default().with_same_origin(true);
    let limits = ServerLimits::default().with_max_body_bytes(MAX_MESSAGE_BYTES);
    HttpConfig::default()
        .with_guards(guards)
        .with_limits(limits)
}

/// How a [`Server`](super::Server) or a [`Service`](super::Service) behaves.
#[derive(Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    pub(crate) auth: Auth,
    /// Queue, limits and times of each WebSocket connection.
    pub connection: ServerConfig,
    /// Limits, guards and TLS before the upgrade. Its hooks and paths are replaced. Default
    /// [`http_config`]. Not used by a [`Service`](super::Service).
    pub http: HttpConfig,
    /// Transport treatment and observer of each WebSocket. Its write timeout ends a connection whose
    /// client takes nothing.
    pub driver: DriverConfig,
    pub(crate) max_tasks: usize,
    pub(crate) stream_keep_alive: Duration,
    pub(crate) admin_shutdown: bool,
    pub(crate) shutdown_timeout: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            auth: Auth::open(),
            connection: ServerConfig::default(),
            http: http_config(),
            driver: DriverConfig::default(),
            max_tasks: MAX_TASKS,
            stream_keep_alive: STREAM_KEEP_ALIVE,
            admin_shutdown: true,
            shutdown_timeout: SHUTDOWN_TIMEOUT,
        }
    }
}

impl ServerOptions {
    /// Whether a key is asked for, and which. Default none.
    #[must_use]
    pub fn with_auth(mut self, auth: Auth) -> Self {
        self.auth = auth;
        self
    }

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

    /// Tasks that are remembered. Default [`MAX_TASKS`].
    #[must_use]
    pub const fn with_max_tasks(mut self, tasks: usize) -> Self {
        self.max_tasks = tasks;
        self
    }

    /// How long a chat over HTTP may be silent before a comment keeps the line alive. Default 15 s.
    #[must_use]
    pub const fn with_stream_keep_alive(mut self, interval: Duration) -> Self {
        self.stream_keep_alive = interval;
        self
    }

    /// Whether `POST /v1/admin/shutdown` ends the server. Default `true`, as the known server does;
    /// otherwise there is no such endpoint.
    #[must_use]
    pub const fn with_admin_shutdown(mut self, offered: bool) -> Self {
        self.admin_shutdown = offered;
        self
    }

    /// How long running chats may go on when the server ends. Default 5 s.
    #[must_use]
    pub const fn with_shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }
}
