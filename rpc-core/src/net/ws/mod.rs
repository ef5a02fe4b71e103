//! WebSockets over TCP and TLS: [`WsDialer`] for clients, [`WsStream`] for both ends.
//!
//! A [`WsStream`] is a [`Transport`](super::Transport). It answers pings and Closes by itself and
//! flushes the answers although nobody sends, it takes no frame while the last ones are stuck, and
//! it copies a message at most once. It holds memory only for what is under way: an idle connection
//! has no buffer, and what a large message or a burst needed is given back.

mod config;
mod dialer;
pub(crate) mod frame;
mod handshake;
mod socket;
mod stream;
mod url;

pub use config::{BadHeader, WsConfig};
pub use dialer::WsDialer;
pub use handshake::Handshake;
#[cfg(feature = "testing")]
pub(crate) use handshake::answer_to;
#[cfg(feature = "server")]
pub(crate) use handshake::{accept_key, is_upgrade, offers, select_subprotocol};
pub use socket::Socket;
pub use stream::{Role, WsStream};
