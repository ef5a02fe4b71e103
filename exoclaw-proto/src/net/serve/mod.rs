//! [`Server`]: the protocol over WebSockets for any [`Backend`].

mod backend;
mod connection;
mod memory;
mod options;
mod peer;
mod reply;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures_util::FutureExt;
use rpc_core::net::server::{Brake, Counters, DrainReport, HttpConfig, Service, ShutdownHandle};
use tokio::net::ToSocketAddrs;

use crate::auth::{AuthError, check_bind};
use crate::limits::WS_PATH;
use connection::{Shared, serve};

pub use backend::{Backend, ChatError};
pub use memory::MemoryBackend;
pub use options::{ServerOptions, http_config};
pub use peer::Peer;
pub use reply::{ChatReply, Gone};

/// Most wrong tokens from one address, which people may share, before they are slowed down.
const FREE_GUESSES: u32 = 64;

/// The reason why a [`Server`] cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Other machines could reach a server without a token. Set one, or listen on a loopback
    /// address.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The system's error. Retrying helps once the address is free.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An Exoclaw gateway's server, on a socket or [mounted](Self::mount).
///
/// ```
/// use exoclaw_proto::net::{MemoryBackend, Server, ServerOptions};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let backend = MemoryBackend::new().with_plugin("echo");
/// let server = Server::bind("127.0.0.1:0", backend, ServerOptions::default()).await?;
/// println!("listening on {}", server.url());
/// # let config = exoclaw_proto::client::ClientConfig::default();
/// # let (client, _, connection) = exoclaw_proto::net::connect_lazy(&server.url(), config)?;
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
    /// Binds a listening socket. WebSockets are served at [`WS_PATH`]; every other request goes to
    /// the HTTP service in the options, if there is one.
    ///
    /// # Errors
    /// [`BindError`]. Without a token, all addresses must be loopback addresses.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn bind(
        address: impl ToSocketAddrs,
        backend: B,
        options: ServerOptions,
    ) -> Result<Self, BindError> {
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host(address).await?.collect();
        for address in &addresses {
            check_bind(&address.ip().to_string(), &options.connection.auth)?;
        }
        let (shared, http) = prepare(backend, options);
        let server = rpc_core::net::server::Server::bind(&addresses[..], http).await?;
        Ok(Self { server, shared })
    }

    /// Creates a server that is mounted on an HTTP server of yours, such as axum, which passes it
    /// requests through the [`Service`]. [Run](Self::run) it beside that. See the
    /// [guide](crate::guide) for an example, and [`rpc_core`](rpc_core::net::server::Server::mount)
    /// for what the host has to say.
    ///
    /// Whoever reaches the host reaches this server: set a token unless that is this machine only.
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

    /// Returns the URL for clients, such as `ws://127.0.0.1:7200/ws`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("ws://{}{WS_PATH}", self.local_addr())
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

    /// Serves until the [handle](Self::handle) drains it. Then refuses new requests, lets every
    /// connection finish its requests, and closes it with 1001.
    ///
    /// # Cancel safety
    /// Dropping the future drops all connections.
    pub async fn run(self) -> DrainReport {
        let shared = self.shared;
        self.server
            .run(move |accepted| serve(Arc::clone(&shared), accepted).map(drop))
            .await
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

/// Returns the state of a new server, and what its connections start with.
fn prepare<B: Backend>(backend: B, mut options: ServerOptions) -> (Arc<Shared<B>>, HttpConfig) {
    let max = options.connection.limits.max_message_bytes;
    let mut http = options.http.with_path(WS_PATH);
    http.ws = http.ws.with_max_message(max).with_max_outgoing(max);
    options.connection.extensions = backend.extensions().to_vec();
    let shared = Shared {
        backend: Arc::new(backend),
        connection: Arc::new(options.connection),
        driver: options.driver,
        shutdown_timeout: options.shutdown_timeout,
        next: AtomicU64::new(1),
        brake: Brake::new(FREE_GUESSES),
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
