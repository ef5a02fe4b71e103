//! Level 3: machines on tokio, or in a page. Any transport with feature `tokio`; WebSockets with `ws`,
//! in a page with `web`.
//!
//! # Links
//! A [`Link`] is level 3 for all protocols: commands, calls, events, reconnects.
//!
//! A protocol supplies a [`Protocol`]: the machine, its resume value, and the meaning of its
//! events. [`open`] returns three parts:
//!
//! - [`Link`], a handle that is cheap to clone: typed commands, calls and streams;
//! - [`Events`], everything the application has to know, in order, bounded;
//! - [`Connection`], the task. *You* spawn [`Connection::run`]: there are no hidden tasks.
//!
//! # Servers
//! An accepted connection never reconnects, so it is not a link. [`serve`] runs it in one task:
//! transport, machine, and the futures of its handlers. A [`ConnectionHandler`] acts on the
//! machine's events, and a [`Handle`] lets any task give commands to the machine. A [`SharedHub`]
//! is a hub that many connections share.
//!
//! What holds for every link:
//!
//! - The reader never waits for user code. Replies are matched in the connection's own task and
//!   never wait behind events (except under [`LagPolicy::Block`], which says so).
//! - A call resolves after the events that came before it were put into their queue.
//! - Dropping a call's future removes the call, and cancels it at the peer where the protocol
//!   can. Dropping the last [`Link`] closes with 1000. Dropping [`Events`] stops delivery only.
//! - However a connection ends, every call on it ends at once, exactly once, with the reason.
//! - A link never repeats a call. After a reconnect, the calls that were in flight have failed and
//!   say whether they may have been [sent](crate::Delivery).

mod cancel;
mod dial;
mod dispatch;
mod driver;
#[cfg(feature = "ws")]
pub mod http;
mod hub;
mod link;
pub mod mem;
#[cfg(feature = "nats")]
pub mod nats;
mod observe;
mod queue;
mod running;
mod serve;
#[cfg(feature = "server")]
pub mod server;
pub mod telemetry;
#[cfg_attr(all(feature = "web", target_family = "wasm"), path = "web/time.rs")]
pub mod time;
#[cfg(feature = "tls")]
pub mod tls;
mod transport;
#[cfg(feature = "ws")]
#[cfg_attr(all(feature = "web", target_family = "wasm"), path = "web/mod.rs")]
pub mod ws;

use std::time::Duration;

#[doc(hidden)]
pub use async_trait::async_trait;
pub use cancel::{Cancellation, Canceller};
pub use dial::{DialError, Dialer, Node};
pub use dispatch::{Dispatch, EventDispatcher};
pub use driver::{Driver, DriverConfig};
pub use hub::{Connections, HubState, RunningHub, SharedHub};
pub use link::{
    CallStream, Connection, DrainReport, Events, Link, LinkAction, LinkConfig, LinkEvent,
    LinkState, Outcome, Parts, Protocol, WeakLink, entropy, open, over,
};
pub use observe::{Direction, Frame, Observer};
pub use queue::{Consumer, LagPolicy, Producer, Push, QueueConfig, Queued, queue};
pub use running::Running;
#[doc(hidden)]
pub use running::catch_panic;
pub use serve::{ConnectionHandler, Handle, serve};
pub use transport::{Message, Transport, TransportError};

/// Whether this runs in a page, which can neither ping nor tell when its computer has slept.
const IS_PAGE: bool = cfg!(all(feature = "web", target_family = "wasm"));
/// A deadline of a page that is handled later than this was slept through.
const LATE: Duration = Duration::from_secs(2);
/// How long a page then waits for what came meanwhile: its timers may be first.
const GRACE: Duration = Duration::from_secs(1);
