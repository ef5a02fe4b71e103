//! [`HttpConfig`]: limits, guards and hooks of a server.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response, StatusCode};

use super::body::Body;
use super::brake::Brake;
use super::guards::{Guards, PeerPolicy};
use super::tickets::Tickets;
#[cfg(feature = "tls")]
use crate::net::tls::TlsAcceptor;
use crate::net::ws::{WsConfig, select_subprotocol};

/// The subprotocol to select, or what to answer instead of upgrading.
type UpgradeDecision = Result<Option<String>, (StatusCode, String)>;
type UpgradeHook = dyn Fn(&mut Parts, SocketAddr) -> UpgradeDecision + Send + Sync;
type Authorize = dyn Fn(&Parts, SocketAddr) -> Option<Response<Body>> + Send + Sync;
type Guessable = dyn Fn(&Parts, SocketAddr) -> Option<&'static str> + Send + Sync;
type HttpFuture = Pin<Box<dyn Future<Output = Response<Body>> + Send>>;
type HttpHook = dyn Fn(Request<Bytes>, SocketAddr) -> HttpFuture + Send + Sync;

crate::config! {
    /// The limits of one server on its peers. All are on by default.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct ServerLimits {
        /// Most connections at once. Beyond it, the oldest connection whose request is not complete
        /// makes room; if there is none, the new one gets status 503. Peers that are not
        /// [served](super::PeerPolicy) do not count, and always get 403. Default 1,024.
        pub max_connections: usize = 1_024,
        /// Most connections of one IP address at once. Beyond it, an older connection of the same
        /// address makes room, as for [`max_connections`](Self::max_connections). Default `None`: no
        /// limit for a server that only this machine can reach, otherwise a quarter of
        /// [`max_connections`](Self::max_connections). `Some(usize::MAX)` means no limit: right behind
        /// a proxy, whose address all connections have.
        pub max_connections_per_ip: Option<usize> = None,
        /// Most WebSockets at once, from the reply to the upgrade request to the end of the
        /// handler. Beyond it, an upgrade gets status 503; plain requests go on. Default none,
        /// other than [`max_connections`](Self::max_connections).
        pub max_websockets: Option<usize> = None,
        /// How long a peer may take to send the header of its request. Default 10 s.
        pub header_timeout: Duration = Duration::from_secs(10),
        /// How long everything before the handler may take: TLS, the request, the reply.
        /// Default 15 s.
        pub handshake_timeout: Duration = Duration::from_secs(15),
        /// Largest request header in bytes; a larger one gets status 431. Default 16 KiB.
        pub max_header_bytes: usize = 16 * 1024,
        /// Largest body of a plain request in bytes; a larger one gets status 413. Default 1 MiB.
        pub max_body_bytes: usize = 1024 * 1024,
        /// Largest message of a WebSocket in bytes until the peer has logged in, where a protocol has a
        /// login; a larger one gets 1009. Default 64 KiB.
        pub max_before_login: usize = 64 * 1024,
        /// Most bytes of messages and bodies that are being received, from the header of a frame on; those of at
        /// most 16 KiB do not count. An address has a quarter of it. Where there is no room, the
        /// oldest of them is closed with 1013, or gets 503. Default 256 MiB.
        pub max_receiving: usize = 256 * 1024 * 1024,
        /// How long a peer may take nothing of a reply that waits for it, before it is
        /// disconnected. Default 30 s.
        pub write_timeout: Duration = Duration::from_secs(30),
    }
}

impl ServerLimits {
    /// Resolves [`max_connections_per_ip`](Self::max_connections_per_ip) for a server that listens
    /// on `local` and serves `peers`.
    pub(super) fn for_bind(mut self, local: SocketAddr, peers: PeerPolicy) -> Self {
        let here = local.ip().to_canonical().is_loopback() || peers != PeerPolicy::Any;
        if !here {
            let quarter = (self.max_connections / 4).max(1);
            self.max_connections_per_ip.get_or_insert(quarter);
        }
        self
    }
}

crate::config! {
    /// The configuration of a [`ProtocolServer`](super::ProtocolServer).
    ///
    /// ```
    /// use rpc_core::net::server::{HttpConfig, ServerLimits};
    ///
    /// let config = HttpConfig {
    ///     limits: ServerLimits { max_connections: 100, ..ServerLimits::default() },
    ///     paths: vec!["/rpc.ws".into()],
    ///     ..HttpConfig::default()
    /// };
    /// let config = config.with_on_upgrade(|_, _| Ok(None));
    /// ```
    #[derive(Clone)]
    pub struct HttpConfig {
        /// Limits on connections, times and sizes before the upgrade.
        pub limits: ServerLimits = ServerLimits::default(),
        /// Who may connect, and from which web pages.
        pub guards: Guards = Guards::default(),
        /// Limits and buffers of the upgraded connections. Selects the first of its subprotocols that
        /// the client offers, unless a hook decides. Headers and deadline are not used.
        pub ws: WsConfig = WsConfig::default(),
        /// Slows down who guesses secrets: what the protocol checks, and what answers requests with 401.
        pub brake: Arc<Brake> = Arc::default(),
        /// Serves TLS only, with this certificate. Default none: without TLS.
        pub tls: Option<TlsAcceptor> = None => #[cfg(feature = "tls")],
        /// The paths that upgrade, for example `/rpc.ws`. Default none: every path upgrades.
        pub paths: Vec<String> = Vec::new(),
        /// Serves what other servers pass on with these tickets. Default none.
        pub tickets: Option<Arc<Tickets>> = None,
        /// The socket to listen on, which listens already, in place of the address. Default none.
        pub listener: Option<Arc<std::net::TcpListener>> = None,
        /// What the methods below set.
        pub hooks: Hooks = Hooks::default(),
    }
}

