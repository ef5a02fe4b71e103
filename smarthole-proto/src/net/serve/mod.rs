//! [`Server`]: a [`RouterRuntime`] on a socket.

mod options;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use rpc_core::net::DriverConfig;
use rpc_core::net::server::{Accepted, Counters, DrainReport, HttpConfig, Service, ShutdownHandle};
use tokio::net::ToSocketAddrs;

use super::{RouterOptions, RouterRuntime};
use crate::router::Router;
use crate::server::{ServerConfig, ServerConn, ServerState};

pub use options::{ServerOptions, http_config};

/// A router's server, on a socket or [mounted](Self::mount).
///
/// ```
/// use smarthole_proto::hub::Input;
/// use smarthole_proto::net::{Server, ServerOptions};
/// use smarthole_proto::router::Keywords;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let options = ServerOptions::default();
/// let server = Server::bind("127.0.0.1:0", Keywords::new(), options).await?;
/// let runtime = server.runtime();
/// println!("listening on {}", server.url());
/// # let notes = smarthole_proto::frame::Registration::new("notes", "I keep notes and shopping lists.");
/// # let config = smarthole_proto::client::ClientConfig::new(notes)?;
/// # let (_client, mut messages, connection) = smarthole_proto::net::connect_lazy(&server.url(), config)?;
/// # tokio::spawn(connection.run());
/// # tokio::spawn(async move { while let Some(_) = messages.next().await {} });
/// tokio::spawn(server.run());
/// let mut events = runtime.events();
/// while runtime.clients().is_empty() {
///     events.next().await; // nobody could be asked before
/// }
/// let settled = runtime.ask(Input::text("put milk on the shopping list")).await?;
/// for at in settled.outcomes {
///     println!("{}: {:?}", at.client, at.outcome);
///     # assert_eq!(at.client, "notes");
/// }
/// # Ok(())
/// # }
/// ```
pub struct Server<R> {
    server: rpc_core::net::server::Server,
    router: Arc<R>,
    options: RouterOptions,
    shared: Arc<Shared>,
}

/// Ends a [`Server`].
pub type ServerHandle = ShutdownHandle;

/// What all connections of a server share.
struct Shared {
    runtime: RouterRuntime,
    connection: Arc<ServerConfig>,
    driver: DriverConfig,
    shutdown_timeout: Duration,
}

impl<R: Router> Server<R> {
    /// Listens on an address; the known server listens on 127.0.0.1 at
    /// [`DEFAULT_PORT`](crate::limits::DEFAULT_PORT).
    ///
    /// # Errors
    /// The system's error, for example if the address is in use. Retrying helps once it is free.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn bind(
        address: impl ToSocketAddrs,
        router: R,
        options: ServerOptions,
    ) -> io::Result<Self> {
        let (shared, http, asking) = prepare(options);
        let server = rpc_core::net::server::Server::bind(address, http).await?;
        Ok(Self::new(server, router, asking, shared))
    }

    /// Creates a server that is mounted on an HTTP server of yours, such as axum, which passes it
    /// requests through the [`Service`]. [Run](Self::run) it beside that. See the
    /// [guide](crate::guide) for an example, and [`rpc_core`](rpc_core::net::server::Server::mount)
    /// for what the host has to say.
    ///
    /// [`http_config`] serves this machine only, so that the host has to tell the peer's address
    /// with [`PeerAddr`](rpc_core::net::server::PeerAddr), or you allow others.
    #[must_use]
    pub fn mount(router: R, options: ServerOptions) -> (Self, Service) {
        let (shared, http, asking) = prepare(options);
        let (server, service) = rpc_core::net::server::Server::mount(http);
        (Self::new(server, router, asking, shared), service)
    }

    fn new(
        server: rpc_core::net::server::Server,
        router: R,
        options: RouterOptions,
        shared: Shared,
    ) -> Self {
        Self {
            server,
            router: Arc::new(router),
            options,
            shared: Arc::new(shared),
        }
    }

    /// Returns the address that the server listens on; the unspecified one if it is
    /// [mounted](Self::mount).
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Returns the URL for clients, such as `ws://127.0.0.1:9473`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("ws://{}", self.local_addr())
    }

    /// Returns the counters of connections, which the server updates while it runs.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        self.server.counters()
    }

    /// Returns a handle that ends the server. Give its drain no less than the
    /// [`shutdown_timeout`](ServerOptions::shutdown_timeout): messages may still be answered,
    /// and then connections are closed with 1001.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.server.shutdown_handle()
    }

    /// Returns the runtime, which accepts texts and reports events.
    #[must_use]
    pub fn runtime(&self) -> RouterRuntime {
        self.shared.runtime.clone()
    }

    /// Serves until the [handle](Self::handle) drains it: then no text is accepted, open messages
    /// may still be answered, and connections are closed with 1001. [`RouterRuntime::in_flight`]
    /// returns what is open at the end.
    ///
    /// # Cancel safety
    /// Dropping the future cuts all connections and ends the runtime.
    pub async fn run(self) -> DrainReport {
        let (server, shared) = (self.server, self.shared);
        let runtime = shared.runtime.clone();
        let serving = server.run(move |accepted| serve(&shared, accepted));
        let routing = runtime.run(self.router, self.options);
        tokio::select! {
            report = serving => report,
            never = routing => match never {},
        }
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

/// Returns what the connections of a new server share and start with, and how it asks its router.
fn prepare(options: ServerOptions) -> (Shared, HttpConfig, RouterOptions) {
    let max = options.connection.limits.max_message_bytes;
    let mut http = options.http;
    http.ws = http.ws.with_max_message(max).with_max_outgoing(max);
    let mut driver = options.driver;
    let half = options.shutdown_timeout / 2;
    driver.close_timeout = driver.close_timeout.min(half);
    let shared = Shared {
        runtime: options.runtime,
        connection: Arc::new(options.connection),
        driver,
        shutdown_timeout: options.shutdown_timeout,
    };
    (shared, http, options.router)
}

impl<R> fmt::Debug for Server<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("server", &self.server)
            .field("runtime", &self.shared.runtime)
            .finish_non_exhaustive()
    }
}

/// Serves one connection from its upgrade to its end.
fn serve(shared: &Shared, accepted: Accepted) -> impl Future<Output = ()> + use<> {
    let (handle, mut handler) = shared.runtime.connection(Arc::clone(&shared.connection));
    let permit = accepted.permit;
    let is_registered = |conn: &ServerConn| conn.state() == ServerState::Ready;
    let shutdown = permit.until_login(&handle, is_registered, accepted.cancellation);
    // Whoever is told that a client has left may send another one.
    handler.before_leaving = Some(Box::new(move || permit.release()));
    handler.drain_timeout = shared.shutdown_timeout / 2;
    let driver = shared.driver.clone();
    rpc_core::net::serve(handle, accepted.socket, handler, driver, shutdown).map(drop)
}
