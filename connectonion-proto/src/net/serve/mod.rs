//! [`Server`]: a [`HostRuntime`] on a socket.

mod http;
mod options;
#[cfg(test)]
mod tests;

use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use ::http::request::Parts;
use futures_util::FutureExt;
use rpc_core::Instant;
use rpc_core::net::server::{
    Accepted, Counters, DrainReport, HttpConfig, Permit, Service, ShutdownHandle,
};
use rpc_core::net::{Cancellation, DriverConfig, Transport};
use tokio::net::ToSocketAddrs;

use self::http::Pages;
#[cfg(feature = "nats")]
use super::cluster::{Cluster, Origin};
use super::runtime::{Agent, HostRuntime};
use crate::limits::WS_PATH;
use crate::server::{ServerConfig, ServerConn, ServerState};

pub use options::{ServerOptions, http_config};

/// A host of an agent, on a socket or [mounted](Self::mount).
///
/// ```
/// use connectonion_proto::auth::Signer;
/// use connectonion_proto::net::{Agent, AgentError, Server, ServerOptions, Prompt, Reply, Turn};
/// use connectonion_proto::trust::TrustLevel;
///
/// struct Echo;
///
/// impl Agent for Echo {
///     async fn run(&self, _: &Turn, prompt: Prompt) -> Result<Reply, AgentError> {
///         Ok(Reply::new(format!("echo: {}", prompt.text)))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let key = Signer::generate()?; // or Signer::load_or_generate(".co/keys/agent.key")
/// let options = ServerOptions::new(&key, TrustLevel::Open).with_name("echo");
/// let host = Server::bind("127.0.0.1:0", Echo, options).await?;
/// println!("{} is at {}", key.address(), host.url());
/// # let options = connectonion_proto::net::AgentOptions::default();
/// # let (agent, _, connection) = connectonion_proto::net::connect_lazy(&host.url(), key, options)?;
/// # tokio::spawn(connection.run());
/// # let handle = host.handle();
/// # tokio::spawn(async move {
/// #     agent.ready().await.unwrap();
/// #     handle.drain(std::time::Duration::from_secs(1)).await;
/// # });
/// host.run().await;
/// # Ok(())
/// # }
/// ```
pub struct Server {
    server: rpc_core::net::server::Server,
    shared: Arc<Shared>,
}

/// A handle that ends a [`Server`].
pub type ServerHandle = ShutdownHandle;

/// There is no cluster without `nats`.
#[cfg(not(feature = "nats"))]
type Cluster = std::convert::Infallible;

/// The state shared by all connections of a host.
struct Shared {
    runtime: HostRuntime,
    connection: Arc<ServerConfig>,
    driver: DriverConfig,
    shutdown_timeout: Duration,
    cluster: Option<Cluster>,
}

impl Server {
    /// Binds the host to an address; the known hosts use port 8000. It serves WebSockets at
    /// [`WS_PATH`], and `/health`, `/info` and `/sessions/{id}` as the known clients expect. The status
    /// of `/health` is 503 while the host is not in the cluster that it belongs to.
    ///
    /// # Errors
    /// The system's error, if the address is not available. Retrying helps once it is free.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn bind(
        address: impl ToSocketAddrs,
        agent: impl Agent,
        options: ServerOptions,
    ) -> io::Result<Self> {
        let (shared, http) = prepare(agent, options);
        let server = rpc_core::net::server::Server::bind(address, http).await?;
        Ok(Self { server, shared })
    }

    /// Creates a server that is mounted on an HTTP server of yours, such as axum, which passes it
    /// requests through the [`Service`]. [Run](Self::run) it beside that. See the
    /// [guide](crate::guide) for an example, and [`rpc_core`](rpc_core::net::server::Server::mount)
    /// for what the host has to say.
    #[must_use]
    pub fn mount(agent: impl Agent, options: ServerOptions) -> (Self, Service) {
        let (shared, http) = prepare(agent, options);
        let (server, service) = rpc_core::net::server::Server::mount(http);
        (Self { server, shared }, service)
    }

    /// Returns the address that the host listens on; the unspecified one if it is
    /// [mounted](Self::mount).
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Returns the URL for clients, such as `ws://127.0.0.1:8000/ws`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("ws://{}{WS_PATH}", self.local_addr())
    }

    /// Returns the counters of open and ended connections; they are updated while the host runs.
    #[must_use]
    pub fn counters(&self) -> Arc<Counters> {
        self.server.counters()
    }

    /// Returns a handle that ends the host. Give its drain at least the
    /// [`shutdown_timeout`](ServerOptions::shutdown_timeout).
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.server.shutdown_handle()
    }

    /// Returns the runtime, with the sessions and runs.
    #[must_use]
    pub fn runtime(&self) -> HostRuntime {
        self.shared.runtime.clone()
    }

    /// Serves until the [handle](Self::handle) drains it: then new prompts are refused, agents may
    /// finish, and connections are closed with 1012. The next host finds acknowledged, unfinished
    /// prompts in the storage.
    ///
    /// # Cancel safety
    /// If the future is dropped, all connections are cut and all agents are stopped. Acknowledged
    /// prompts are stored.
    pub async fn run(self) -> DrainReport {
        let (server, shared) = (self.server, Arc::clone(&self.shared));
        let runtime = shared.runtime.clone();
        let half = shared.shutdown_timeout / 2;
        let serving = async {
            let shared = Arc::clone(&shared);
            let serve = move |accepted: Accepted| accept(&shared, accepted);
            let report = server.run(serve).await;
            // Agents may be at work that nobody watches.
            runtime.drain(half).await;
            #[cfg(feature = "nats")]
            if let Some(cluster) = &self.shared.cluster {
                cluster.leave().await;
            }
            report
        };
        tokio::select! {
            report = serving => report,
            never = runtime.run() => match never {},
            never = join(&shared) => match never {},
        }
    }
}

