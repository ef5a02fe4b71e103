//! Level 3: a client over any transport (feature `tokio`), over WebSockets (`ws`), and the server
//! (`server`).
//!
//! [`connect_with`], over WebSockets `connect`, gives a [`Client`] for calls, the [`Events`], and the
//! [`Connection`], whose [`run`](Connection::run) *you* spawn. The client never repeats a call;
//! [`Bot`](crate::bot::Bot) does, as the specification orders.

mod client;
mod protocol;
#[cfg(feature = "server")]
mod serve;

use std::sync::Arc;

use rpc_core::net::{Dialer, LinkConfig, link};

pub use client::Client;
pub use protocol::{ClientSide, ServerSide};
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub use serve::{
    Backend, MemoryBackend, Peer, Server, ServerHandle, ServerOptions, answer, http_config,
};

use crate::client::{ClientConfig, ClientEvent, reconnect_policy};

/// What a client's application receives: [`ClientEvent`]s and changes of the link's state, in
/// order and bounded.
pub type Events = rpc_core::net::Events<ClientEvent>;

/// A client's connection and its successors: spawn [`run`](rpc_core::net::Connection::run).
pub type Connection<D> = rpc_core::net::Connection<ClientSide, D>;

/// A [`LinkConfig`] with the specification's [reconnects](crate::client::reconnect_policy) and a connect timeout
/// of 10 s.
#[must_use]
pub fn link_config() -> LinkConfig {
    LinkConfig::default().with_reconnect(reconnect_policy())
}

/// Connects to a server, and again whenever the line is lost.
///
/// Nothing happens until the connection's `run` is polled.
///
/// ```no_run
/// use snek_proto::client::ClientConfig;
/// use snek_proto::{Final, net};
///
/// # async fn f() -> Result<(), Box<dyn std::error::Error>> {
/// let config = ClientConfig::new("mybot", "mypassword");
/// let (client, mut events, connection) = net::connect("ws://127.0.0.1:8080/rpc.ws", config)?;
/// tokio::spawn(connection.run());
/// client.ready().await?;
/// client.send_message("general", "hello", Final::Yes).await?;
/// while let Some(event) = events.next().await {
///     println!("{event:?}");
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`DialError::BadUrl`](rpc_core::net::DialError::BadUrl).
#[cfg(feature = "ws")]
#[cfg_attr(docsrs, doc(cfg(feature = "ws")))]
pub fn connect(
    url: &str,
    config: ClientConfig,
) -> Result<(Client, Events, Connection<rpc_core::net::ws::WsDialer>), rpc_core::net::DialError> {
    Ok(connect_with(dialer(url, &config)?, config, link_config()))
}

/// A WebSocket dialer for a server, with the message limit of `config`. `http(s)` URLs are read
/// as `ws(s)`; a URL without a path gets `/rpc.ws`.
///
/// # Errors
/// [`DialError::BadUrl`](rpc_core::net::DialError::BadUrl).
#[cfg(feature = "ws")]
#[cfg_attr(docsrs, doc(cfg(feature = "ws")))]
pub fn dialer(
    url: &str,
    config: &ClientConfig,
) -> Result<rpc_core::net::ws::WsDialer, rpc_core::net::DialError> {
    let ws = rpc_core::net::ws::WsConfig::default()
        .with_max_message(config.limits.max_message_bytes)
        .with_max_outgoing(config.limits.max_message_bytes);
    Ok(rpc_core::net::ws::WsDialer::new(url)?
        .or_path("/rpc.ws")?
        .with_config(ws))
}

/// Connects through any dialer: in memory, through a proxy, with your own TLS.
#[must_use]
pub fn connect_with<D: Dialer>(
    dialer: D,
    config: impl Into<Arc<ClientConfig>>,
    link_config: impl Into<Arc<LinkConfig>>,
) -> (Client, Events, Connection<D>) {
    let (link, events, connection) = link::open(ClientSide::new(config), dialer, link_config);
    (Client::new(link), events, connection)
}
