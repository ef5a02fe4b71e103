//! A host's pages beside the WebSocket: `/health`, `/ready`, `/info` and `/sessions/{id}`.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::UPGRADE;
use http::{Method, Request, Response, StatusCode};
use rpc_core::Instant;
use rpc_core::net::server::{Body, HttpConfig, is_read, reply};
use serde_json::{Value, json};

use super::Cluster;
use crate::frame::{SessionState, Signed};
use crate::hub::Owner;
use crate::net::HostRuntime;
use crate::storage::StorageError;

/// The contents of the pages.
pub(super) struct Pages {
    pub(super) runtime: HostRuntime,
    pub(super) name: String,
    pub(super) tools: Vec<String>,
    pub(super) about: serde_json::Map<String, Value>,
    pub(super) trust: &'static str,
    pub(super) started: Instant,
    /// What answers all other requests.
    pub(super) other: HttpConfig,
    pub(super) cluster: Option<Cluster>,
}

impl Pages {
    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Bytes>,
        peer: SocketAddr,
    ) -> Response<Body> {
        let is_get = is_read(request.method());
        let answer = match request.uri().path() {
            // The known hosts do not open a WebSocket anywhere else.
            _ if request.headers().contains_key(UPGRADE) => {
                plain(StatusCode::FORBIDDEN, "WebSockets are at /ws")
            }
            "/health" if is_get => self.health(StatusCode::OK, "healthy"),
            "/ready" if is_get => match self.is_joined() {
                true => self.health(StatusCode::OK, "ready"),
                false => self.health(StatusCode::SERVICE_UNAVAILABLE, "not in the cluster"),
            },
            "/info" if is_get => {
                let mut info = json!({
                    "name": self.name,
                    "address": self.runtime.address(),
                    "tools": self.tools,
                    "trust": self.trust,
                    "version": env!("CARGO_PKG_VERSION"),
                });
                for (name, value) in &self.about {
                    info[name.as_str()] = value.clone();
                }
                json(StatusCode::OK, &info)
            }
            path => match path.strip_prefix("/sessions/") {
                Some(id) if is_get => self.session(id).await,
                Some(id) if *request.method() == Method::DELETE => {
                    self.delete(id, request.body()).await
                }
                _ => match self.other.http(request, peer) {
                    Some(answer) => return answer.await,
                    None => plain(StatusCode::NOT_FOUND, "not found"),
                },
            },
        };
        answer.map(Into::into)
    }

    fn health(&self, code: StatusCode, status: &'static str) -> Response<Bytes> {
        let uptime = self.started.elapsed().as_secs();
        json(
            code,
            &json!({ "status": status, "agent": self.name, "uptime": uptime }),
        )
    }

    /// Returns whether this host serves clients: alone, or in its cluster.
    fn is_joined(&self) -> bool {
        self.cluster.as_ref().is_none_or(Cluster::is_joined)
    }

    /// Returns the status of a session. These callers have proved nothing, so only sessions of
    /// unsigned callers are visible, whose owners are known by the id alone.
    async fn session(&self, id: &str) -> Response<Bytes> {
        let asker = Some(Owner::Unsigned);
        let answer = self.runtime.status(asker, Some(id.into())).await;
        let code = match answer.status {
            SessionState::NotFound => StatusCode::NOT_FOUND,
            _ => StatusCode::OK,
        };
        json(code, &json!({ "session_id": id, "status": answer.status }))
    }

    /// Deletes a session of the caller who has signed the body, as CONNECT is signed.
    async fn delete(&self, id: &str, body: &[u8]) -> Response<Bytes> {
        let Ok(signed) = rpc_core::json::from_slice::<Signed>(body) else {
            let why = "the body is the signed part of a frame: payload, from and signature";
            return plain(StatusCode::BAD_REQUEST, why);
        };
        match self.runtime.delete(id, &signed).await {
            Ok(Ok(true)) => plain(StatusCode::NO_CONTENT, ""),
            Ok(Ok(false)) => plain(StatusCode::NOT_FOUND, "you have no such session"),
            Ok(Err(error @ StorageError::Fenced)) => plain(StatusCode::CONFLICT, error.to_string()),
            Ok(Err(error)) => plain(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
            Err(error) => plain(StatusCode::FORBIDDEN, error.to_string()),
        }
    }
}

fn json(status: StatusCode, value: &Value) -> Response<Bytes> {
    reply(status, "application/json", value.to_string())
}

fn plain(status: StatusCode, why: impl Into<String>) -> Response<Bytes> {
    reply(status, "text/plain; charset=utf-8", why.into())
}
