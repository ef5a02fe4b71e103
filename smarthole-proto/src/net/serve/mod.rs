//! [`Server`]: a [`RouterRuntime`] on a socket.

mod options;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rpc_core::net::DrainReport;
use rpc_core::net::DriverConfig;
use rpc_core::net::server::{
    Accepted, HasRuntime, HttpConfig, ProtocolServer, ServerHandle, ServerProtocol,
};

use super::{RouterOptions, RouterRuntime};
use crate::router::Router;
use crate::server::{ServerConfig, ServerConn, ServerState};

pub use options::{ServerOptions, http_config};

/// A router's server, on a socket or [mounted](ProtocolServer::mount), made from a [`Router`] and
/// [`ServerOptions`]. The known server listens on 127.0.0.1 at
/// [`DEFAULT_PORT`](crate::limits::DEFAULT_PORT).
///
/// Its runtime is the [`RouterRuntime`], which accepts texts and reports events. When the server
/// drains, no text is accepted, open messages may still be answered, and connections are closed with
/// 1001. Give a drain no less than the [`shutdown_timeout`](ServerOptions::shutdown_timeout).
///
/// [`http_config`] serves this machine only. The host of a mounted server has to pass the peer's
/// address with [`PeerAddr`](rpc_core::net::server::PeerAddr), or you allow others.
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
/// runtime.registered("notes").await; // no one could be asked before
/// let settled = runtime.ask(Input::text("put milk on the shopping list")).await?;
/// for at in settled.outcomes {
///     println!("{}: {:?}", at.client, at.outcome);
///     # assert_eq!(at.client, "notes");
/// }
/// # Ok(())
/// # }
/// ```
pub type Server<R> = ProtocolServer<Routing<R>>;

/// State shared by all connections of a server.
#[derive(Debug)]
pub struct Routing<R> {
    router: Arc<R>,
    options: RouterOptions,
    runtime: RouterRuntime,
    connection: Arc<ServerConfig>,
    driver: DriverConfig,
    shutdown_timeout: Duration,
}

impl<R: Router> HasRuntime for Routing<R> {
    type Runtime = RouterRuntime;

    fn runtime(&self) -> RouterRuntime {
        self.runtime.clone()
    }
}

impl<R: Router> ServerProtocol for Routing<R> {
    type App = R;
    type Options = ServerOptions;

    fn new(router: R, options: ServerOptions) -> (Arc<Self>, HttpConfig) {
        let max = options.connection.limits.max_message_bytes;
        let mut http = options.http;
        http.ws.max_message = max;
        http.ws.max_outgoing = max;
        // A registration is no login.
        http.limits.max_before_login = max;
        let mut driver = options.driver;
        let half = options.shutdown_timeout / 2;
        driver.close_timeout = driver.close_timeout.min(half);
        let shared = Self {
            router: Arc::new(router),
            options: options.router,
            runtime: options.runtime,
            connection: Arc::new(options.connection),
            driver,
            shutdown_timeout: options.shutdown_timeout,
        };
        (Arc::new(shared), http)
    }

    fn serve(self: Arc<Self>, accepted: Accepted) -> impl Future<Output = ()> + Send + 'static {
        let (handle, mut handler) = self.runtime.connection(Arc::clone(&self.connection));
        // A listener to the end of a client may send another one.
        if let Some(permit) = accepted.permit.clone() {
            handler.before_leaving = Some(Box::new(move || permit.release()));
        }
        handler.drain_timeout = self.shutdown_timeout / 2;
        let is_registered = |conn: &ServerConn| conn.state() == ServerState::Ready;
        accepted.serve(handle, handler, self.driver.clone(), is_registered)
    }

    async fn run(
        self: Arc<Self>,
        connections: impl Future<Output = DrainReport> + Send,
        _: ServerHandle,
    ) -> DrainReport {
        let routing = self
            .runtime
            .run(Arc::clone(&self.router), self.options.clone());
        tokio::select! {
            report = connections => report,
            never = routing => match never {},
        }
    }
}
