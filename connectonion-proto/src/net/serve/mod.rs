//! [`Server`]: a [`HostRuntime`] on a socket.

mod http;
mod options;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::Either;
use rpc_core::Instant;
use rpc_core::net::server::{
    Accepted, Brake, HasRuntime, HttpConfig, ProtocolServer, ServerHandle, ServerProtocol,
};
use rpc_core::net::ws::WsConfig;
use rpc_core::net::{DrainReport, DriverConfig};

use self::http::Pages;
use super::cluster::{Arrival, Cluster};
use super::runtime::{Agent, HostRuntime, Remote};
use crate::limits::WS_PATH;
use crate::server::{ServerConfig, ServerConn, ServerState};

pub use options::{ServerOptions, http_config};

/// A host of an agent, on a socket or [mounted](ProtocolServer::mount), made from an [`Agent`] and
/// [`ServerOptions`]. The known hosts use port 8000.
///
/// It serves WebSockets at `/ws`, and `/health`, `/info` and `/sessions/{id}` as the known
/// clients expect; `DELETE /sessions/{id}` deletes one, with its files. `/ready` says whether it can serve clients
/// now: its status is 503 while the host is not in the cluster that it belongs to.
///
/// Its runtime is the [`HostRuntime`], with the sessions and runs. When the host drains, new prompts
/// are refused, agents may finish, and connections are closed with 1012; the next host finds
/// acknowledged, unfinished prompts in the storage, also if the future of `run` is dropped. Give a
/// drain no less than the [`shutdown_timeout`](ServerOptions::shutdown_timeout).
///
/// ```
/// use connectonion_proto::auth::Signer;
/// use connectonion_proto::net::{Agent, AppError, Server, ServerOptions, Prompt, Reply, Turn};
/// use connectonion_proto::trust::TrustLevel;
///
/// struct Echo;
///
/// impl Agent for Echo {
///     async fn run(&self, _: &Turn, prompt: Prompt) -> Result<Reply, AppError> {
///         Ok(Reply::new(format!("echo: {}", prompt.text)))
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let key = Signer::generate()?; // or Signer::load_or_generate(".co/keys/agent.key")
/// let options = ServerOptions::new(&key, TrustLevel::Open);
/// let host = Server::bind("127.0.0.1:0", Echo, options).await?;
/// println!("{} is at {}", key.address(), host.url());
/// # let options = connectonion_proto::client::ClientConfig::default();
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
pub type Server<A> = ProtocolServer<Host<A>>;

/// The state shared by all connections of a host.
pub struct Host<A> {
    runtime: HostRuntime,
    connection: Arc<ServerConfig>,
    driver: DriverConfig,
    shutdown_timeout: Duration,
    cluster: Option<Cluster>,
    is_tls: bool,
    /// Slows down who guesses invite codes, also through other hosts.
    brake: Arc<Brake>,
    agent: PhantomData<fn(A)>,
}

impl<A: Agent> HasRuntime for Host<A> {
    type Runtime = HostRuntime;

    fn runtime(&self) -> HostRuntime {
        self.runtime.clone()
    }
}

impl<A: Agent> ServerProtocol for Host<A> {
    type App = A;
    type Options = ServerOptions;
    const PATH: &'static str = WS_PATH;

    fn new(agent: A, options: ServerOptions) -> (Arc<Self>, HttpConfig) {
        let max = options.connection.limits.max_message_bytes;
        let max_sent = options.connection.max_sent_bytes;
        let mut runtime = options.runtime;
        let trust = runtime.access.level().name();
        runtime.hub.max_output_bytes = runtime.hub.max_output_bytes.min(max_sent);
        let cluster = runtime.cluster.clone();
        let runtime = HostRuntime::new(agent, runtime);
        let pages = Arc::new(Pages {
            runtime: runtime.clone(),
            name: options.name,
            tools: options.tools,
            about: options.about,
            trust,
            started: Instant::now(),
            other: options.http.clone(),
            cluster: cluster.clone(),
        });
        let mut http = options
            .http
            .with_http(move |request, peer| Arc::clone(&pages).answer(request, peer));
        http.paths.push(WS_PATH.to_owned());
        http.ws.max_message = max;
        http.ws.max_outgoing = max_sent;
        // A CONNECT carries a conversation.
        http.limits.max_before_login = max;
        if let Some(cluster) = &cluster {
            // As large as those of clients.
            let ws = WsConfig {
                max_message: max_sent,
                max_outgoing: max,
                ..WsConfig::default()
            };
            cluster.configure(&mut http, ws);
        }
        let mut driver = options.driver;
        let half = options.shutdown_timeout / 2;
        driver.close_timeout = driver.close_timeout.min(half);
        let shared = Self {
            runtime,
            connection: Arc::new(options.connection),
            driver,
            shutdown_timeout: options.shutdown_timeout,
            cluster,
            is_tls: http.is_tls(),
            brake: Arc::clone(&http.brake),
            agent: PhantomData,
        };
        (Arc::new(shared), http)
    }

    fn on_bind(&self, local: SocketAddr) -> io::Result<()> {
        let cluster = self.cluster.as_ref();
        cluster.map_or(Ok(()), |it| it.listens_at(local, self.is_tls))
    }

    fn serve(self: Arc<Self>, accepted: Accepted) -> impl Future<Output = ()> + Send + 'static {
        let is_passed_on = accepted.parts.extensions.get::<Arrival>().is_some();
        match self.cluster.clone().filter(|_| !is_passed_on) {
            // In a box, so that the connections of a host that is alone are smaller.
            Some(cluster) => Either::Left(Box::pin(async move {
                let here = |accepted| self.serve_here(accepted);
                cluster.serve(accepted, self.runtime.clock(), here).await;
            })),
            None => Either::Right(self.serve_here(accepted)),
        }
    }

    async fn run(
        self: Arc<Self>,
        connections: impl Future<Output = DrainReport> + Send,
        _: ServerHandle,
    ) -> DrainReport {
        let serving = async {
            let report = connections.await;
            // Agents may be at work without a watcher.
            self.runtime.drain(self.shutdown_timeout / 2).await;
            if let Some(cluster) = &self.cluster {
                cluster.leave().await;
            }
            report
        };
        tokio::select! {
            report = serving => report,
            never = self.runtime.run() => match never {},
            never = self.join() => match never {},
        }
    }
}

impl<A: Agent> Host<A> {
    /// Keeps the host in its cluster, if it has one.
    async fn join(&self) -> Infallible {
        let Some(cluster) = &self.cluster else {
            return std::future::pending().await;
        };
        cluster.run(self.runtime.clone()).await
    }

    /// Serves one connection at this host.
    fn serve_here(&self, accepted: Accepted) -> impl Future<Output = ()> + Send + use<A> {
        let config = Arc::clone(&self.connection);
        // A mounted host may not know it.
        let peer = Some(accepted.peer.ip()).filter(|peer| !peer.is_unspecified());
        let head = Some(Arc::clone(&accepted.parts));
        let came = accepted.parts.extensions.get::<Arrival>();
        let remote = Remote {
            came: came.map(|came| (came.0, came.1)),
            address: accepted.caller,
            brake: Arc::clone(&self.brake),
        };
        let (handle, mut handler) = self.runtime.connection(peer, head, config, remote);
        handler.drain_timeout = self.shutdown_timeout / 2;
        let is_admitted = |conn: &ServerConn| conn.state() == ServerState::Ready;
        accepted.serve(handle, handler, self.driver.clone(), is_admitted)
    }
}

rpc_core::debug_fields!([A] Host<A>, this => { runtime: this.runtime });
