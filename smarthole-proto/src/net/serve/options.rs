//! [`ServerOptions`], and the default HTTP configuration.

use std::time::Duration;

use http::header::{HeaderMap, SEC_WEBSOCKET_PROTOCOL};
use rpc_core::net::DriverConfig;
use rpc_core::net::server::{Guards, HostPolicy, HttpConfig, PeerPolicy, ServerLimits};

use crate::hub::HubConfig;
use crate::limits::{MAX_CONNECTIONS, OBSIDIAN_ORIGIN, SHUTDOWN_TIMEOUT};
use crate::net::{RouterOptions, RouterRuntime};
use crate::server::ServerConfig;

/// Returns the default for everything before and beside the upgrade. Any path upgrades, for at most
/// 100 clients at once; a further one gets 503.
///
/// Serves peers at 127.0.0.1, `::1` and `::ffff:127.0.0.1` only, and only if the `Host` is a name
/// of this machine. Refuses web pages: a request is accepted without an `Origin`, or with that of
/// the Obsidian client. Allow more with [`Guards::with_allowed_origin`]. Selects the first
/// subprotocol that a client offers, as the known server does.
#[must_use]
pub fn http_config() -> HttpConfig {
    let guards = Guards {
        peers: PeerPolicy::LocalhostOnly,
        hosts: HostPolicy::LoopbackNames,
        ..Guards::default()
    };
    let guards = guards
        .clone()
        .with_allowed_origin(OBSIDIAN_ORIGIN)
        // It is an origin; and if it were none, it could not pass.
        .unwrap_or(guards);
    let limits = ServerLimits {
        max_websockets: Some(MAX_CONNECTIONS),
        ..ServerLimits::default()
    };
    HttpConfig {
        limits,
        guards,
        ..HttpConfig::default()
    }
    .with_on_upgrade(|parts, _| Ok(first_subprotocol(&parts.headers)))
}

fn first_subprotocol(headers: &HeaderMap) -> Option<String> {
    let offered = headers.get(SEC_WEBSOCKET_PROTOCOL)?.to_str().ok()?;
    Some(offered.split(',').next()?.trim().to_owned())
}

rpc_core::config! {
    /// The configuration of a [`Server`](super::Server).
    ///
    /// ```
    /// use std::time::Duration;
    /// use smarthole_proto::hub::HubConfig;
    /// use smarthole_proto::net::ServerOptions;
    ///
    /// let hub = HubConfig { response_timeout: Duration::from_secs(10), ..HubConfig::default() };
    /// let options = ServerOptions {
    ///     shutdown_timeout: Duration::from_secs(2),
    ///     ..ServerOptions::new(hub)
    /// };
    /// ```
    #[derive(Debug)]
    pub struct ServerOptions {
        /// The runtime to serve, on this server only. Clone it for code that needs it before there
        /// is a server, such as an HTTP service that accepts texts.
        pub runtime: RouterRuntime = RouterRuntime::new(HubConfig::default()),
        /// The options for asking the router.
        pub router: RouterOptions = RouterOptions::default(),
        /// Limits and timeouts of each connection.
        pub connection: ServerConfig = ServerConfig::default(),
        /// Limits, guards and TLS before the upgrade, and the HTTP service beside it. Default
        /// [`http_config`]; start from it.
        pub http: HttpConfig = http_config(),
        /// Transport options and observer of each connection.
        pub driver: DriverConfig = DriverConfig::default(),
        /// How long the shutdown may take. In the first half clients may still answer open
        /// messages, in the second the server waits for their Close (also when a single client is
        /// disconnected), for the [driver](Self::driver)'s `close_timeout` at most. Default 1 s;
        /// give the drain no less.
        pub shutdown_timeout: Duration = SHUTDOWN_TIMEOUT,
    }
}

impl ServerOptions {
    /// Creates the options of a server with a hub of this configuration.
    #[must_use]
    pub fn new(hub: HubConfig) -> Self {
        Self {
            runtime: RouterRuntime::new(hub),
            ..Self::default()
        }
    }
}
