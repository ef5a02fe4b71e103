//! Level 3: machines on tokio. Any transport with feature `tokio`; WebSockets with `ws`.

mod dial;
mod transport;
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub mod server;
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub mod tls;
#[cfg(feature = "ws")]
#[cfg_attr(docsrs, doc(cfg(feature = "ws")))]
pub mod ws;

pub use dial::{DialError, Dialer};
pub use transport::{Message, Transport, TransportError};