/// Returns the state of a new host, and what its connections start with.
fn prepare(agent: impl Agent, options: ServerOptions) -> (Arc<Shared>, HttpConfig) {
    let max = options.connection.limits.max_message_bytes;
    let max_sent = options.connection.max_sent_bytes;
    let mut runtime = options.runtime;
    runtime.hub.max_output_bytes = runtime.hub.max_output_bytes.min(max_sent);
    let runtime = HostRuntime::new(agent, runtime);
    let pages = Arc::new(Pages {
        runtime: runtime.clone(),
        name: options.name,
        tools: options.tools,
        trust: options.trust.name(),
        started: Instant::now(),
        service: options.service,
        #[cfg(feature = "nats")]
        cluster: options.cluster.clone(),
    });
    let mut http = options.http.with_path(WS_PATH);
    http = http.with_http(move |request, peer| Arc::clone(&pages).answer(request, peer));
    http.ws = http.ws.with_max_message(max).with_max_outgoing(max_sent);
    let mut driver = options.driver;
    let half = options.shutdown_timeout / 2;
    driver.close_timeout = driver.close_timeout.min(half);
    let shared = Shared {
        runtime,
        connection: Arc::new(options.connection),
        driver,
        shutdown_timeout: options.shutdown_timeout,
        cluster: options.cluster,
    };
    (Arc::new(shared), http)
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("server", &self.server)
            .field("runtime", &self.shared.runtime)
            .finish_non_exhaustive()
    }
}

/// Serves one connection, here or at another host of the cluster.
#[cfg(feature = "nats")]
fn accept(shared: &Arc<Shared>, accepted: Accepted) -> impl Future<Output = ()> + use<> {
    let shared = Arc::clone(shared);
    async move { serve_anywhere(&shared, accepted).await }
}

#[cfg(feature = "nats")]
async fn serve_anywhere(shared: &Shared, accepted: Accepted) {
    let head = Some(Arc::new(accepted.parts));
    let (socket, peer) = (accepted.socket, accepted.peer.ip());
    let (permit, cancellation) = (Some(accepted.permit), accepted.cancellation);
    let Some(cluster) = &shared.cluster else {
        return serve(shared, socket, peer, head, permit, cancellation).await;
    };
    let here = |transport| {
        let (head, permit) = (head.clone(), permit.clone());
        serve(shared, transport, peer, head, permit, cancellation.clone())
    };
    let origin = Origin {
        peer: Some(peer).filter(|peer| !peer.is_unspecified()),
        head: head.clone(),
        cancellation: cancellation.clone(),
    };
    cluster.serve(socket, origin, here).await;
}

/// Serves one connection.
#[cfg(not(feature = "nats"))]
fn accept(shared: &Arc<Shared>, accepted: Accepted) -> impl Future<Output = ()> + use<> {
    let head = Some(Arc::new(accepted.parts));
    let peer = accepted.peer.ip();
    let (permit, cancellation) = (Some(accepted.permit), accepted.cancellation);
    serve(shared, accepted.socket, peer, head, permit, cancellation)
}

/// Keeps the host in its cluster, if it has one.
#[cfg(feature = "nats")]
async fn join(shared: &Arc<Shared>) -> std::convert::Infallible {
    let Some(cluster) = &shared.cluster else {
        return std::future::pending().await;
    };
    let serve = |transport, peer: Option<IpAddr>, head| {
        let peer = peer.unwrap_or(std::net::Ipv4Addr::UNSPECIFIED.into());
        // Its own host tells it when it shuts down.
        let (canceller, cancellation) = Cancellation::new();
        let serving = serve(shared, transport, peer, head, None, cancellation);
        async move {
            serving.await;
            drop(canceller);
        }
    };
    cluster.run(shared.runtime.clone(), serve).await
}

/// Waits for ever.
#[cfg(not(feature = "nats"))]
async fn join(shared: &Arc<Shared>) -> std::convert::Infallible {
    match &shared.cluster {
        Some(never) => match *never {},
        None => std::future::pending().await,
    }
}

/// Serves one connection from its upgrade to its end.
fn serve<T: Transport>(
    shared: &Shared,
    transport: T,
    peer: IpAddr,
    head: Option<Arc<Parts>>,
    permit: Option<Permit>,
    cancellation: Cancellation,
) -> impl Future<Output = ()> + use<T> {
    let config = Arc::clone(&shared.connection);
    // A mounted host may not know it.
    let peer = Some(peer).filter(|peer| !peer.is_unspecified());
    let (handle, mut handler) = shared.runtime.connection(peer, head, config);
    handler.drain_timeout = shared.shutdown_timeout / 2;
    let is_admitted = |conn: &ServerConn| conn.state() == ServerState::Ready;
    let shutdown = match permit {
        Some(permit) => permit
            .until_login(&handle, is_admitted, cancellation)
            .left_future(),
        None => cancellation.into_cancelled().right_future(),
    };
    let driver = shared.driver.clone();
    rpc_core::net::serve(handle, transport, handler, driver, shutdown).map(drop)
}
