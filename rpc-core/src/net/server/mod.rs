//! Accepting connections: plain HTTP/1 and WebSocket upgrades on one port, or behind a server of
//! another crate.
//!
//! A [`ProtocolServer`] owns the accept loop. It limits the number of connections and the time until
//! their request, checks peer, `Host` and `Origin` before anything else ([`Guards`]), answers plain
//! requests, and passes every upgraded connection to its [protocol](ServerProtocol::serve). It tracks
//! every task that it spawns: dropping the future of [`ProtocolServer::run`] ends all connections, and
//! [`ServerHandle::drain`] ends them in good order.
//!
//! ```
//! use std::sync::Arc;
//!
//! use futures_util::StreamExt;
//! use rpc_core::net::server::{Accepted, HttpConfig, ProtocolServer, ServerProtocol};
//! # use rpc_core::net::{Dialer as _, ws::WsDialer};
//!
//! /// Reads and says nothing.
//! struct Silent;
//!
//! impl ServerProtocol for Silent {
//!     type App = Self;
//!     type Options = HttpConfig;
//!
//!     fn new(app: Self, options: HttpConfig) -> (Arc<Self>, HttpConfig) {
//!         (Arc::new(app), options)
//!     }
//!
//!     async fn serve(self: Arc<Self>, mut accepted: Accepted) {
//!         loop {
//!             tokio::select! {
//!                 message = accepted.socket.next() => match message {
//!                     Some(Ok(message)) => {} // feed a machine
//!                     _ => break,
//!                 },
//!                 () = accepted.cancellation.cancelled() => break, // better: say goodbye
//!             }
//!         }
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = HttpConfig { paths: vec!["/rpc.ws".into()], ..HttpConfig::default() };
//! let server = ProtocolServer::<Silent>::bind("127.0.0.1:0", Silent, config).await?;
//! let (url, handle) = (format!("{}/rpc.ws", server.url()), server.handle());
//! let serving = tokio::spawn(server.run());
//! # let client = WsDialer::new(&url)?.dial().await?;
//! let report = handle.drain(std::time::Duration::from_secs(5)).await;
//! # assert_eq!((report.finished, report.aborted), (1, 0));
//! # serving.await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Mounting
//! [`ProtocolServer::mount`] returns a server without a socket, and a [`Service`]: a `tower::Service`
//! that axum takes with `route_service`, `nest_service` or `fallback_service`. Guards, limits, hooks and
//! drain are the same; connections run in [`ProtocolServer::run`] all the same.

mod body;
mod brake;
mod config;
mod connection;
mod guards;
mod head;
mod http1;
mod listener;
mod permits;
mod protocol;
mod run;
mod service;
mod shutdown;
mod tickets;
mod upgrade;
mod write_timeout;

pub use body::{Body, is_read, reply};
pub use brake::{Attempt, Brake, TooManyAttempts, is_guessable};
pub use config::{Hooks, HttpConfig, ServerLimits};
pub use connection::Accepted;
pub use guards::{BadGuard, Guards, HostPolicy, OriginPolicy, PeerPolicy, ProxyPolicy};
pub use listener::Listener;
pub use permits::{Counters, Permit};
pub use protocol::{HasRuntime, ProtocolServer, ServerProtocol};
pub use service::{PeerAddr, Service};
pub use shutdown::ServerHandle;
pub use tickets::Tickets;
