//! [`ProtocolServer`]: the server of a protocol, and [`ServerProtocol`]: how a protocol differs.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::ToSocketAddrs;

use super::config::HttpConfig;
use super::connection::Accepted;
use super::permits::Counters;
use super::run::Server;
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
    /// What the application uses beside the connections, such as the backend again. Cheap to clone.
    type Runtime;

    /// What a client's URL begins with.
    const SCHEME: &'static str = "ws";
    /// The path of a client's URL.
    const PATH: &'static str = "";

    /// Creates what the connections share, and what they start with.
    fn new(app: Self::App, options: Self::Options) -> (Arc<Self>, HttpConfig);

    /// Returns the runtime.
    fn runtime(&self) -> Self::Runtime;

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

/// The server of a protocol, on a socket or [mounted](Self::mount). Serves once [`run`](Self::run)
/// is polled.
pub struct ProtocolServer<P> {
    server: Server,
    protocol: Arc<P>,
}

impl<P: ServerProtocol> ProtocolServer<P> {
    /// Listens on an address. Port 0 takes a free one; see [`local_addr`](Self::local_addr).
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
        let server = Server::bind(address, http).await?;
        protocol.on_bind(server.local_addr())?;
        Ok(Self { server, protocol })
    }

    /// Creates a server that accepts no connections itself, and the [`Service`] that passes it those
    /// of an HTTP server of yours, such as axum. [Run](Self::run) it beside that; see
    /// [`Server::mount`] for what the host has to say. The service may be dropped: then the server
    /// serves what is [passed](ServerHandle::serve) to its handle.
    ///
    /// Whoever reaches the host reaches this server.
    #[must_use]
    pub fn mount(app: P::App, options: P::Options) -> (Self, Service) {
        let (protocol, http) = P::new(app, options);
        let (server, service) = Server::mount(http);
        (Self { server, protocol }, service)
    }

    /// Returns the address that the server listens on; the unspecified one if it is
    /// [mounted](Self::mount).
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Returns the URL for clients, such as `ws://127.0.0.1:8080/ws`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("{}://{}{}", P::SCHEME, self.local_addr(), P::PATH)
    }

    /// Returns the server's counters, which it updates while it runs.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        self.server.counters()
    }

    /// Returns a handle that ends the server, and passes it connections over other transports.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.server.handle()
    }

    /// Returns what you use beside the connections, such as your backend.
    #[must_use]
    pub fn runtime(&self) -> P::Runtime {
        self.protocol.runtime()
    }

    /// Serves until the [handle](Self::handle) drains it. Then accepts nothing new, lets every
    /// connection finish what it has begun, and says goodbye.
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

impl<P> fmt::Debug for ProtocolServer<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.server.fmt(f)
    }
}
