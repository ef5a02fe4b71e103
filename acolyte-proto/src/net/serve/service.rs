//! [`Service`]: the server without a socket, to mount on any HTTP server.

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
use super::shared::{Shared, Signal, tasks};
use super::stream::stream;
use crate::auth::{Auth, Credentials};
use crate::codec::encode;
use crate::http::{NOT_FOUND, PLAIN_TEXT, UNAUTHORIZED, UPGRADE_FAILED};
use crate::limits::{HEALTH_PATH, RPC_PATH, SHUTDOWN_PATH, STATUS_PATH, STREAM_PATH};
use crate::task::Load;

const JSON: HeaderValue = HeaderValue::from_static("application/json;charset=utf-8");
const TEXT: HeaderValue = HeaderValue::from_static(PLAIN_TEXT);

/// The error for a missing or wrong key: respond with 401 and the text `Unauthorized`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the API key is missing or wrong")]
pub struct Unauthorized;

/// A server without a socket; [`Server`](super::Server) adds one. Cheap to clone.
///
/// To mount it on another HTTP server, such as axum, pass plain requests to [`http`](Self::http).
/// For an upgrade of [`RPC_PATH`], call [`admit`](Self::admit) first, select the subprotocol that
/// it returns, and pass the upgraded connection to [`websocket`](Self::websocket) as a
/// [`Transport`]. You must check `Origin` and `Host` ([`Guards`](rpc_core::net::server::Guards)
/// does), and limit bodies to 16 MiB.
///
/// In axum, for example, with `line` a [`Transport`] around its `WebSocket`:
///
/// ```text
/// Router::new()
///     .route("/v1/rpc", any(move |upgrade: WebSocketUpgrade, headers: HeaderMap| async move {
///         match service.admit(&headers) {
///             Ok(name) => upgrade
///                 .protocols(name.map(str::to_owned))
///                 .on_upgrade(move |socket| service.websocket(line(socket), None)),
///             Err(_) => StatusCode::UNAUTHORIZED.into_response(),
///         }
///     }))
///     .fallback(move |request: Request<Bytes>| async move {
///         pages.http(request, None).await.map(|body| Body::from_stream(body.map(Ok::<_, Infallible>)))
///     })
/// ```
pub struct Service<A> {
    pub(super) shared: Arc<Shared<A>>,
}

impl<A> Clone for Service<A> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<A: Agent> Service<A> {
    /// Creates a service for this agent. The option `http` is not used.
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

    /// Sets the address that `status` reports if the agent gives none. The first call counts; a
    /// [`Server`](super::Server) sets its own.
    pub fn set_address(&self, address: impl Into<String>) {
        // What is set already stays.
        let _ = self.shared.address.set(address.into());
    }

    /// Returns the load of all connections.
    #[must_use]
    pub fn load(&self) -> Load {
        self.shared.load()
    }

    /// Checks the key in the headers of a request, and returns the subprotocol to select for an
    /// upgrade: the first one offered.
    ///
    /// # Errors
    /// [`Unauthorized`]
    pub fn admit<'h>(&self, headers: &'h HeaderMap) -> Result<Option<&'h str>, Unauthorized> {
        admit(&self.shared.auth, headers)
    }

    /// Answers a plain HTTP request: health, status, a chat as a stream, the shutdown, and the
    /// paths known not to exist.
    ///
    /// # Cancel safety
    /// If the future is dropped, the response is lost. A chat that has started ends when the body
    /// of the response is dropped.
    pub async fn http(
        &self,
        request: Request<Bytes>,
        address: Option<SocketAddr>,
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
        if wanted != Some(parts.method) {
            return answer(StatusCode::NOT_FOUND, TEXT, NOT_FOUND);
        }
        if self.admit(&parts.headers).is_err() {
            return answer(StatusCode::UNAUTHORIZED, TEXT, UNAUTHORIZED);
        }
        match path {
            STATUS_PATH => match encode(&self.shared.status().await) {
                Ok(status) => answer(StatusCode::OK, JSON, status.into_bytes()),
                Err(_) => answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, "no status"),
            },
            STREAM_PATH => stream(&self.shared, &body, address),
            SHUTDOWN_PATH => {
                self.shared.asked_to_stop.give();
                answer(StatusCode::OK, JSON, "{\"ok\":true,\"shutdown\":true}")
            }
            _ => answer(StatusCode::BAD_REQUEST, TEXT, UPGRADE_FAILED),
        }
    }

    /// Serves one WebSocket that was upgraded already, or any other transport, to its end.
    ///
    /// # Cancel safety
    /// If the future is dropped, the connection is cut and the work on its chats is dropped.
    pub fn websocket<T: Transport>(
        &self,
        transport: T,
        address: Option<SocketAddr>,
    ) -> impl Future<Output = ()> + Send + use<A, T> {
        serve(Arc::clone(&self.shared), transport, address).map(drop)
    }

    /// Waits until a client requests the [shutdown](SHUTDOWN_PATH): then call [`stop`](Self::stop),
    /// and end the HTTP server.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn asked_to_stop(&self) {
        self.shared.asked_to_stop.get().cancelled().await;
    }

    /// Accepts no more chats on any connection. Running chats may go on for the [shutdown
    /// timeout](ServerOptions::with_shutdown_timeout), then all connections are closed.
    pub fn stop(&self) {
        self.shared.stopping.give();
    }
}

impl<A> fmt::Debug for Service<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service")
            .field("auth", &self.shared.auth)
            .finish_non_exhaustive()
    }
}

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
