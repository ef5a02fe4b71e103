//! [`Server`]: the protocol over WebSockets and over HTTP for any [`Agent`].

mod agent;
mod connection;
mod options;
mod queue;
mod run;
mod runtime;
mod shared;
mod stream;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use http::StatusCode;
use rpc_core::net::server::{
    Counters, DrainReport, HttpConfig, Service, ShutdownHandle, UpgradeDecision,
};
use tokio::net::ToSocketAddrs;

use crate::auth::{AuthError, check_bind};
use crate::http::UNAUTHORIZED;
use crate::limits::RPC_PATH;

use connection::serve;
use run::Client;
use runtime::admit;

pub use agent::Agent;
pub use options::{ServerOptions, http_config};
pub use run::{EmitError, Run, Stopped};
pub use runtime::AgentRuntime;

/// Why a [`Server`] cannot listen.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BindError {
    /// Other machines could reach a server that requires no key. Set one, or listen on a loopback
    /// address.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The system's error. Retrying helps once the address is free.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// An Acolyte server, on a socket or [mounted](Self::mount).
///
/// ```
/// use acolyte_proto::net::{Agent, Run, Server, ServerOptions};
/// use acolyte_proto::error::ChatError;
/// use acolyte_proto::frame::{ChatRequest, Reply, Status};
///
/// struct Echo;
///
/// impl Agent for Echo {
///     async fn run(
///         &self,
///         run: Run,
///         request: ChatRequest,
///     ) -> Result<Reply, ChatError> {
///         let _ = run.text(&request.message).await;
///         Ok(Reply { output_streamed: Some(true), ..Reply::new(request.message, request.model) })
///     }
///
///     async fn status(&self) -> Status {
///         Status::new("echo", "")
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let server = Server::bind("127.0.0.1:0", Echo, ServerOptions::default()).await?;
/// println!("listening on {}", server.url());
/// # let config = acolyte_proto::client::ClientConfig::default();
/// # let (client, _, connection) = acolyte_proto::net::connect_lazy(&server.url(), config)?;
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
pub struct Server<A> {
    server: rpc_core::net::server::Server,
    runtime: AgentRuntime<A>,
    shutdown_timeout: Duration,
}

/// A handle that ends a [`Server`]. Cheap to clone; dropping it does not end the server.
#[derive(Clone)]
pub struct ServerHandle {
    stop: Arc<dyn Fn() + Send + Sync>,
    handle: ShutdownHandle,
}

impl ServerHandle {
    /// Stops accepting connections and chats. Running chats may go on for the [shutdown
    /// timeout](ServerOptions::shutdown_timeout), but no longer than `deadline`; then every
    /// connection is closed with 1001, and those still open at the deadline are cut. May be called
    /// more than once; the earliest deadline counts.
    ///
    /// # Cancel safety
    /// If the future is dropped, the report is lost. The drain goes on.
    pub async fn drain(&self, deadline: Duration) -> DrainReport {
        (self.stop)();
        self.handle.drain(deadline).await
    }

    /// Awaits a server's `run`, and drains it once `shutdown` resolves.
    async fn run_until(
        &self,
        run: impl Future<Output = DrainReport>,
        shutdown: impl Future<Output = ()>,
        deadline: Duration,
    ) -> DrainReport {
        let stopped = async {
            shutdown.await;
            (self.stop)();
        };
        self.handle.run_until(run, stopped, deadline).await
    }
}

impl fmt::Debug for ServerHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerHandle").finish_non_exhaustive()
    }
}

