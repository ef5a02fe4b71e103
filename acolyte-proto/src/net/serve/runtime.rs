//! [`AgentRuntime`]: the server without a transport, and its answers over HTTP.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use futures_util::FutureExt;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use http::{Method, Request, Response, StatusCode};
use rpc_core::net::Transport;
use rpc_core::net::server::Body;

use super::agent::Agent;
use super::connection::serve;
use super::options::ServerOptions;
use super::run::Client;
use super::shared::{Shared, Signal, tasks};
use super::stream::stream;
use crate::auth::{Auth, Credentials};
use crate::codec::encode;
use crate::http::{NOT_FOUND, UNAUTHORIZED, UPGRADE_FAILED};
use crate::limits::{HEALTH_PATH, RPC_PATH, SHUTDOWN_PATH, STATUS_PATH, STREAM_PATH};
use crate::task::Load;

const JSON: HeaderValue = HeaderValue::from_static("application/json;charset=utf-8");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain;charset=utf-8");

/// The error for a missing or wrong key.
pub(super) struct Unauthorized;

/// The agent with its tasks and its key, without a transport. Cheap to clone; all clones are the same
/// runtime. It [serves](Self::serve) any transport; [`Server`](super::Server) does so for WebSockets,
/// and answers over HTTP.
pub struct AgentRuntime<A> {
    pub(super) shared: Arc<Shared<A>>,
}

impl<A> Clone for AgentRuntime<A> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<A: Agent> AgentRuntime<A> {
    /// Creates a runtime for this agent. The option `http` is not used.
    #[must_use]
    pub fn new(agent: A, options: ServerOptions) -> Self {
        let shared = Shared {
            agent: Arc::new(agent),
            auth: options.auth,
            connection: Arc::new(options.connection),
            driver: options.driver,
            tasks: tasks(options.max_tasks),
            stream_keep_alive: options.stream_keep_alive,
            admin_shutdown: options.admin_shutdown,
            shutdown_timeout: options.shutdown_timeout,
            address: OnceLock::new(),
            stopping: Signal::new(),
            asked_to_stop: Signal::new(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Returns the agent.
    #[must_use]
    pub fn agent(&self) -> Arc<A> {
        Arc::clone(&self.shared.agent)
    }

    /// Returns the load of all connections.
    #[must_use]
    pub fn load(&self) -> Load {
        self.shared.load()
    }

    /// Answers a plain HTTP request: health, status, a chat as a stream, the shutdown, and the
    /// paths known not to exist.
    pub(super) async fn http(
        &self,
        request: Request<Bytes>,
        address: SocketAddr,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let path = parts.uri.path();
        if (&parts.method, path) == (&Method::GET, HEALTH_PATH) {
            return answer(StatusCode::OK, JSON, "{\"ok\":true}");
        }
        let wanted = match path {
            STATUS_PATH | RPC_PATH => Some(Method::GET),
            STREAM_PATH => Some(Method::POST),
            SHUTDOWN_PATH if self.shared.admin_shutdown => Some(Method::POST),
            _ => None,
        };
        if wanted.as_ref() != Some(&parts.method) {
            return answer(StatusCode::NOT_FOUND, TEXT, NOT_FOUND);
        }
        if admit(&self.shared.auth, &parts.headers).is_err() {
            return answer(StatusCode::UNAUTHORIZED, TEXT, UNAUTHORIZED);
        }
        match path {
            STATUS_PATH => match encode(&self.shared.status().await) {
                Ok(status) => answer(StatusCode::OK, JSON, status.into_bytes()),
                Err(_) => answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, "no status"),
            },
            STREAM_PATH => stream(&self.shared, &body, Client::new(address, parts)),
            SHUTDOWN_PATH => {
                self.shared.asked_to_stop.give();
                answer(StatusCode::OK, JSON, "{\"ok\":true,\"shutdown\":true}")
            }
            _ => answer(StatusCode::BAD_REQUEST, TEXT, UPGRADE_FAILED),
        }
    }

    /// Serves one connection to its end.
    ///
    /// # Cancel safety
    /// If the future is dropped, the connection is cut and the work on its chats is dropped.
    pub fn serve<T: Transport>(
        &self,
        transport: T,
        address: Option<SocketAddr>,
    ) -> impl Future<Output = ()> + Send + use<A, T> {
        let client = Client {
            address,
            parts: None,
        };
        serve(Arc::clone(&self.shared), transport, client, None).map(drop)
    }

    /// Waits until a client requests the [shutdown](SHUTDOWN_PATH), at which a
    /// [`Server`](super::Server) ends.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub(super) async fn asked_to_stop(&self) {
        self.shared.asked_to_stop.get().cancelled().await;
    }

    /// Accepts no more chats on any connection. Running chats may go on for the [shutdown
    /// timeout](ServerOptions::shutdown_timeout), then all connections are closed.
    pub fn stop(&self) {
        self.shared.stopping.give();
    }
}

impl<A> fmt::Debug for AgentRuntime<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AgentRuntime")
            .field("auth", &self.shared.auth)
            .finish_non_exhaustive()
    }
}

/// Checks the key in the headers of a request, and returns the subprotocol to select for an upgrade:
/// the first one offered.
pub(super) fn admit<'h>(
    auth: &Auth,
    headers: &'h HeaderMap,
) -> Result<Option<&'h str>, Unauthorized> {
    let mut shown = Credentials::new();
    // A key may have other characters than ASCII.
    let text = |value: &'h HeaderValue| std::str::from_utf8(value.as_bytes()).ok();
    for value in headers.get_all(AUTHORIZATION).iter().filter_map(text) {
        shown.add_authorization(value);
    }
    for value in headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(text)
    {
        shown.add_subprotocols(value);
    }
    if auth.check(&shown) {
        Ok(shown.echo())
    } else {
        Err(Unauthorized)
    }
}

pub(super) fn answer(
    status: StatusCode,
    kind: HeaderValue,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let mut answer = Response::new(Body::from(body.into()));
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

pub(super) fn refuse(status: StatusCode, why: &str) -> Response<Body> {
    answer(status, TEXT, why.to_owned())
}
