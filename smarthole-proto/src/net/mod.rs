//! Level 3: a client and a router over any transport (feature `tokio`), over WebSockets (`ws`), and
//! the server (`server`).
//!
//! [`connect_with`], over WebSockets `connect`, returns a [`Client`] for responses, the [`Events`],
//! and the [`Connection`], whose [`run`](Connection::run) *you* spawn. Messages arrive as an
//! [`InboundMessage`], which is always answered. A [`Plugin`](crate::plugin::Plugin) does all this
//! on its own.
//!
//! A [`RouterRuntime`] is a [`Hub`](crate::hub::Hub) that many tasks share: it accepts texts,
//! serves clients on any transport, asks a [`Router`](crate::router::Router), and reports every
//! event. `Server` puts it on a socket.

mod client;
mod event;
mod inbound;
mod left_answers;
mod protocol;
mod runtime;
#[cfg(feature = "server")]
mod serve;

use std::sync::Arc;

use rpc_core::net::{Dialer, LinkConfig};

pub use client::Client;
pub use event::Event;
pub use inbound::{DROPPED, InboundMessage, Responder};
pub use protocol::ClientProtocol;
pub use runtime::{AskError, HubEvents, RouterOptions, RouterRuntime, Settled};
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub use serve::{Server, ServerHandle, ServerOptions, http_config};

use crate::client::{ClientConfig, reconnect_policy};

/// The name of the protocol in spans and metrics.
const SYSTEM: &str = "smarthole";
use left_answers::LeftAnswers;

/// The events of a client: [`Event`]s and changes of the link's state, in order and bounded. A
/// message that is dropped here, because it is not taken or the events are dropped, is rejected.
pub type Events = rpc_core::net::Events<Event>;

/// A client's connection and its successors: spawn [`run`](rpc_core::net::Connection::run).
pub type Connection<D> = rpc_core::net::Connection<ClientProtocol, D>;

/// Returns a [`LinkConfig`] with the specification's [reconnects](crate::client::reconnect_policy)
/// and a connect timeout of 10 s.
#[must_use]
pub fn link_config() -> LinkConfig {
    LinkConfig::default().with_reconnect(reconnect_policy())
}

/// Connects to a router, and reconnects whenever the connection is lost. Several URLs, separated by
/// commas, are the nodes of one service, which a [`WsDialer`](rpc_core::net::ws::WsDialer) goes
/// round.
///
/// Nothing happens until the connection's `run` is polled.
///
/// ```
/// use smarthole_proto::client::ClientConfig;
/// use smarthole_proto::net::{self, Event};
/// use smarthole_proto::frame::{Notification, Registration};
/// use rpc_core::net::LinkEvent;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use smarthole_proto::{hub::Input, net::Server, router::Keywords};
/// # let server = Server::bind("127.0.0.1:0", Keywords::new(), Default::default()).await?;
/// # let (url, runtime, handle) = (server.url(), server.runtime(), server.handle());
/// # tokio::spawn(server.run());
/// # let mut told = runtime.events();
/// # let asking = tokio::spawn(async move {
/// #     while runtime.clients().is_empty() {
/// #         told.next().await;
/// #     }
/// #     runtime.ask(Input::text("notes: milk")).await
/// # });
/// let config = ClientConfig::new(Registration::new("notes", "I keep notes."))?;
/// let (client, mut events, connection) = net::connect(&url, config)?; // ws://127.0.0.1:9473
/// tokio::spawn(connection.run());
/// while let Some(event) = events.next().await {
///     if let LinkEvent::Event(Event::Message(message)) = event {
///         println!("{}", message.text);
///         message.ack().await?;
///         message.notify(Notification::new("noted")).await?;
///         # client.close();
///     }
/// }
/// println!("ended: {}", client.closed().await);
/// # assert!(asking.await??.is_taken());
/// # drop(handle);
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

/// Returns a WebSocket dialer for a router, with the message limit of `config` in both directions.
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
    Ok(rpc_core::net::ws::WsDialer::new(url)?.with_config(ws))
}

/// Connects through any dialer: in memory, through a proxy, with your own TLS.
#[must_use]
pub fn connect_with<D: Dialer>(
    dialer: D,
    config: impl Into<Arc<ClientConfig>>,
    link_config: impl Into<Arc<LinkConfig>>,
) -> (Client, Events, Connection<D>) {
    let left = Arc::new(LeftAnswers::default());
    let side = ClientProtocol::new(config, Arc::clone(&left));
    let (link, events, connection) = rpc_core::net::open(side, dialer, link_config);
    left.attach(link.downgrade());
    (Client::new(link), events, connection)
}
