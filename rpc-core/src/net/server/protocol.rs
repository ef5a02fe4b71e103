//! [`ProtocolServer`]: the server of a protocol, and [`ServerProtocol`]: how a protocol differs.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::ToSocketAddrs;

use super::config::HttpConfig;
use super::connection::Accepted;
use super::permits::Counters;
use super::run::AcceptLoop;
use super::service::Service;
use super::shutdown::ServerHandle;
use crate::net::DrainReport;

/// How the server of a protocol differs from others; a [`ProtocolServer`] does the rest. Holds what
/// its connections share.
pub trait ServerProtocol: Send + Sync + Sized + 'static {
    /// What the application supplies, such as a backend.
    type App;
    /// The configuration.
    type Options;

    /// What a client's URL begins with.
    const SCHEME: &'static str = "ws";
    /// The path of a client's URL.
    const PATH: &'static str = "";

    /// Creates what the connections share, and what they start with.
    fn new(app: Self::App, options: Self::Options) -> (Arc<Self>, HttpConfig);

    /// Called with the address of a server that listens, before it accepts.
    ///
    /// # Errors
    /// The address is not safe. The server does not start.
    fn on_bind(&self, _local: SocketAddr) -> io::Result<()> {
        Ok(())
    }

    /// Serves one connection to its end. Dropping the future cuts it.
    fn serve(self: Arc<Self>, accepted: Accepted) -> impl Future<Output = ()> + Send + 'static;

    /// Awaits the end of all `connections`, and does what the server does beside them.
    fn run(
        self: Arc<Self>,
        connections: impl Future<Output = DrainReport> + Send,
        _handle: ServerHandle,
    ) -> impl Future<Output = DrainReport> + Send {
        connections
    }
}

/// A protocol whose server runs something that the application uses beside the connections, too. Others
/// have nothing but the application's own [`App`](ServerProtocol::App), of which it keeps an
/// [`Arc`].
pub trait HasRuntime: ServerProtocol {
    /// What it runs. Cheap to clone.
    type Runtime;

    /// Returns the runtime.
    fn runtime(&self) -> Self::Runtime;
}

/// The server of a protocol, on a socket or [mounted](Self::mount). Serves once [`run`](Self::run)
/// is polled.
pub struct ProtocolServer<P> {
    server: AcceptLoop,
    protocol: Arc<P>,
}

impl<P: ServerProtocol> ProtocolServer<P> {
    /// Listens on an address. Port 0 takes a free one; see [`local_addr`](Self::local_addr). With
    /// `127.0.0.1` comes `[::1]`, and the other way round: see [`Listener`](super::Listener).
    ///
    /// # Errors
    /// The system's error; retrying helps once the address is free. Of kind
    /// [`InvalidInput`](io::ErrorKind::InvalidInput) if the protocol refuses the address: without
    /// authentication some listen on loopback addresses only.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing behind.
    pub async fn bind(
        address: impl ToSocketAddrs,
        app: P::App,
        options: P::Options,
    ) -> io::Result<Self> {
        let (protocol, http) = P::new(app, options);
        let server = AcceptLoop::bind(address, http).await?;
        protocol.on_bind(server.local)?;
        Ok(Self { server, protocol })
    }

    /// Creates a server that accepts no connections itself, and the [`Service`] that passes it those
    /// of an HTTP server of yours, such as axum. [Run](Self::run) it beside that. The service may be
    /// dropped: then the server serves what is [passed](ServerHandle::serve) to its handle.
    ///
    /// The server does not know where the host listens: a peer that reaches the host reaches this server.
    /// [`HostPolicy::Auto`](super::HostPolicy::Auto) therefore serves loopback names only: list your
    /// own. The number of connections per address has no limit by default. TLS is not used.
    #[must_use]
    pub fn mount(app: P::App, options: P::Options) -> (Self, Service) {
        let (protocol, http) = P::new(app, options);
        let (server, service) = AcceptLoop::mount(http);
        (Self { server, protocol }, service)
    }

    /// Returns the address that the server listens on; the unspecified one if it is
    /// [mounted](Self::mount).
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.server.local
    }

    /// Returns the URL for clients, such as `ws://127.0.0.1:8080/ws`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}{}", P::SCHEME, self.local_addr(), P::PATH)
    }

    /// Returns the server's counters, which it updates while it runs.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        Arc::clone(&self.server.shared.counters)
    }

    /// Returns a handle that ends the server, and passes it connections over other transports.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.server.drain.handle()
    }

    /// Returns what the server runs beside the connections.
    #[must_use]
    pub fn runtime(&self) -> P::Runtime
    where
        P: HasRuntime,
    {
        self.protocol.runtime()
    }

    /// Serves until the [handle](Self::handle) drains it. Then accepts nothing new, lets every
    /// connection finish what it has begun, and says goodbye. Each connection runs in a task of its own,
    /// and a panic ends that one only. Needs a runtime with I/O and time enabled.
    ///
    /// # Cancel safety
    /// Dropping the future cuts all connections.
    pub async fn run(self) -> DrainReport {
        let (handle, protocol) = (self.handle(), self.protocol);
        let shared = Arc::clone(&protocol);
        let serve = move |accepted| P::serve(Arc::clone(&shared), accepted);
        // It may be large.
        Box::pin(protocol.run(self.server.run(serve), handle)).await
    }

    /// [Runs](Self::run) until `shutdown` resolves, and then drains within the deadline.
    ///
    /// # Cancel safety
    /// As for [`run`](Self::run).
    pub async fn run_until(
        self,
        shutdown: impl Future<Output = ()>,
        deadline: Duration,
    ) -> DrainReport {
        let handle = self.handle();
        handle.run_until(self.run(), shutdown, deadline).await
    }
}

crate::debug::debug_fields!([P] ProtocolServer<P>, this => { server: this.server });
