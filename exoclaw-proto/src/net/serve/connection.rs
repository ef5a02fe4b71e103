//! One connection from its upgrade to its end, with the requests that run on it.

use std::borrow::Cow;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rpc_core::net::server::{Accepted, Attempt, Brake, HttpConfig, ServerProtocol};
use rpc_core::net::telemetry::{OTHER, server_call};
use rpc_core::net::{ConnectionHandler, DriverConfig, Handle, Running, catch_panic, time};
use rpc_core::sync::Mutex;
use rpc_core::{CloseFrame, CloseReason, Machine as _};
use serde::Serialize;

use super::ServerOptions;
use super::backend::{AppError, Backend};
use super::peer::{Peer, refuse};
use super::reply::ChatReply;
use crate::auth::{Auth, check_bind};
use crate::codec::redact;
use crate::error::RpcError;
use crate::frame::{Call, ChatSend, Method};
use crate::limits::WS_PATH;
use crate::net::SYSTEM;
use crate::server::{RequestId, ServerConfig, ServerConn, ServerEvent};

/// The error text and close reason of a draining server.
const SHUTDOWN: &str = "server shutdown";

/// The data that all connections of a server share.
#[derive(Debug)]
pub struct Gateway<B> {
    backend: Arc<B>,
    auth: Auth,
    connection: Arc<ServerConfig>,
    driver: DriverConfig,
    shutdown_timeout: Duration,
    next: AtomicU64,
}

/// The handler of one connection, which starts its requests.
struct Handler<B> {
    shared: Arc<Gateway<B>>,
    peer: Arc<Peer>,
    is_draining: bool,
    caller: IpAddr,
    /// Slows down who guesses the token.
    brake: Arc<Brake>,
    /// An attempt to show a token that can be guessed.
    attempt: Arc<Mutex<Option<Attempt>>>,
}

impl<B: Backend> ServerProtocol for Gateway<B> {
    type App = B;
    type Options = ServerOptions;
    const PATH: &'static str = WS_PATH;

    fn new(backend: B, mut options: ServerOptions) -> (Arc<Self>, HttpConfig) {
        let max = options.connection.limits.max_message_bytes;
        let mut http = options.http;
        http.paths.push(WS_PATH.to_owned());
        http.ws.max_message = max;
        http.ws.max_outgoing = max;
        if options.auth.is_open() {
            http.limits.max_before_login = max;
        }
        options.connection.extensions = backend.extensions().to_vec();
        options.connection.other_methods = true;
        let shared = Self {
            backend: Arc::new(backend),
            auth: options.auth,
            connection: Arc::new(options.connection),
            driver: options.driver,
            shutdown_timeout: options.shutdown_timeout,
            next: AtomicU64::new(1),
        };
        (Arc::new(shared), http)
    }

    fn on_bind(&self, local: SocketAddr) -> io::Result<()> {
        check_bind(&local.ip().to_string(), &self.auth)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
    }

    fn serve(self: Arc<Self>, accepted: Accepted) -> impl Future<Output = ()> + Send + 'static {
        let (caller, brake) = (accepted.caller, Arc::clone(&accepted.brake));
        let auth = self.auth.clone();
        let conn = ServerConn::new(Arc::clone(&self.connection), auth, time::now());
        let handle = Handle::new(match self.auth.is_guessable() {
            true => conn,
            false => conn.with_refusal_delay(brake.delay(caller)),
        });
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let peer = Arc::new(Peer {
            id,
            address: accepted.peer,
            parts: Arc::clone(&accepted.parts),
            handle: handle.clone(),
            cancellation: accepted.cancellation.clone(),
            max_text: self.connection.limits.max_message_bytes / 8,
        });
        let attempt = Arc::new(Mutex::new(None));
        let handler = Handler {
            shared: Arc::clone(&self),
            peer,
            is_draining: false,
            caller,
            brake: Arc::clone(&brake),
            attempt: Arc::clone(&attempt),
        };
        let (driver, mut ended) = (self.driver.clone(), accepted.cancellation.clone());
        let serving = accepted.serve(handle.clone(), handler, driver, ServerConn::is_logged_in);
        async move {
            if self.auth.is_guessable() {
                let allowed = tokio::select! {
                    // The token is not there yet.
                    allowed = brake.attempt(caller, "token", id) => Some(allowed),
                    () = ended.cancelled() => None,
                };
                match allowed {
                    Some(Ok(allowed)) => *attempt.lock() = Some(allowed),
                    Some(Err(error)) => {
                        let frame = CloseFrame::new(CloseFrame::TRY_AGAIN, error.to_string());
                        // At once: no token may be compared.
                        handle.with(|conn| conn.close_with(frame, time::now()));
                    }
                    None => {}
                }
            }
            serving.await;
        }
    }
}

