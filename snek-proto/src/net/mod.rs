//! Level 3: a client over any transport (feature `tokio`), over WebSockets (`ws`), and the server
//! (`server`), alone or with others (`cluster`).
//!
//! `connect`, or [`connect_with`] over any transport, returns a [`Client`] for calls, the [`Events`],
//! and the [`Connection`], which *you* [run](Connection::run). The client never repeats a
//! call; [`Bot`](crate::bot::Bot) repeats messages as the specification requires.

mod client;
#[cfg(feature = "cluster")]
mod cluster;
mod protocol;
#[cfg(feature = "server")]
mod serve;
#[cfg(feature = "ws")]
mod url;

use std::sync::Arc;

use rpc_core::net::Dialer;

pub use client::Client;
#[cfg(feature = "cluster")]
pub use cluster::{ClusterBackend, ClusterError, ClusterOptions, ClusterRunner};
#[doc(hidden)]
pub use protocol::ClientProtocol;
pub use rpc_core::net::Connection;
#[cfg(feature = "server")]
pub use rpc_core::net::server::ServerHandle;
#[cfg(feature = "server")]
pub use serve::{
    Backend, CallReply, DynBackend, MemoryBackend, Peer, Replied, Server, ServerOptions,
    http_config,
};
#[cfg(feature = "ws")]
pub use url::{ConnectError, connect, connect_lazy, dialer};

use crate::client::{ClientConfig, ClientEvent};

/// The name of the protocol in spans and metrics.
const SYSTEM: &str = "snek";

/// The receiver of a client's events: [`ClientEvent`]s, in order and bounded.
pub type Events = rpc_core::net::Events<ClientEvent>;

/// Creates a client over any dialer, for example in memory, through a proxy, or with your own TLS.
/// [`establish`](Connection::establish) of the connection makes the first attempt, and says why if it fails.
pub fn connect_with<D: Dialer>(
    dialer: D,
    config: impl Into<Arc<ClientConfig>>,
) -> (Client, Events, Connection) {
    let config = config.into();
    let link = config.link.clone();
    let (link, events, connection) = rpc_core::net::open(ClientProtocol::new(config), dialer, link);
    (Client::new(link), events, connection)
}
