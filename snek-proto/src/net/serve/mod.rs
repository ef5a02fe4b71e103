//! [`Server`]: the protocol over WebSockets for any [`Backend`].

mod backend;
mod connection;
mod memory;
mod options;
mod peer;
mod reply;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use futures_util::FutureExt;
use rpc_core::net::server::{Brake, Counters, DrainReport, HttpConfig, Service, ShutdownHandle};
use tokio::net::ToSocketAddrs;

use connection::{Shared, serve};

pub use backend::Backend;
pub use memory::MemoryBackend;
pub use options::{ServerOptions, http_config};
pub use peer::Peer;
pub use reply::{Replied, Reply};

/// A Snek server, on a socket or [mounted](Self::mount).
///
/// ```
/// use snek_proto::net::{MemoryBackend, Server, ServerOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = MemoryBackend::new().with_channel("general", "General");
/// let server = Server::bind("127.0.0.1:0", backend.open(), ServerOptions::default()).await?;
/// println!("listening on {}", server.url());
/// # let config = snek_proto::client::ClientConfig::new("ann", "secret");
/// # let (client, _, connection) = snek_proto::net::connect_lazy(&server.url(), config)?;
/// # tokio::spawn(connection.run());
/// # let handle = server.handle();
/// # tokio::spawn(async move {
/// #     client.ready().await.unwrap();
/// #     handle.drain(std::time::Duration::from_secs(1)).await;
/// # });
/// server.run().await;
/// # Ok(())
/// # }
/// ```
pub struct Server<B> {
    server: rpc_core::net::server::Server,
    shared: Arc<Shared<B>>,
}

/// A handle that ends a [`Server`].
pub type ServerHandle = ShutdownHandle;

impl<B: Backend> Server<B> {
    /// Binds a listening socket.
    ///
    /// # Errors
    /// The system's error if the address cannot be bound.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn bind(
        address: impl ToSocketAddrs,
        backend: B,
        options: ServerOptions,
    ) -> io::Result<Self> {
        let (shared, http) = prepare(backend, options);
        let server = rpc_core::net::server::Server::bind(address, http).await?;
        Ok(Self { server, shared })
    }

    /// Creates a server that is mounted on an HTTP server of yours, such as axum, which passes it
    /// requests through the [`Service`]. [Run](Self::run) it beside that. See the
    /// [guide](crate::guide) for an example, and [`rpc_core`](rpc_core::net::server::Server::mount)
    /// for what the host has to say.
    #[must_use]
    pub fn mount(backend: B, options: ServerOptions) -> (Self, Service) {
        let (shared, http) = prepare(backend, options);
        let (server, service) = rpc_core::net::server::Server::mount(http);
        (Self { server, shared }, service)
    }

    /// Returns the address that the server listens on; the unspecified one if it is
    /// [mounted](Self::mount).
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Returns the URL for clients, such as `ws://127.0.0.1:8080/rpc.ws`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("ws://{}/rpc.ws", self.local_addr())
    }

    /// Returns the server's counters, which are updated while it runs.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        self.server.counters()
    }

    /// Returns a handle that ends the server.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.server.shutdown_handle()
    }

    /// Returns the backend.
    #[must_use]
    pub fn backend(&self) -> Arc<B> {
        Arc::clone(&self.shared.backend)
    }

    /// Serves until the [handle](Self::handle) drains it. Then lets every connection finish its
    /// calls, and closes it with 1001.
    ///
    /// # Cancel safety
    /// Dropping the future drops all connections.
    pub async fn run(self) -> DrainReport {
        let shared = self.shared;
        self.server
            .run(move |accepted| serve(Arc::clone(&shared), accepted).map(drop))
            .await
    }
}

/// Returns the state of a new server, and what its connections start with.
fn prepare<B>(backend: B, options: ServerOptions) -> (Arc<Shared<B>>, HttpConfig) {
    let max = options.connection.limits.max_message_bytes;
    let mut http = options.http;
    http.ws = http.ws.with_max_message(max).with_max_outgoing(max);
    let shared = Shared {
        backend: Arc::new(backend),
        connection: Arc::new(options.connection),
        driver: options.driver,
        shutdown_timeout: options.shutdown_timeout,
        next: AtomicU64::new(1),
        brake: Brake::new(3),
    };
    (Arc::new(shared), http)
}

impl<B> fmt::Debug for Server<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}