impl<A: Agent> Server<A> {
    /// Binds the server to an address. It serves WebSockets at [`RPC_PATH`], and chats as streams
    /// and the status over HTTP.
    ///
    /// # Errors
    /// [`BindError`]. Without a key, all addresses must be loopback addresses.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn bind(
        address: impl ToSocketAddrs,
        agent: A,
        options: ServerOptions,
    ) -> Result<Self, BindError> {
        let addresses: Vec<SocketAddr> = tokio::net::lookup_host(address).await?.collect();
        for address in &addresses {
            check_bind(address.ip(), &options.auth)?;
        }
        let (shutdown_timeout, runtime, http) = prepare(agent, options);
        let server = rpc_core::net::server::Server::bind(&addresses[..], http).await?;
        let port = server.local_addr().port();
        // It is set once.
        let _ = runtime
            .shared
            .address
            .set(format!("http://localhost:{port}"));
        Ok(Self {
            server,
            runtime,
            shutdown_timeout,
        })
    }

    /// Creates a server that is mounted on an HTTP server of yours, such as axum, which passes it
    /// requests through the [`Service`]. [Run](Self::run) it beside that. See the
    /// [guide](crate::guide) for an example, and [`rpc_core`](rpc_core::net::server::Server::mount)
    /// for what the host has to say.
    ///
    /// Whoever reaches the host reaches this server: set a key unless that is this machine only.
    #[must_use]
    pub fn mount(agent: A, options: ServerOptions) -> (Self, Service) {
        let (shutdown_timeout, runtime, http) = prepare(agent, options);
        let (server, service) = rpc_core::net::server::Server::mount(http);
        let mounted = Self {
            server,
            runtime,
            shutdown_timeout,
        };
        (mounted, service)
    }

    /// Returns the address that the server listens on; the unspecified one if it is
    /// [mounted](Self::mount).
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Returns the URL for clients, such as `http://127.0.0.1:6767`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("http://{}", self.local_addr())
    }

    /// Returns the counters of open and ended connections; they are updated while the server runs.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        self.server.counters()
    }

    /// Returns a handle that ends the server.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        let runtime = self.runtime.clone();
        ServerHandle {
            stop: Arc::new(move || runtime.stop()),
            handle: self.server.shutdown_handle(),
        }
    }

    /// Returns the agent.
    #[must_use]
    pub fn agent(&self) -> Arc<A> {
        self.runtime.agent()
    }

    /// Returns the runtime, which serves other transports too.
    #[must_use]
    pub fn runtime(&self) -> AgentRuntime<A> {
        self.runtime.clone()
    }

    /// Serves until the [handle](Self::handle), or a client's shutdown request, drains the server.
    ///
    /// # Cancel safety
    /// Dropping the future cuts all connections.
    pub async fn run(self) -> DrainReport {
        let handle = self.handle();
        let (runtime, shared) = (self.runtime.clone(), self.runtime.shared);
        let run = self.server.run(move |accepted| {
            let client = Client::new(accepted.peer, accepted.parts);
            serve(
                Arc::clone(&shared),
                accepted.socket,
                client,
                Some(accepted.permit),
            )
            .map(drop)
        });
        // What is left when its time is over has to say goodbye still.
        let deadline = self.shutdown_timeout + Duration::from_secs(2);
        handle
            .run_until(run, runtime.asked_to_stop(), deadline)
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

/// Returns the shutdown timeout and the runtime of a new server, and what its connections start with.
fn prepare<A: Agent>(
    agent: A,
    mut options: ServerOptions,
) -> (Duration, AgentRuntime<A>, HttpConfig) {
    let max = options.connection.limits.max_message_bytes;
    let shutdown_timeout = options.shutdown_timeout;
    let mut http = std::mem::take(&mut options.http);
    http.ws = http.ws.with_max_message(max).with_max_outgoing(max);
    let runtime = AgentRuntime::new(agent, options);
    let (shared, pages) = (Arc::clone(&runtime.shared), runtime.clone());
    let http = http
        .with_path(RPC_PATH)
        .with_on_upgrade(move |parts, _| match admit(&shared.auth, &parts.headers) {
            Ok(Some(subprotocol)) => UpgradeDecision::accept_with(subprotocol),
            Ok(None) => UpgradeDecision::accept(),
            Err(_) => UpgradeDecision::reject(StatusCode::UNAUTHORIZED, UNAUTHORIZED),
        })
        .with_http(move |request, peer| {
            let pages = pages.clone();
            async move { pages.http(request, peer).await }
        });
    (shutdown_timeout, runtime, http)
}

impl<A> fmt::Debug for Server<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}
