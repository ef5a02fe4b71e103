//! Level 3: a client and a router over any transport (feature `tokio`), over WebSockets (`ws`), and
//! the server (`server`).
//!
//! `connect`, or [`connect_with`] over any transport, returns a [`Client`] for responses, the [`Events`],
//! and the [`Connection`], which *you* [run](Connection::run). Messages arrive as an
//! [`InboundMessage`], which is always answered. A [`Plugin`](crate::plugin::Plugin) does all this
//! on its own.
//!
//! A [`RouterRuntime`] is a [`Hub`](crate::hub::Hub) that many tasks share: it accepts texts,
//! serves clients on any transport, asks a [`Router`](crate::router::Router), and reports every
//! event. `Server` puts it on a socket.

mod client;
mod inbound;
mod left_answers;
mod protocol;
mod runtime;
#[cfg(feature = "server")]
mod serve;
#[cfg(feature = "ws")]
mod url;

use std::sync::Arc;

use rpc_core::net::Dialer;

pub use client::Client;
pub use inbound::{DROPPED, InboundMessage};
#[doc(hidden)]
pub use protocol::ClientProtocol;
pub use rpc_core::net::Connection;
#[cfg(feature = "server")]
pub use rpc_core::net::server::ServerHandle;
pub use runtime::{HubEvents, RouterOptions, RouterRuntime, Settled};
#[cfg(feature = "server")]
pub use serve::{Server, ServerOptions, http_config};

#[cfg(feature = "ws")]
pub use url::{ConnectError, connect, connect_lazy, dialer};

use crate::client::{ClientConfig, ClientEvent};

/// The name of the protocol in spans and metrics.
const SYSTEM: &str = "smarthole";
use left_answers::LeftAnswers;

/// An event of a client: its messages are always answered.
pub type Event = ClientEvent<InboundMessage>;

/// The events of a client: [`Event`]s, in order and bounded. A
/// message that is dropped here, because it is not taken or the events are dropped, is rejected.
pub type Events = rpc_core::net::Events<Event>;

/// Creates a client over any dialer: in memory, through a proxy, with your own TLS.
/// [`establish`](Connection::establish) of the connection makes the first attempt, and says why if it fails.
pub fn connect_with<D: Dialer>(
    dialer: D,
    config: impl Into<Arc<ClientConfig>>,
) -> (Client, Events, Connection) {
    let config = config.into();
    let link = config.link.clone();
    let left = Arc::new(LeftAnswers::default());
    let side = ClientProtocol::new(config, Arc::clone(&left));
    let (link, events, connection) = rpc_core::net::open(side, dialer, link);
    left.attach(link.downgrade());
    (Client::new(link), events, connection)
}
