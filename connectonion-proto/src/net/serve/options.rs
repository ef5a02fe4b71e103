//! [`HostOptions`].

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use rpc_core::net::DriverConfig;
use rpc_core::net::server::{Guards, HttpConfig, OriginPolicy};

use crate::auth::Signer;
use crate::limits::SHUTDOWN_TIMEOUT;
use crate::net::DeskOptions;
use crate::server::ServerConfig;
use crate::session::RegistryConfig;
use crate::trust::TrustLevel;

/// What is served beside and before the upgrade by default: no web pages but those of this machine
/// may connect, and on a loopback address no foreign `Host` is served. Allow more with
/// [`Guards::with_allowed_origin`]. As many connections are taken as there may be
/// [sessions](crate::session::RegistryConfig::max_sessions): 16,384, if the system gives as many open
/// files.
#[must_use]
pub fn http_config() -> HttpConfig {
    let guards = Guards::default().with_origins(OriginPolicy::Loopback(Vec::new()));
    let mut config = HttpConfig::default().with_guards(guards);
    config.limits.max_connections = RegistryConfig::default().max_sessions;
    config
}

type Answering = Pin<Box<dyn Future<Output = Response<Bytes>> + Send>>;
pub(super) type Service = dyn Fn(Request<Bytes>, SocketAddr) -> Answering + Send + Sync;

/// How a [`Host`](super::Host) behaves.
#[non_exhaustive]
pub struct HostOptions {
    /// The agent's name, for `/info` and `/health`. Default `agent`.
    pub name: String,
    /// The agent's tools, for `/info`. Default none.
    pub tools: Vec<String>,
    /// The level of trust, for `/info`.
    pub trust: TrustLevel,
    /// Who comes in, how long sessions live, and where they are stored.
    pub desk: DeskOptions,
    /// Limits and times of each connection.
    pub connection: ServerConfig,
    /// Limits, guards and TLS before the upgrade. [`WS_PATH`](crate::limits::WS_PATH) upgrades in
    /// any case, and its HTTP service is replaced. Default [`http_config`].
    pub http: HttpConfig,
    /// Transport treatment and observer of each connection.
    pub driver: DriverConfig,
    /// How long the host's end may take. In the first half agents may finish, in the second the
    /// clients' Close is awaited, for the [driver](Self::driver)'s `close_timeout` at most. Default 5 s; give the [handle](super::HostHandle)'s drain no less.
    pub shutdown_timeout: Duration,
    pub(super) service: Option<Arc<Service>>,
}

impl HostOptions {
    /// For the host with this key, at this level of trust, with nobody in its lists and without a
    /// storage.
    #[must_use]
    pub fn new(host: &Signer, level: TrustLevel) -> Self {
        Self::with_desk(DeskOptions::new(host, level), level)
    }

    /// With this desk, whose door is at this level of trust.
    #[must_use]
    pub fn with_desk(desk: DeskOptions, level: TrustLevel) -> Self {
        Self {
            name: "agent".to_owned(),
            tools: Vec::new(),
            trust: level,
            desk,
            connection: ServerConfig::default(),
            http: http_config(),
            driver: DriverConfig::default(),
            shutdown_timeout: SHUTDOWN_TIMEOUT,
            service: None,
        }
    }

    /// Sets [`name`](Self::name).
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets [`tools`](Self::tools).
    #[must_use]
    pub fn with_tools<T: Into<String>>(mut self, tools: impl IntoIterator<Item = T>) -> Self {
        self.tools = tools.into_iter().map(Into::into).collect();
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

    /// Sets [`shutdown_timeout`](Self::shutdown_timeout).
    #[must_use]
    pub const fn with_shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }

    /// Answers requests for paths that are not the host's own.
    #[must_use]
    pub fn with_service<F, R>(mut self, service: F) -> Self
    where
        F: Fn(Request<Bytes>, SocketAddr) -> R + Send + Sync + 'static,
        R: Future<Output = Response<Bytes>> + Send + 'static,
    {
        self.service = Some(Arc::new(move |request, peer| {
            Box::pin(service(request, peer))
        }));
        self
    }
}

impl fmt::Debug for HostOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostOptions")
            .field("name", &self.name)
            .field("trust", &self.trust)
            .field("desk", &self.desk)
            .field("connection", &self.connection)
            .field("http", &self.http)
            .field("driver", &self.driver)
            .field("shutdown_timeout", &self.shutdown_timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_session_may_have_a_connection() {
        let sessions = RegistryConfig::default().max_sessions;
        assert!(http_config().limits.max_connections >= sessions);
    }
}