impl<B: Backend> Handler<B> {
    /// Starts a request. Each has a future of its own, so that a large one does not make the others large.
    fn start(&self, id: RequestId, call: Call, tasks: &mut Running) {
        let (app, peer) = (Arc::clone(&self.shared.backend), Arc::clone(&self.peer));
        let method = Method::parse(call.tag()).map_or(OTHER, Method::name);
        let of = Arc::clone(&peer);
        macro_rules! answer {
            ($work:expr) => {
                tasks.push(respond(peer, id, method, move || async move { $work }))
            };
        }
        match call {
            Call::ChatSend(chat) => tasks.push(run_chat(app, peer, id, chat)),
            Call::Status => answer!(Ok(app.status(&of).await)),
            Call::PluginList => answer!(Ok(app.plugins(&of).await)),
            Call::ChatHistory(request) => answer!(app.chat_history(&of, request).await),
            Call::SessionList => answer!(app.session_list(&of).await),
            Call::SessionClear(session) => answer!(app.session_clear(&of, session).await),
            Call::BudgetStatus(request) => answer!(app.budget_status(&of, request.session).await),
            Call::MemorySearch(request) => answer!(app.memory_search(&of, request).await),
            Call::Unknown { tag, content } => {
                answer!(app.call(&of, &tag, content.unwrap_or_default()).await);
            }
            // The machine passes on no other.
            call => answer!(Err::<(), _>(RpcError::unknown_method(call.tag()))),
        }
    }
}

impl<B: Backend> ConnectionHandler for Handler<B> {
    type Machine = ServerConn;
    const SYSTEM: &'static str = SYSTEM;

    fn on_event(&mut self, event: ServerEvent, tasks: &mut Running) -> Option<CloseReason> {
        match event {
            ServerEvent::Request { id, .. } if self.is_draining => {
                // Started now, it would be cut off soon.
                let peer = Arc::clone(&self.peer);
                let error = RpcError::new(SHUTDOWN);
                tasks.push(async move { peer.end(id, |conn| refuse(conn, id, &error)).await });
            }
            ServerEvent::Request { id, call } => self.start(id, call, tasks),
            ServerEvent::Writable => self.peer.handle.notify(),
            ServerEvent::Warning(error) => {
                tracing::debug!(connection = self.peer.id, %error, "a message was ignored");
            }
            ServerEvent::Closed(reason) => {
                let attempt = self.attempt.lock().take();
                if matches!(reason, CloseReason::Authentication { .. }) {
                    match attempt {
                        Some(attempt) => attempt.wrong(),
                        // The machine has waited.
                        None => drop(self.brake.wrong(self.caller)),
                    }
                }
                return Some(reason);
            }
            ServerEvent::Authenticated => drop(self.attempt.lock().take()),
        }
        None
    }

    fn shut_down(&mut self, tasks: &mut Running) {
        self.is_draining = true;
        let (handle, timeout) = (self.peer.handle.clone(), self.shared.shutdown_timeout);
        tasks.push(async move {
            let frame = CloseFrame::new(CloseFrame::GOING_AWAY, SHUTDOWN);
            handle.drain(timeout, frame).await;
        });
    }

    fn disconnected(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (backend, peer) = (Arc::clone(&self.shared.backend), Arc::clone(&self.peer));
        Box::pin(async move {
            catch_panic("a backend", backend.disconnected(&peer)).await;
        })
    }

    fn redact(text: &str) -> Cow<'_, str> {
        redact(text)
    }
}

async fn run_chat<B: Backend>(backend: Arc<B>, peer: Arc<Peer>, id: RequestId, chat: ChatSend) {
    let reply = ChatReply::new(Arc::clone(&peer), id);
    let run = async { backend.chat(&peer, chat, reply).await };
    let run = pin!(catch_panic("a backend", run));
    let is_ok = |outcome: &Option<Result<(), AppError>>| matches!(outcome, Some(Ok(())));
    let outcome = server_call(SYSTEM, Method::ChatSend.name(), run, is_ok).await;
    peer.end(id, |conn| match &outcome {
        Some(Ok(())) => conn.done(id),
        Some(Err(AppError::Refused(error))) => refuse(conn, id, error),
        Some(Err(AppError::Failed(error))) => conn.error(id, error.message()),
        // If the client is there after all, it must not wait for ever.
        Some(Err(AppError::Gone(_))) | None => refuse(conn, id, &internal_error()),
    })
    .await;
}

/// Answers a request with what `work` makes.
async fn respond<T: Serialize, F: Future<Output = Result<T, RpcError>>>(
    peer: Arc<Peer>,
    id: RequestId,
    method: &'static str,
    work: impl FnOnce() -> F,
) {
    let run = async {
        // Answers may be large: none is made before there is room for it.
        peer.handle
            .retry(|conn| conn.poll_writable().then_some(()))
            .await;
        let outcome = work().await;
        peer.end(id, |conn| match &outcome {
            Ok(value) => conn.reply(id, value),
            Err(error) => refuse(conn, id, error),
        })
        .await;
        outcome.is_ok()
    };
    let run = pin!(catch_panic("a backend", run));
    let ended = server_call(SYSTEM, method, run, |ended| *ended == Some(true)).await;
    if ended.is_none() {
        let error = internal_error();
        peer.end(id, |conn| refuse(conn, id, &error)).await;
    }
}

fn internal_error() -> RpcError {
    RpcError::new("internal error")
}
