//! Level 3: machines on tokio. Any transport with feature `tokio`; WebSockets with `ws`.

mod cancel;
mod dial;
mod driver;
pub mod link;
pub mod mem;
mod observe;
mod queue;
mod running;
#[cfg(feature = "server")]
#[cfg_attr(docsrs, doc(cfg(feature = "server")))]
pub mod server;
#[cfg(feature = "tls")]
#[cfg_attr(docsrs, doc(cfg(feature = "tls")))]
pub mod tls;
mod transport;
#[cfg(feature = "ws")]
#[cfg_attr(docsrs, doc(cfg(feature = "ws")))]
pub mod ws;

pub use cancel::{Cancellation, Canceller};
pub use dial::{DialError, Dialer};
pub use driver::{Driver, DriverConfig, clock};
pub use link::{
    Connection, Events, Link, LinkConfig, LinkEvent, LinkState, Protocol, Sorted, WeakLink,
};
pub use observe::{Direction, Frame, FrameKind, Observer, Redact};
pub use queue::{Consumer, LagPolicy, Producer, Push, QueueConfig, Queued, queue};
pub use running::Running;
pub use transport::{Message, Transport, TransportError};
