//! Level 3: a client over any transport (feature `tokio`), over WebSockets (`ws`), over HTTP and
//! server-sent events (`sse`), and the server (`server`).
//!
//! `connect`, or [`connect_with`] over any transport, returns a [`Client`] for chats and questions, the
//! [`Events`], and the [`Connection`], which *you* [run](Connection::run). `SseClient`
//! needs none of that, and its chats are the same [`Chat`]s. Nothing is ever sent twice.

mod chat;
mod client;
mod protocol;
#[cfg(feature = "server")]
mod serve;
#[cfg(feature = "sse")]
mod sse;
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
    Agent, ChatReply, DynAgent, EmitError, Server, ServerOptions, agent_fn, http_config,
};
#[cfg(feature = "sse")]
pub use sse::SseClient;
#[cfg(feature = "ws")]
pub use url::{ConnectError, connect, connect_lazy, dialer};

use crate::client::{ClientConfig, ClientEvent};

/// The name of the protocol in spans and metrics.
const SYSTEM: &str = "acolyte";

/// A client's events besides chats and answers: [`ClientEvent`]s, in order and bounded. Chats and answers go to their callers.
pub type Events = rpc_core::net::Events<ClientEvent>;

/// Creates a client over any dialer: in memory, through a proxy, with your own TLS. The dialer must send
/// the key of `config`.
/// [`establish`](Connection::establish) of the connection makes the first attempt, and says why if it fails.
pub fn connect_with<D: Dialer>(
    dialer: D,
    config: impl Into<Arc<ClientConfig>>,
) -> (Client, Events, Connection) {
    let config = config.into();
    let link = config.link.clone();
    let side = ClientProtocol::new(config);
    let (link, events, connection) = rpc_core::net::open(side, dialer, link);
    (Client::new(link), events, connection)
}
