//! WebSockets over TCP and TLS: [`WsDialer`] for clients, [`WsStream`] for both ends.
//!
//! A [`WsStream`] is a [`Transport`](super::Transport). It answers pings and Closes by itself and
//! flushes the answers although nobody sends, it takes no frame while the last ones are stuck, and
//! it hands messages on without copying them. Its buffers are small (4 KiB each way), because an
//! idle connection should cost little; both grow while a large message passes and keep that size.

mod config;
mod dialer;
mod socket;
mod stream;
mod url;

pub use config::{BadHeader, WsConfig};
pub use dialer::WsDialer;
pub use socket::Socket;
#[cfg(feature = "server")]
pub(crate) use stream::select_subprotocol;
pub use stream::{Handshake, Role, WsStream};