/// The hooks of a server: its service for plain requests, and what decides about requests. The methods of
/// [`HttpConfig`] set them.
#[derive(Clone, Default)]
pub struct Hooks {
    guessable: Vec<Arc<Guessable>>,
    on_upgrade: Vec<Arc<UpgradeHook>>,
    pub(super) http: Option<Arc<HttpHook>>,
    authorize: Vec<Arc<Authorize>>,
}

crate::debug::debug_fields!([] Hooks, this => {
    on_upgrade: this.on_upgrade.len(),
    http: this.http.is_some(),
    authorize: this.authorize.len(),
});

impl HttpConfig {
    /// Asks the [brake](Self::brake) before requests that need a secret which
    /// [can be guessed](super::is_guessable): the hook returns the name of the secret. Without it, only the
    /// answer 401 is slowed down. With several hooks the first name counts.
    #[must_use]
    pub fn with_guessable_secret(
        mut self,
        hook: impl Fn(&Parts, SocketAddr) -> Option<&'static str> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.guessable.push(Arc::new(hook));
        self
    }

    /// Returns whether the server [serves TLS](Self::tls).
    #[must_use]
    pub const fn is_tls(&self) -> bool {
        #[cfg(feature = "tls")]
        return self.tls.is_some();
        #[cfg(not(feature = "tls"))]
        return false;
    }

    /// Decides about every upgrade that passed the guards: authenticate by header or subprotocol
    /// here. The handler receives what the hook puts into the extensions: what the application keeps
    /// for one connection can begin here.
    ///
    /// The hook returns the subprotocol to select, which is ignored unless the client offers it; or
    /// the status and the text to answer instead of upgrading, where a status below 400 is sent as
    /// 500. With several hooks, one after the other decides, and the last subprotocol counts; without one,
    /// the first that [`ws`](Self::ws) lists.
    #[must_use]
    pub fn with_on_upgrade(
        mut self,
        hook: impl Fn(&mut Parts, SocketAddr) -> UpgradeDecision + Send + Sync + 'static,
    ) -> Self {
        self.hooks.on_upgrade.push(Arc::new(hook));
        self
    }

    /// Answers plain HTTP requests; their extensions hold a [`Cancellation`](crate::net::Cancellation),
    /// which the server gives when it drains. Without it, a GET on an upgrade path gets 426 with an
    /// explanation, and everything else 404. The reply has to be ready within
    /// [`handshake_timeout`](ServerLimits::handshake_timeout), and taken by the peer in that time
    /// unless it is [streamed](Body::stream).
    #[must_use]
    pub fn with_http<F, R, B>(mut self, service: F) -> Self
    where
        F: Fn(Request<Bytes>, SocketAddr) -> R + Send + Sync + 'static,
        R: Future<Output = Response<B>> + Send + 'static,
        B: Into<Body>,
    {
        self.hooks.http = Some(Arc::new(move |request, peer| {
            let answer = service(request, peer);
            Box::pin(async move { answer.await.map(Into::into) })
        }));
        self
    }

    /// Decides about each plain request before its body is read: authenticate by header here. The hook returns the
    /// answer to a request that goes no further. With several hooks the first refusal counts.
    #[must_use]
    pub fn with_authorize(
        mut self,
        hook: impl Fn(&Parts, SocketAddr) -> Option<Response<Body>> + Send + Sync + 'static,
    ) -> Self {
        self.hooks.authorize.push(Arc::new(hook));
        self
    }

    pub(super) fn authorize(&self, parts: &Parts, peer: SocketAddr) -> Option<Response<Body>> {
        let mut hooks = self.hooks.authorize.iter();
        hooks.find_map(|hook| hook(parts, peer))
    }

    /// Returns the name of the secret that a request needs, if it can be guessed.
    pub(super) fn guessable(&self, parts: &Parts, peer: SocketAddr) -> Option<&'static str> {
        let mut hooks = self.hooks.guessable.iter();
        hooks.find_map(|hook| hook(parts, peer))
    }

    pub(super) fn is_upgrade_path(&self, path: &str) -> bool {
        self.paths.is_empty() || self.paths.iter().any(|ours| ours == path)
    }

    /// Returns the ticket that a path ends with.
    pub(super) fn ticket_in<'a>(&self, path: &'a str) -> Option<(&Tickets, &'a str)> {
        let tickets = self.tickets.as_deref()?;
        let mut paths = self.paths.iter();
        let offered = paths.find_map(|ours| path.strip_prefix(ours.as_str())?.strip_prefix('/'));
        Some((tickets, offered?))
    }

    pub(super) fn decide(&self, parts: &mut Parts, peer: SocketAddr) -> UpgradeDecision {
        let mut selected = None;
        for hook in &self.hooks.on_upgrade {
            selected = hook(parts, peer)?.or(selected);
        }
        let listed = || select_subprotocol(&parts.headers, &self.ws.subprotocols);
        Ok(selected.or_else(listed))
    }

    /// Answers a request as the [service](Self::with_http) does; `None` without one. A server with pages of its own
    /// passes all others on.
    #[must_use]
    pub fn http(&self, request: Request<Bytes>, peer: SocketAddr) -> Option<HttpFuture> {
        let service = self.hooks.http.as_ref()?;
        Some(service(request, peer))
    }
}

crate::debug::debug_fields!([] HttpConfig, this => {
    limits: this.limits,
    guards: this.guards,
    ws: this.ws,
    paths: this.paths,
});
