//! [`ServerOptions`].

use std::time::Duration;

use rpc_core::net::DriverConfig;
use rpc_core::net::server::{Guards, HttpConfig, OriginPolicy, ServerLimits};

use crate::auth::Signer;
use crate::hub::HubConfig;
use crate::net::RuntimeOptions;
use crate::server::ServerConfig;
use crate::trust::TrustLevel;

/// Returns the default settings for HTTP: only web pages of this machine may connect, and a foreign
/// `Host` is refused on a loopback address. Allow more with [`Guards::with_allowed_origin`]. The
/// limit on connections equals that on [sessions](crate::hub::HubConfig::max_sessions):
/// 16,384, if the system allows as many open files.
#[must_use]
pub fn http_config() -> HttpConfig {
    let guards = Guards {
        origins: OriginPolicy::Loopback(Vec::new()),
        ..Guards::default()
    };
    let limits = ServerLimits {
        max_connections: HubConfig::default().max_sessions,
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
    /// use connectonion_proto::auth::Signer;
    /// use connectonion_proto::net::ServerOptions;
    /// use connectonion_proto::trust::TrustLevel;
    ///
    /// let key = Signer::generate()?;
    /// let options = ServerOptions {
    ///     name: "barista".into(),
    ///     tools: vec!["grind".into(), "brew".into()],
    ///     ..ServerOptions::new(&key, TrustLevel::Careful)
    /// };
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Debug)]
    pub struct ServerOptions {
        /// The agent's name, for `/info` and `/health`. Default `agent`.
        pub name: String = "agent".to_owned(),
        /// The agent's tools, for `/info`. Default none.
        pub tools: Vec<String> = Vec::new(),
        /// More members of `/info`, such as the name of the model. Default none.
        pub about: serde_json::Map<String, serde_json::Value> = serde_json::Map::new(),
        /// The configuration of access, sessions and storage.
        pub runtime: RuntimeOptions = runtime,
        /// The limits and timeouts of each connection.
        pub connection: ServerConfig = ServerConfig::default(),
        /// Limits, guards and TLS before the upgrade, and the HTTP service for paths that are not the host's own. `/ws`
        /// always upgrades. Start from the default, [`http_config`].
        pub http: HttpConfig = http_config(),
        /// Transport settings and observer of each connection.
        pub driver: DriverConfig = DriverConfig::default(),
        /// How long the shutdown of the host may take. In the first half agents may finish, in the
        /// second the clients' Close is awaited, for the [driver](Self::driver)'s `close_timeout`
        /// at most. Default 5 s; give the drain at least as long.
        pub shutdown_timeout: Duration = Duration::from_secs(5),
    }
    /// Creates options with this runtime.
    pub fn with_runtime(runtime: RuntimeOptions);
}

impl ServerOptions {
    /// Creates options for the host with this key, at this level of trust, with empty lists.
    #[must_use]
    pub fn new(host: &Signer, level: TrustLevel) -> Self {
        Self::with_runtime(RuntimeOptions::new(host, level))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_session_may_have_a_connection() {
        let sessions = HubConfig::default().max_sessions;
        assert!(http_config().limits.max_connections >= sessions);
    }
}
