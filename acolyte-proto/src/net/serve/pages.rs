//! The answers to plain HTTP requests.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, SEC_WEBSOCKET_PROTOCOL};
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use rpc_core::net::server::{Body, is_read, reply};

use super::agent::Agent;
use super::daemon::Daemon;
use super::run::Client;
use super::stream::stream;
use crate::auth::{Auth, Credentials};
use crate::codec::encode;
use crate::http::{NOT_FOUND, UNAUTHORIZED, UPGRADE_FAILED};
use crate::limits::{HEALTH_PATH, RPC_PATH, SHUTDOWN_PATH, STATUS_PATH, STREAM_PATH};

const JSON: &str = "application/json;charset=utf-8";
pub(super) const TEXT: &str = "text/plain;charset=utf-8";

impl<A: Agent> Daemon<A> {
    /// Returns the answer to a request without the key, before its body is read.
    pub(super) fn refusal(&self, parts: &Parts) -> Option<Response<Body>> {
        if !self.needs_key(parts) || admit(&self.auth, &parts.headers).is_some() {
            return None;
        }
        Some(reply(StatusCode::UNAUTHORIZED, TEXT, UNAUTHORIZED))
    }

    pub(super) fn needs_key(&self, parts: &Parts) -> bool {
        !is_health(parts) && self.is_known(parts)
    }

    fn is_known(&self, parts: &Parts) -> bool {
        let wanted = match parts.uri.path() {
            STATUS_PATH | RPC_PATH => Method::GET,
            STREAM_PATH => Method::POST,
            SHUTDOWN_PATH if self.admin_shutdown => Method::POST,
            _ => return false,
        };
        parts.method == wanted
    }

    /// Answers a plain HTTP request that is not [refused](Self::refusal): health, status, a chat as a stream, the
    /// shutdown, and the paths known not to exist.
    pub(super) async fn http(
        self: Arc<Self>,
        request: Request<Bytes>,
        address: SocketAddr,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        if is_health(&parts) {
            return reply(StatusCode::OK, JSON, "{\"ok\":true}");
        }
        if !self.is_known(&parts) {
            return reply(StatusCode::NOT_FOUND, TEXT, NOT_FOUND);
        }
        match parts.uri.path() {
            STATUS_PATH => match encode(&self.status().await) {
                Ok(status) => reply(StatusCode::OK, JSON, status.into_bytes()),
                Err(_) => reply(StatusCode::INTERNAL_SERVER_ERROR, TEXT, "no status"),
            },
            STREAM_PATH => stream(self, &body, Client::new(address, Arc::new(parts))),
            SHUTDOWN_PATH => {
                self.asked_to_stop.notify_one();
                reply(StatusCode::OK, JSON, "{\"ok\":true,\"shutdown\":true}")
            }
            _ => reply(StatusCode::BAD_REQUEST, TEXT, UPGRADE_FAILED),
        }
    }
}

/// Returns whether a request asks for the health, at the known path or at those of orchestrators.
fn is_health(parts: &Parts) -> bool {
    is_read(&parts.method) && [HEALTH_PATH, "/health", "/ready"].contains(&parts.uri.path())
}

/// Checks the key in the headers of a request, and returns the subprotocol to select for an upgrade:
/// the first one offered.
pub(super) fn admit<'h>(auth: &Auth, headers: &'h HeaderMap) -> Option<Credentials<'h>> {
    let mut shown = Credentials::default();
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
    auth.check(&shown).then_some(shown)
}
