//! Accepting connections: plain HTTP/1 and WebSocket upgrades on one port, or behind a server of
//! another crate.
//!
//! [`Server`] owns the accept loop. It limits the number of connections and the time until their
//! request, checks peer, `Host` and `Origin` before anything else ([`Guards`]), answers plain
//! requests, and passes every upgraded connection to your handler. It tracks every task that it
//! spawns: dropping the future of [`Server::run`] ends all connections, and
//! [`ServerHandle::drain`] ends them in good order.
//!
//! ```
//! use futures_util::{SinkExt, StreamExt};
//! use rpc_core::net::server::{Accepted, Server, HttpConfig};
//! # use rpc_core::net::{Dialer as _, ws::WsDialer};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let config = HttpConfig::default().with_path("/rpc.ws");
//! let server = Server::bind("127.0.0.1:0", config).await?;
//! let (url, handle) = (format!("ws://{}/rpc.ws", server.local_addr()), server.handle());
//! let serving = tokio::spawn(server.run(|mut accepted: Accepted| async move {
//!     loop {
//!         tokio::select! {
//!             message = accepted.socket.next() => match message {
//!                 Some(Ok(message)) => {} // feed a machine
//!                 _ => break,
//!             },
//!             () = accepted.cancellation.cancelled() => break, // better: say goodbye
//!         }
//!     }
//! }));
//! # let client = WsDialer::new(&url)?.dial().await?;
//! let report = handle.drain(std::time::Duration::from_secs(5)).await;
//! # assert_eq!((report.finished, report.aborted), (1, 0));
//! # serving.await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Mounting
//! [`Server::mount`] returns a server without a socket, and a [`Service`]: a `tower::Service` that
//! axum takes with `route_service`, `nest_service` or `fallback_service`. Guards, limits, hooks,
//! handler and drain are the same; connections run in [`Server::run`] all the same.
//!
//! ```
//! use rpc_core::net::server::{Accepted, HttpConfig, Server};
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() {
//! let (server, service) = Server::mount(HttpConfig::default().with_path("/rpc.ws"));
//! let handle = server.handle();
//! let serving = tokio::spawn(server.run(|accepted: Accepted| async move { /* serve it */ }));
//! // let app = axum::Router::new().route_service("/rpc.ws", service);
//! # drop(service);
//! handle.drain(std::time::Duration::from_secs(5)).await;
//! # serving.await.unwrap();
//! # }
//! ```

mod body;
mod brake;
mod config;
mod connection;
mod guards;
mod http1;
mod listener;
mod permits;
mod protocol;
mod run;
mod service;
mod shutdown;
mod upgrade;
mod write_timeout;

pub use body::Body;
pub use brake::{Brake, TooManyAttempts, caller};
pub use config::{HttpConfig, ServerLimits};
pub use connection::Accepted;
pub use guards::{BadGuard, Guards, HostPolicy, OriginPolicy, PeerPolicy};
pub use listener::Listener;
pub use permits::{Counters, Permit};
pub use protocol::{ProtocolServer, ServerProtocol};
pub use run::Server;
pub use service::{PeerAddr, Service};
pub use shutdown::ServerHandle;
