//! [`Backend`]: the application behind a server.

use std::future::{Future, ready};
use std::sync::Arc;

use rpc_core::{Secret, Str};

use super::{CallReply, Peer, Replied};
use crate::error::RpcError;
use crate::frame::{Call, User};

/// The application behind a server: it checks logins and carries out calls.
///
/// Calls of one connection start in the order of their arrival, and run concurrently on the
/// connection's task, at most [`max_requests`](crate::server::ServerConfig::max_requests) at
/// once; they may be answered in any order. A call runs to its first wait before the next one
/// starts, so a backend that posts before it waits keeps the order of a client's messages. Spawn a
/// task for work that blocks. A panic in a call ends only that call, with the answer `internal
/// error`.
///
/// Every method is an `async fn` in an implementation, whose future must be `Send`.
///
/// ```
/// use std::sync::Arc;
/// use snek_proto::{Secret, Str};
/// use snek_proto::error::RpcError;
/// use snek_proto::frame::{Call, Channel, User};
/// use snek_proto::net::{Backend, Peer, Replied, CallReply};
///
/// struct Platform;
///
/// impl Backend for Platform {
///     async fn login(&self, _: &Arc<Peer>, name: &str, _: &Secret<Str>) -> Result<User, RpcError> {
///         Ok(User::new(name, name)) // everyone may log in
///     }
///
///     async fn call(
///         &self,
///         _: &Arc<Peer>,
///         call: &Call,
///         reply: CallReply<'_>,
///     ) -> Result<Replied, RpcError> {
///         match call {
///             Call::GetChannels => reply.send(&[Channel::new("general", "General", None)]),
///             other => Err(RpcError::new(format!("no method {}", other.method()))),
///         }
///     }
/// }
/// ```
pub trait Backend: Send + Sync + 'static {
    /// Checks credentials. Returns the user's record, which is the answer to the client.
    ///
    /// # Errors
    /// The answer to the client.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    fn login(
        &self,
        peer: &Arc<Peer>,
        username: &str,
        password: &Secret<Str>,
    ) -> impl Future<Output = Result<User, RpcError>> + Send;

    /// Handles a successful login: from now on [`Peer::push`] reaches the client. Called before the
    /// client gets its answer, so everything is set up before its next call.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    fn logged_in(&self, _peer: &Arc<Peer>, _user: &User) -> impl Future<Output = ()> + Send {
        ready(())
    }

    /// Carries out a call of a logged-in client; never a login. Answer with [`CallReply::send`].
    ///
    /// # Errors
    /// The answer to the client.
    ///
    /// # Cancel safety
    /// The future is dropped if the connection ends first.
    fn call(
        &self,
        peer: &Arc<Peer>,
        call: &Call,
        reply: CallReply<'_>,
    ) -> impl Future<Output = Result<Replied, RpcError>> + Send;

    /// Handles the end of a connection. Called once for each, logged in or not.
    ///
    /// # Cancel safety
    /// The future runs to completion, unless the server's drain reaches its deadline.
    fn disconnected(&self, _peer: &Arc<Peer>) -> impl Future<Output = ()> + Send {
        ready(())
    }
}

rpc_core::dynamic! {
    /// Any [`Backend`]: for a program that chooses one when it starts.
    pub struct DynBackend(any_backend): Backend {
        async fn login(&self, peer: &Arc<Peer>, username: &str, password: &Secret<Str>) -> Result<User, RpcError>;
        async fn logged_in(&self, peer: &Arc<Peer>, user: &User);
        async fn call(&self, peer: &Arc<Peer>, call: &Call, reply: CallReply<'_>) -> Result<Replied, RpcError>;
        async fn disconnected(&self, peer: &Arc<Peer>);
    }
}
