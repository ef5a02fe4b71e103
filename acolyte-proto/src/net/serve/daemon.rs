//! [`Daemon`]: the state shared by all connections of a server.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::StatusCode;
use rpc_core::net::DrainReport;
use rpc_core::net::server::{Accepted, HttpConfig, ServerHandle, ServerProtocol};
use rpc_core::net::telemetry::server_call;
use rpc_core::net::{DriverConfig, Handle, catch_panic, entropy, time};
use rpc_core::sync::Mutex;
use tokio::sync::Notify;

use super::agent::Agent;
use super::connection::Handler;
use super::options::ServerOptions;
use super::pages::admit;
use super::queue::End;
use super::run::{ChatReply, Client};
use crate::auth::{Auth, check_bind};
use crate::error::AppError;
use crate::event::{Event, RunKind, RunState};
use crate::frame::{ChatRequest, Status};
use crate::http::UNAUTHORIZED;
use crate::limits::RPC_PATH;
use crate::net::SYSTEM;
use crate::server::{ServerConfig, ServerConn};
use crate::task::{Load, TaskRegistry};

/// The state shared by all connections of a server.
#[derive(Debug)]
pub struct Daemon<A> {
    pub(super) agent: Arc<A>,
    pub(super) auth: Auth,
    pub(super) connection: Arc<ServerConfig>,
    pub(super) driver: DriverConfig,
    pub(super) tasks: Mutex<TaskRegistry>,
    pub(super) stream_keep_alive: Duration,
    pub(super) admin_shutdown: bool,
    pub(super) shutdown_timeout: Duration,
    /// The server's own address, as reported by `status`.
    address: OnceLock<String>,
    /// Notified when a client wants the server to end.
    pub(super) asked_to_stop: Notify,
}

impl<A: Agent> ServerProtocol for Daemon<A> {
    type App = A;
    type Options = ServerOptions;
    const SCHEME: &'static str = "http";

    fn new(agent: A, options: ServerOptions) -> (Arc<Self>, HttpConfig) {
        let max = options.connection.limits.max_message_bytes;
        let mut http = options.http;
        http.paths.push(RPC_PATH.to_owned());
        http.ws.max_message = max;
        http.ws.max_outgoing = max;
        // The key comes with the upgrade.
        http.limits.max_before_login = max;
        let shared = Arc::new(Self {
            agent: Arc::new(agent),
            auth: options.auth,
            connection: Arc::new(options.connection),
            driver: options.driver,
            tasks: Mutex::new(TaskRegistry::new(options.max_tasks)),
            stream_keep_alive: options.stream_keep_alive,
            admin_shutdown: options.admin_shutdown,
            shutdown_timeout: options.shutdown_timeout,
            address: OnceLock::new(),
            asked_to_stop: Notify::new(),
        });
        let is_guessable = shared.auth.is_guessable();
        let [guard, doors, keys, pages] = std::array::from_fn(|_| Arc::clone(&shared));
        let http = http
            .with_guessable_secret(move |parts, _| {
                (is_guessable && keys.needs_key(parts)).then_some("key")
            })
            .with_on_upgrade(move |parts, _| match admit(&guard.auth, &parts.headers) {
                Some(shown) => Ok(shown.echo().map(str::to_owned)),
                None => Err((StatusCode::UNAUTHORIZED, UNAUTHORIZED.to_owned())),
            })
            .with_authorize(move |parts, _| doors.refusal(parts))
            .with_http(move |request, peer| Arc::clone(&pages).http(request, peer));
        (shared, http)
    }

    fn on_bind(&self, local: SocketAddr) -> io::Result<()> {
        check_bind(local.ip(), &self.auth)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        // It is set once.
        let _ = self
            .address
            .set(format!("http://localhost:{}", local.port()));
        Ok(())
    }

    fn serve(self: Arc<Self>, accepted: Accepted) -> impl Future<Output = ()> + Send + 'static {
        let conn = ServerConn::new(Arc::clone(&self.connection), entropy(), time::now());
        let (handle, driver) = (Handle::new(conn), self.driver.clone());
        let handler = Handler {
            shared: self,
            client: Client::new(accepted.peer, Arc::clone(&accepted.parts)),
            handle: handle.clone(),
            work: None,
        };
        accepted.serve(handle, handler, driver, ServerConn::is_logged_in)
    }

    async fn run(
        self: Arc<Self>,
        connections: impl Future<Output = DrainReport> + Send,
        handle: ServerHandle,
    ) -> DrainReport {
        // What is left when its time is over has to say goodbye still.
        let deadline = self.shutdown_timeout + Duration::from_secs(2);
        let stop = self.asked_to_stop.notified();
        handle.run_until(connections, stop, deadline).await
    }
}

impl<A: Agent> Daemon<A> {
    /// Returns the agent's status, completed with the server's own numbers.
    pub(super) async fn status(&self) -> Status {
        let status = catch_panic("an agent", self.agent.status()).await;
        let mut status = status.unwrap_or_else(|| Status::new("", ""));
        if status.service.is_empty()
            && let Some(address) = self.address.get()
        {
            status.service = address.clone().into();
        }
        let Load {
            total,
            running,
            queued,
        } = self.tasks.lock().load();
        status.tasks_total = count(total);
        status.tasks_running = count(running);
        status.rpc_queue_length = count(queued);
        status
    }

    pub(super) async fn work(&self, run: ChatReply, request: ChatRequest) -> End {
        let answer = pin!(self.answer(run, request));
        server_call(SYSTEM, "chat.start", answer, |end| {
            // A failed model is reported in a reply.
            end.as_ref().is_ok_and(|reply| reply.error.is_none())
        })
        .await
    }

    async fn answer(&self, run: ChatReply, request: ChatRequest) -> End {
        // Every known server says this first, and nothing else of this kind.
        let _ = run
            .emit(&Event::Status(RunState::new(RunKind::Running)))
            .await;
        match catch_panic("an agent", self.agent.run(run, request)).await {
            Some(Ok(reply)) => Ok(Box::new(reply)),
            Some(Err(error)) => Err(Box::new(error)),
            None => Err(Box::new(AppError::failed("Internal error."))),
        }
    }
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
