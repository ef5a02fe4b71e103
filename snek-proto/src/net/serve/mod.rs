//! [`Server`]: the protocol over WebSockets for any [`Backend`].

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt;
use futures_util::future;
use rpc_core::decode::SharedStr;
use rpc_core::net::server::{Accepted, DrainReport, ShutdownHandle};
use rpc_core::net::{
    Cancellation, LagPolicy, Link, LinkConfig, LinkEvent, QueueConfig, Running, link,
};
use rpc_core::{CloseFrame, Limits, Refused, Secret, Text};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::net::ToSocketAddrs;

use super::protocol::ServerSide;
use crate::error::RpcError;
use crate::frame::{OwnedCall, User};
use crate::hub::ConnId;
use crate::limits::SHUTDOWN_TIMEOUT;
use crate::server::{RequestId, ServerConfig, ServerConn, ServerEvent};

/// What a server is about: who may log in, and what calls do.
///
/// Calls of one connection are started in the order in which they came, and run concurrently on
/// the connection's task, at most [`max_requests`](ServerConfig::max_requests) at once; their
/// answers may come in any order. What a call does before it first waits is done before the next
/// call starts, so a backend that posts at once keeps the order of a client's messages. Work that
/// blocks belongs on a task of its own. A panic in a call answers it with `internal error` and
/// nothing else.
#[async_trait]
pub trait Backend: Send + Sync + 'static {
    /// Checks credentials. `Ok` is the user's record, which the client gets as its answer.
    ///
    /// # Errors
    /// What the client is told.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    async fn login(
        &self,
        peer: &Arc<Peer>,
        username: &str,
        password: &Secret<SharedStr>,
    ) -> Result<User, RpcError>;

    /// A login has succeeded: from now on [`Peer::push`] reaches the client. Called before the
    /// client gets its answer, so that its next call finds everything in place.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    async fn logged_in(&self, _peer: &Arc<Peer>, _user: &User) {}

    /// Carries out a call of a client that is logged in; never a login. [`answer`] makes the value.
    ///
    /// # Errors
    /// What the client is told.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    async fn call(&self, peer: &Arc<Peer>, call: &OwnedCall) -> Result<Box<RawValue>, RpcError>;

    /// The connection has ended. Called once for each, logged in or not.
    ///
    /// # Cancel safety
    /// The future is run to its end, unless the server's drain runs out of time.
    async fn disconnected(&self, _peer: &Arc<Peer>) {}
}

/// A value as an answer.
///
/// # Errors
/// If it cannot be written as JSON.
pub fn answer(value: &impl Serialize) -> Result<Box<RawValue>, RpcError> {
    serde_json::value::to_raw_value(value).map_err(|error| RpcError::new(error.to_string()))
}

/// One connection, as a [`Backend`] sees it.
pub struct Peer {
    id: ConnId,
    address: SocketAddr,
    parts: http::request::Parts,
    link: Link<ServerSide>,
    pushes: Arc<Pushes>,
    cancellation: Cancellation,
}

/// Events on their way to one connection's task: one wake-up takes all that have gathered.
struct Pushes {
    waiting: Mutex<(Vec<Text>, usize)>,
    max_frames: usize,
    max_bytes: usize,
}

enum Added {
    /// The task has to be told.
    First,
    /// It has been told already.
    Waits,
    /// The bound is reached.
    Full,
}

impl Pushes {
    fn new(limits: &Limits) -> Self {
        Self {
            waiting: Mutex::default(),
            max_frames: limits.max_outbox_frames,
            max_bytes: limits.max_outbox_bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, (Vec<Text>, usize)> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, event: Text) -> Added {
        let mut waiting = self.lock();
        let (events, bytes) = &mut *waiting;
        if events.len() >= self.max_frames || *bytes >= self.max_bytes {
            return Added::Full;
        }
        *bytes += event.len();
        events.push(event);
        if events.len() == 1 {
            Added::First
        } else {
            Added::Waits
        }
    }

    fn take(&self) -> Vec<Text> {
        let mut waiting = self.lock();
        waiting.1 = 0;
        std::mem::take(&mut waiting.0)
    }
}

impl Peer {
    /// The connection's number on this server.
    #[must_use]
    pub const fn id(&self) -> ConnId {
        self.id
    }

    /// Where it comes from.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The upgrade request: headers, URI, and extensions that an upgrade hook has put there.
    #[must_use]
    pub const fn parts(&self) -> &http::request::Parts {
        &self.parts
    }

    /// Given when the server wants to end: finish soon.
    #[must_use]
    pub fn cancellation(&self) -> Cancellation {
        self.cancellation.clone()
    }

