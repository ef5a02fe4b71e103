//! Level 3: a server over any transport (feature `tokio`) and over WebSockets (`server`).
//!
//! A [`Switch`] is a [`Hub`](crate::hub::Hub) that many tasks share: texts go in, clients are served
//! on any transport, a [`Router`](crate::router::Router) is asked, and everything that happens can
//! be watched. `Server` puts it on a socket.

#[cfg(feature = "server")]
mod serve;
mod switch;

#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub use serve::{Server, ServerHandle, ServerOptions, http_config};
pub use switch::{AskError, HistoryItem, HubEvents, RouterOptions, ServerSide, Settled, Switch};
