//! One connection from its upgrade to its end, with the calls that run on it.

use std::borrow::Cow;
use std::future::Future;
use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use rpc_core::net::server::{
    Accepted, Attempt, Brake, HttpConfig, ServerProtocol, TooManyAttempts,
};
use rpc_core::net::telemetry::{OTHER, server_call};
use rpc_core::net::{ConnectionHandler, DriverConfig, Handle, Running, catch_panic, time};
use rpc_core::{CloseFrame, CloseReason, Machine, Refused, Secret, Str};

use super::peer::{Peer, slow_reader};
use super::{Backend, CallReply, ServerOptions};
use crate::codec::redact;
use crate::error::RpcError;
use crate::frame::LOGIN;
use crate::hub::ConnId;
use crate::net::SYSTEM;
use crate::server::{RequestId, ServerConfig, ServerConn, ServerEvent};

/// The data that all connections of a server share.
#[derive(Debug)]
pub struct Platform<B> {
    backend: Arc<B>,
    connection: Arc<ServerConfig>,
    driver: DriverConfig,
    shutdown_timeout: Duration,
    next: AtomicU64,
}

/// The handler of one connection, which starts its calls.
struct Handler<B> {
    shared: Arc<Platform<B>>,
    peer: Arc<Peer>,
    caller: IpAddr,
    /// Slows down who guesses passwords.
    brake: Arc<Brake>,
}

impl<B: Backend> ServerProtocol for Platform<B> {
    type App = B;
    type Options = ServerOptions;
    const PATH: &'static str = "/rpc.ws";

    fn new(backend: B, options: ServerOptions) -> (Arc<Self>, HttpConfig) {
        let max = options.connection.limits.max_message_bytes;
        let mut http = options.http;
        http.ws.max_message = max;
        http.ws.max_outgoing = max;
        let shared = Self {
            backend: Arc::new(backend),
            connection: Arc::new(options.connection),
            driver: options.driver,
            shutdown_timeout: options.shutdown_timeout,
            next: AtomicU64::new(1),
        };
        (Arc::new(shared), http)
    }

    fn serve(self: Arc<Self>, accepted: Accepted) -> impl Future<Output = ()> + Send + 'static {
        let handle = Handle::new(ServerConn::new(Arc::clone(&self.connection), time::now()));
        let driver = self.driver.clone();
        let peer = Arc::new(Peer {
            id: ConnId(self.next.fetch_add(1, Ordering::Relaxed)),
            address: accepted.peer,
            parts: Arc::clone(&accepted.parts),
            handle: handle.clone(),
            cancellation: accepted.cancellation.clone(),
        });
        let handler = Handler {
            shared: self,
            peer,
            caller: accepted.caller,
            brake: Arc::clone(&accepted.brake),
        };
        accepted.serve(handle, handler, driver, |conn| conn.user().is_some())
    }
}

impl<B: Backend> ConnectionHandler for Handler<B> {
    type Machine = ServerConn;
    const SYSTEM: &'static str = SYSTEM;

    fn on_event(&mut self, event: ServerEvent, tasks: &mut Running) -> Option<CloseReason> {
        let (shared, peer) = (Arc::clone(&self.shared), Arc::clone(&self.peer));
        match event {
            ServerEvent::Login {
                id,
                username,
                password,
            } => {
                let (brake, caller) = (Arc::clone(&self.brake), self.caller);
                tasks.push(async move {
                    let shown = password.expose().as_str();
                    let attempt = brake.attempt(caller, &username, shown);
                    let login = pin!(login(&shared, &peer, id, &username, &password, attempt));
                    server_call(SYSTEM, LOGIN, login, |accepted| *accepted).await;
                });
            }
            ServerEvent::Request { id, call } => tasks.push(async move {
                let reply = CallReply { peer: &peer, id };
                let work = pin!(guarded(shared.backend.call(&peer, &call, reply)));
                let done =
                    server_call(SYSTEM, call.known().unwrap_or(OTHER), work, Result::is_ok).await;
                if let Err(error) = done {
                    fail(&peer, id, &error);
                }
            }),
            ServerEvent::Warning(error) => {
                tracing::debug!(peer = ?peer.id, %error, "a frame was ignored");
            }
            ServerEvent::Closed(reason) => return Some(reason),
        }
        None
    }

    fn shut_down(&mut self, tasks: &mut Running) {
        let (handle, timeout) = (self.peer.handle.clone(), self.shared.shutdown_timeout);
        tasks.push(async move {
            let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "server shutdown");
            handle.drain(timeout, frame).await;
        });
    }

    fn disconnected(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let (shared, peer) = (Arc::clone(&self.shared), Arc::clone(&self.peer));
        Box::pin(async move { shared.backend.disconnected(&peer).await })
    }

    fn redact(text: &str) -> Cow<'_, str> {
        redact(text)
    }
}

/// Returns whether the login was accepted.
async fn login<B: Backend>(
    shared: &Platform<B>,
    peer: &Arc<Peer>,
    id: RequestId,
    username: &str,
    password: &Secret<Str>,
    attempt: impl Future<Output = Result<Attempt, TooManyAttempts>>,
) -> bool {
    let backend = &shared.backend;
    let checked = guarded(async {
        let attempt = attempt.await;
        let attempt = attempt.map_err(|error| RpcError::new(error.to_string()))?;
        let checked = backend.login(peer, username, password).await;
        // A client that was sent away was not judged.
        if checked.is_err() && !peer.handle.read(Machine::is_closed) {
            attempt.wrong();
        }
        let user = checked?;
        backend.logged_in(peer, &user).await;
        Ok(user)
    })
    .await;
    let accepted = checked.is_ok();
    // A client that is not there any more needs no answer.
    let _ = peer.handle.with(|conn| match checked {
        Ok(user) => conn.accept_login(id, user),
        Err(error) => conn.refuse_login(id, error.message()),
    });
    accepted
}

/// Runs a backend's work. A panic becomes an error without details.
fn guarded<T>(
    work: impl Future<Output = Result<T, RpcError>>,
) -> impl Future<Output = Result<T, RpcError>> {
    let internal_error = || Err(RpcError::new("internal error"));
    catch_panic("a backend", work).map(move |done| done.unwrap_or_else(internal_error))
}

fn fail(peer: &Peer, id: RequestId, error: &RpcError) {
    let sent = peer.handle.with(|conn| conn.fail(id, error.message()));
    if sent == Err(Refused::QueueFull) {
        peer.close(slow_reader());
    }
}
