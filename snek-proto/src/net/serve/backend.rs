//! [`Backend`]: what a server is about.

use std::sync::Arc;

use async_trait::async_trait;
use rpc_core::{Json, Secret, Str};
use serde::Serialize;

use super::Peer;
use crate::error::RpcError;
use crate::frame::{Call, User};

/// What a server is about: who may log in, and what calls do.
///
/// Calls of one connection are started in the order in which they came, and run concurrently on
/// the connection's task, at most [`max_requests`](crate::server::ServerConfig::with_max_requests) at once; their
/// answers may come in any order. What a call does before it first waits is done before the next
/// call starts, so a backend that posts at once keeps the order of a client's messages. Work that
/// blocks belongs on a task of its own. A panic in a call answers it with `internal error` and
/// nothing else.
///
/// ```
/// use std::sync::Arc;
/// use async_trait::async_trait;
/// use rpc_core::{Json, Secret, Str};
/// use snek_proto::error::RpcError;
/// use snek_proto::frame::{Call, Channel, User};
/// use snek_proto::net::{Backend, Peer, answer};
///
/// struct Platform;
///
/// #[async_trait]
/// impl Backend for Platform {
///     async fn login(&self, _: &Arc<Peer>, name: &str, _: &Secret<Str>) -> Result<User, RpcError> {
///         Ok(User::new(name, name)) // everybody may log in
///     }
///
///     async fn call(&self, _: &Arc<Peer>, call: &Call) -> Result<Json, RpcError> {
///         match call {
///             Call::GetChannels => answer(&[Channel::new("general", "General", None)]),
///             other => Err(RpcError::new(format!("no method {}", other.method()))),
///         }
///     }
/// }
/// ```
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
        password: &Secret<Str>,
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
    async fn call(&self, peer: &Arc<Peer>, call: &Call) -> Result<Json, RpcError>;

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
pub fn answer(value: &impl Serialize) -> Result<Json, RpcError> {
    Json::of(value).map_err(|error| RpcError::new(error.to_string()))
}