    /// Pushes an encoded event to the client, without waiting. Frames arrive in the order of the
    /// calls. A client that does not read them fast enough is disconnected with 1013.
    pub fn push(&self, event: Text) {
        match self.pushes.add(event) {
            Added::Waits => {}
            Added::First => {
                let pushes = Arc::clone(&self.pushes);
                let drained = self.link.try_command(move |conn, now| {
                    let full = |event| conn.push(event) == Err(Refused::QueueFull);
                    if pushes.take().into_iter().any(full) {
                        conn.close_with(slow_reader(), now);
                    }
                });
                if drained == Err(Refused::QueueFull) {
                    self.link.close_with(slow_reader());
                }
            }
            Added::Full => self.link.close_with(slow_reader()),
        }
    }

    /// Closes the connection with this frame.
    pub fn close(&self, frame: CloseFrame) {
        self.link.close_with(frame);
    }

    /// Drops the line without a closing handshake, as a pulled cable does.
    pub fn cut(&self) {
        self.link.cut();
    }

    async fn run<R: Send + 'static>(
        &self,
        command: impl FnOnce(&mut ServerConn) -> R + Send + 'static,
    ) -> Option<R> {
        self.link.command(move |conn, _| command(conn)).await.ok()
    }
}

fn slow_reader() -> CloseFrame {
    CloseFrame::new(CloseFrame::TRY_AGAIN, "slow reader")
}

impl fmt::Debug for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peer")
            .field("id", &self.id)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// How a [`Server`] behaves.
#[derive(Debug)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Limits and times of each connection.
    pub connection: ServerConfig,
    /// Limits, guards and TLS before the upgrade. Every path upgrades unless you name some.
    pub http: rpc_core::net::server::ServerConfig,
    /// Transport treatment and observer of each connection; its reconnects are not used.
    pub link: LinkConfig,
    /// How long a connection's calls may go on when the server ends. Default 5 s.
    pub shutdown_timeout: Duration,
}

impl Default for ServerOptions {
    fn default() -> Self {
        let queue = QueueConfig::default().with_policy(LagPolicy::Block {
            deadline: Duration::from_secs(30),
        });
        Self {
            connection: ServerConfig::default(),
            http: rpc_core::net::server::ServerConfig::default(),
            link: LinkConfig::default().with_events(queue),
            shutdown_timeout: SHUTDOWN_TIMEOUT,
        }
    }
}

impl ServerOptions {
    /// Sets [`connection`](Self::connection).
    #[must_use]
    pub fn with_connection(mut self, config: ServerConfig) -> Self {
        self.connection = config;
        self
    }

    /// Sets [`http`](Self::http).
    #[must_use]
    pub fn with_http(mut self, config: rpc_core::net::server::ServerConfig) -> Self {
        self.http = config;
        self
    }

    /// Sets [`link`](Self::link). Keep its event queue at [`LagPolicy::Block`]: requests are
    /// events here and must not be dropped.
    #[must_use]
    pub fn with_link(mut self, config: LinkConfig) -> Self {
        self.link = config;
        self
    }

    /// Sets [`shutdown_timeout`](Self::shutdown_timeout).
    #[must_use]
    pub const fn with_shutdown_timeout(mut self, timeout: Duration) -> Self {
        self.shutdown_timeout = timeout;
        self
    }
}

/// A Snek server on a socket.
///
/// ```no_run
/// use snek_proto::net::{MemoryBackend, Server, ServerOptions};
///
/// # async fn f() -> std::io::Result<()> {
/// let backend = MemoryBackend::new().with_channel("general", "General");
/// let server = Server::bind("127.0.0.1:8080", backend.open(), ServerOptions::default()).await?;
/// println!("listening on {}", server.url());
/// server.run().await;
/// # Ok(())
/// # }
/// ```
pub struct Server<B> {
    server: rpc_core::net::server::Server,
    shared: Arc<Shared<B>>,
}

struct Shared<B> {
    backend: Arc<B>,
    connection: Arc<ServerConfig>,
    link: Arc<LinkConfig>,
    shutdown_timeout: Duration,
    next: AtomicU64,
}

/// Ends a [`Server`].
pub type ServerHandle = ShutdownHandle;

impl<B: Backend> Server<B> {
    /// Listens.
    ///
    /// # Errors
    /// The system's error, if the address cannot be had.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn bind(
        address: impl ToSocketAddrs,
        backend: B,
        options: ServerOptions,
    ) -> io::Result<Self> {
        let max = options.connection.limits.max_message_bytes;
        let mut http = options.http;
        http.ws = http.ws.with_max_message(max).with_max_outgoing(max);
        let shared = Shared {
            backend: Arc::new(backend),
            connection: Arc::new(options.connection),
            link: Arc::new(options.link),
            shutdown_timeout: options.shutdown_timeout,
            next: AtomicU64::new(1),
        };
        let server = rpc_core::net::server::Server::bind(address, http).await?;
        Ok(Self {
            server,
            shared: Arc::new(shared),
        })
    }

    /// The address that it listens on.
    #[must_use]
    pub const fn local_addr(&self) -> SocketAddr {
        self.server.local_addr()
    }

    /// Where clients connect to, such as `ws://127.0.0.1:8080/rpc.ws`.
    #[must_use]
    pub fn url(&self) -> String {
        format!("ws://{}/rpc.ws", self.local_addr())
    }

    /// A handle that ends the server.
    #[must_use]
    pub fn handle(&self) -> ServerHandle {
        self.server.shutdown_handle()
    }

    /// The backend.
    #[must_use]
    pub fn backend(&self) -> Arc<B> {
        Arc::clone(&self.shared.backend)
    }

    /// Serves until the [handle](Self::handle) drains it: then every connection may finish its
    /// calls and is closed with 1001.
    ///
    /// # Cancel safety
    /// Dropping the future cuts all connections.
    pub async fn run(self) -> DrainReport {
        let shared = self.shared;
        self.server
            .run(move |accepted| serve(Arc::clone(&shared), accepted))
            .await
    }
}

