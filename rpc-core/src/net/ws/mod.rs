//! WebSockets over TCP and TLS: [`WsDialer`] for clients, [`WsStream`] for both ends.
//!
//! A [`WsStream`] is a [`Transport`](super::Transport). It answers pings and
//! Closes and flushes the answers even while nothing is sent, accepts no frame while earlier ones
//! are blocked, and sends a peer that violates the protocol the reason. Its buffers are small: 1 KiB
//! for reading and 4 KiB for writing. Compression is not offered.
//!
//! # Proxies
//! A [`WsDialer`] connects directly: it reads no proxy from the environment (`HTTP_PROXY`,
//! `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`) or the system, and does not speak `CONNECT`. To use a
//! proxy, pass the client a [`Dialer`](super::Dialer) of your own that opens the tunnel, with TLS
//! inside it for `wss`, and passes the stream to [`WsDialer::upgrade`]:
//!
//! ```
//! use rpc_core::net::ws::{WsDialer, WsStream};
//! use rpc_core::net::{DialError, Dialer};
//! use tokio::net::TcpStream;
//!
//! struct Proxied {
//!     proxy: String,
//!     server: WsDialer,
//! }
//!
//! impl Dialer for Proxied {
//!     type Transport = WsStream<TcpStream>;
//!
//!     async fn dial(&self) -> Result<Self::Transport, DialError> {
//!         let unreachable = |source| DialError::Unreachable {
//!             host: self.proxy.clone(),
//!             source,
//!         };
//!         let tunnel = TcpStream::connect(&self.proxy).await.map_err(unreachable)?;
//!         // Say `CONNECT host:port` here, or what else your proxy wants, and read its answer.
//!         self.server.upgrade(tunnel).await
//!     }
//! }
//! ```

mod attempt;
mod config;
mod connect;
mod dialer;
mod frames;
mod handshake;
mod linger;
mod receive;
mod rotation;
mod socket;
mod stream;
mod url;

pub use config::{BadHeader, WsConfig};
pub use connect::ConnectError;
pub use dialer::WsDialer;
#[cfg(feature = "server")]
pub(crate) use handshake::{accept_key, is_meant, is_upgrade, offers, select_subprotocol};
#[cfg(feature = "server")]
pub(crate) use receive::{LogCount, NoRoom, Receive, ReceiveBudget, grow};
pub use socket::Socket;
pub use stream::WsStream;
pub use tokio_tungstenite::tungstenite::protocol::Role;
pub use url::{redact_urls, urls};
