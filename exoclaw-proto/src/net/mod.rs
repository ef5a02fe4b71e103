//! Level 3: a client over any transport (feature `tokio`), over WebSockets (`ws`), and the server
//! (`server`).
//!
//! `connect`, or [`connect_with`] over any transport, returns a [`Client`] for requests and chats, the
//! [`Events`], and the [`Connection`], which *you* [run](Connection::run). Nothing is ever
//! sent twice.

mod chat;
mod client;
mod protocol;
#[cfg(feature = "server")]
mod serve;
mod turns;
#[cfg(feature = "ws")]
mod url;

use std::sync::Arc;

use rpc_core::net::Dialer;

pub use chat::Chat;
pub use client::Client;
#[doc(hidden)]
pub use protocol::ClientProtocol;
pub use rpc_core::net::Connection;
#[cfg(feature = "server")]
pub use rpc_core::net::server::ServerHandle;
#[cfg(feature = "server")]
pub use serve::{
    AppError, Backend, ChatReply, DynBackend, Gone, MemoryBackend, Peer, Server, ServerOptions,
    backend_fn, http_config,
};
pub use turns::{SessionTurns, TurnGuard};
#[cfg(feature = "ws")]
pub use url::{ConnectError, connect, connect_lazy, dialer};

use crate::client::{ClientConfig, ClientEvent};

/// The name of the protocol in spans and metrics.
const SYSTEM: &str = "exoclaw";

/// The receiver of a client's events: [`ClientEvent`]s, in order and bounded. Answers and chats go to their callers instead.
pub type Events = rpc_core::net::Events<ClientEvent>;

/// Creates a client over any dialer, for example in memory, through a proxy, or with your own TLS. Does
/// not check whether the connection is safe for a token.
/// [`establish`](Connection::establish) of the connection makes the first attempt, and says why if it fails.
pub fn connect_with<D: Dialer>(
    dialer: D,
    config: impl Into<Arc<ClientConfig>>,
) -> (Client, Events, Connection) {
    let config = config.into();
    let link = config.link.clone();
    let side = ClientProtocol::new(Arc::clone(&config));
    let (link, events, connection) = rpc_core::net::open(side, dialer, link);
    (Client::new(link, config), events, connection)
}