impl<B> fmt::Debug for Server<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

/// One connection from its upgrade to its end. Not an `async fn`, and nothing around the two
/// futures: each layer would hold a second copy of them, and there is one for every idle connection.
fn serve<B: Backend>(shared: Arc<Shared<B>>, accepted: Accepted) -> impl Future<Output = ()> {
    let side = ServerSide::new(Arc::clone(&shared.connection));
    let (link, mut events, connection) =
        link::over(side, accepted.socket, Arc::clone(&shared.link));
    let peer = Arc::new(Peer {
        id: ConnId(shared.next.fetch_add(1, Ordering::Relaxed)),
        address: accepted.peer,
        parts: accepted.parts,
        link,
        pushes: Arc::new(Pushes::new(&shared.connection.limits)),
        cancellation: accepted.cancellation,
    });
    let work = async move {
        // Not tasks of their own: a runtime starts tasks in any order, and then the last part of a
        // message could overtake the others.
        let mut calls = Running::new();
        let mut cancellation = peer.cancellation();
        let mut ending = false;
        loop {
            tokio::select! {
                event = events.next() => match event {
                    None => break,
                    Some(LinkEvent::Event(event)) => {
                        start(&shared, &peer, event, &mut calls);
                    }
                    Some(_) => {}
                },
                () = calls.next() => {}
                () = cancellation.cancelled(), if !ending => {
                    ending = true;
                    calls.push(drain(Arc::clone(&peer), shared.shutdown_timeout));
                }
            }
        }
        drop(calls);
        shared.backend.disconnected(&peer).await;
    };
    future::join(connection.run(), work).map(drop)
}

async fn drain(peer: Arc<Peer>, timeout: Duration) {
    let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "server shutdown");
    peer.link.drain_with(timeout, frame).await;
}

fn start<B: Backend>(
    shared: &Arc<Shared<B>>,
    peer: &Arc<Peer>,
    event: ServerEvent,
    calls: &mut Running,
) {
    let (shared, peer) = (Arc::clone(shared), Arc::clone(peer));
    match event {
        ServerEvent::Login {
            id,
            username,
            password,
        } => {
            calls.push(async move {
                login(&shared, &peer, id, &username, &password).await;
            });
        }
        ServerEvent::Request { id, call } => {
            calls.push(async move {
                let outcome = guarded(shared.backend.call(&peer, &call)).await;
                respond(&peer, id, outcome).await;
            });
        }
        ServerEvent::Warning(error) => {
            tracing::debug!(peer = ?peer.id, %error, "a frame was ignored");
        }
        _ => {}
    }
}

async fn login<B: Backend>(
    shared: &Shared<B>,
    peer: &Arc<Peer>,
    id: RequestId,
    username: &str,
    password: &Secret<SharedStr>,
) {
    let checked = guarded(async {
        let user = shared.backend.login(peer, username, password).await?;
        shared.backend.logged_in(peer, &user).await;
        Ok(user)
    })
    .await;
    peer.run(move |conn| match checked {
        Ok(user) => conn.accept_login(id, user),
        Err(error) => conn.refuse_login(id, error.message()),
    })
    .await;
}

/// A panic of a backend becomes an error that says nothing about it.
async fn guarded<T>(work: impl Future<Output = Result<T, RpcError>>) -> Result<T, RpcError> {
    AssertUnwindSafe(work)
        .catch_unwind()
        .await
        .unwrap_or_else(|_| {
            tracing::error!("a backend panicked");
            Err(RpcError::new("internal error"))
        })
}

async fn respond(peer: &Arc<Peer>, id: RequestId, outcome: Result<Box<RawValue>, RpcError>) {
    let sent = peer
        .run(move |conn| match &outcome {
            Ok(value) => match conn.reply(id, value) {
                Err(Refused::TooLarge { .. } | Refused::Encode { .. }) => {
                    conn.refuse(id, "the answer is too large")
                }
                other => other,
            },
            Err(error) => conn.refuse(id, error.message()),
        })
        .await;
    if sent == Some(Err(Refused::QueueFull)) {
        peer.close(slow_reader());
    }
}
