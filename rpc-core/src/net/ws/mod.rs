//! WebSockets over TCP and TLS: [`WsDialer`] for clients, [`WsStream`] for both ends.
//!
//! A [`WsStream`] is a [`Transport`](super::Transport). It answers pings and
//! Closes and flushes the answers even while nothing is sent, accepts no frame while earlier ones
//! are blocked, and sends a peer that violates the protocol the reason. While little is said, its buffers are
//! small: 1 KiB for reading and at most 1 KiB for writing. Compression is not offered.
//!
//! # Proxies
//! A [`WsDialer`] connects directly, unless
//! [`with_proxy`](WsDialer::with_proxy) (feature `proxy`) gives it the proxies of the environment or
//! others: nothing is read from the environment otherwise.
//!
//! For another kind of way, pass the client a [`Dialer`](super::Dialer) of your own that opens a
//! stream, with TLS inside it for `wss`, and passes it to [`WsDialer::upgrade`].

mod attempt;
mod config;
mod connect;
mod dialer;
mod frames;
mod handshake;
mod linger;
#[cfg(feature = "proxy")]
mod proxy;
mod receive;
mod socket;
mod stream;
mod url;
mod wake_flag;

pub use config::{BadHeader, WsConfig};
pub use connect::ConnectError;
pub use dialer::WsDialer;
#[cfg(feature = "server")]
pub(crate) use handshake::{
    EXPLANATION, accept_key, is_meant, is_upgrade, offers, select_subprotocol,
};
#[cfg(feature = "proxy")]
pub use proxy::ProxyConfig;
#[cfg(feature = "server")]
pub(crate) use receive::{LogCount, NoRoom, Receive, ReceiveBudget, grow};
pub use socket::Socket;
pub use stream::WsStream;
pub use tokio_tungstenite::tungstenite::protocol::Role;
pub use url::{redact_urls, urls};
#[cfg(feature = "server")]
pub(crate) use wake_flag::WakeFlag;
