//! [`Link`]: level 3 for all protocols: commands, calls, events, reconnects.

mod call;
mod connection;
mod events;
mod handle;
mod inbox;
mod session;
mod state_watch;
mod task;
mod waiters;

use std::borrow::Cow;
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

pub use call::CallStream;
pub use connection::Connection;
pub use events::Events;
pub use handle::{DrainReport, Link, WeakLink};

use super::dial::{DialError, Dialer};
use super::driver::DriverConfig;
use super::queue::{LagPolicy, QueueConfig};
use super::telemetry::CallOutcome;
#[cfg(feature = "tls")]
use super::tls::TlsConfig;
use super::transport::Transport;
use crate::Instant;
use crate::error::{CallError, CloseReason};
use crate::machine::Machine;
use crate::reconnect::ReconnectPolicy;
use crate::sync::Mutex;

/// The protocol of a [`Link`].
pub trait Protocol: Send + Sized + 'static {
    /// The machine of one connection.
    type Machine: Machine + Send;
    /// The id of a call or stream on one connection.
    type Call: Copy + Eq + Hash + fmt::Debug + Send + 'static;
    /// The value of a successful call.
    type Value: Send + 'static;
    /// The peer's error when it refuses a call.
    type Remote: Send + 'static;
    /// An item of a stream before its end. Protocols without streams use
    /// [`std::convert::Infallible`].
    type Item: Send + 'static;
    /// An event for the application.
    type Event: Send + 'static;

    /// The name of the protocol in [spans and metrics](crate::net::telemetry), such as `snek`.
    const SYSTEM: &'static str;

    /// The reason in the Close frame of a [`close`](Link::close) and a [`drain`](Link::drain), with
    /// the code 1000.
    const GOODBYE: &'static str = "";

    /// Creates the machine for a fresh connection from the state that is kept between connections.
    /// `entropy` is fresh randomness for ids.
    fn open(&mut self, now: Instant, entropy: u64) -> Self::Machine;

    /// Decides what an event of the machine means.
    fn classify(&mut self, event: <Self::Machine as Machine>::Event) -> LinkAction<Self>;

    /// Removes a call whose caller is gone, and cancels it at the peer if possible.
    fn cancel(machine: &mut Self::Machine, call: Self::Call, now: Instant);

    /// Passes the machine what the application has left in places of the protocol's own, such as a
    /// queue with its own limit. Called in every turn of the connection's task before it writes,
    /// unless the connection is closing; [`WeakLink::wake`] requests a turn.
    fn before_write(&mut self, _machine: &mut Self::Machine, _now: Instant) {}

    /// Returns how a call with this value has ended, for spans and metrics: values may hold a failure.
    fn outcome(_value: &Self::Value) -> CallOutcome {
        CallOutcome::Ok
    }

    /// Replaces secrets in a frame for observers.
    fn redact(text: &str) -> Cow<'_, str> {
        Cow::Borrowed(text)
    }
}

/// How a call ends.
pub type Outcome<P> = Result<<P as Protocol>::Value, CallError<<P as Protocol>::Remote>>;

/// What one event of a machine means to a [`Link`].
#[expect(
    missing_debug_implementations,
    reason = "a protocol's values need not be Debug"
)]
#[non_exhaustive]
pub enum LinkAction<P: Protocol> {
    /// The handshake has finished. The event, if any, goes to the application, exempt from the
    /// queue's limit.
    Ready(Option<P::Event>),
    /// A call ended.
    Reply(P::Call, Outcome<P>),
    /// An item of a stream.
    Item(P::Call, P::Item),
    /// An event for the application.
    Event(P::Event),
    /// The connection is over.
    Closed(CloseReason),
    /// No effect.
    Ignore,
}

/// The state of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkState {
    /// The connection is being established, or its handshake is in progress.
    Connecting {
        /// The number of the attempt since the last success; 0 is the first.
        attempt: u32,
    },
    /// The handshake has finished. Also the state during a [`drain`](Link::drain): new calls are
    /// refused then, and commands run.
    Ready {
        /// Counts the successful connections of this link, from 1.
        generation: u64,
    },
    /// A ready connection is closing, by a Close or because the peer violated the protocol. Calls
    /// are refused; the connection stays up for its last frames. One of the states below follows.
    /// [`Link::state`] also returns this for a lost connection, from before its calls fail; no
    /// event reports it then.
    Closing,
    /// The connection was lost, or an attempt failed; another attempt follows.
    Lost {
        /// The reason.
        cause: CloseReason,
        /// The delay until the next attempt.
        retry_in: Duration,
        /// Whether the backoff used up its attempts and starts again.
        exhausted: bool,
    },
    /// The connection was lost and no attempt follows. Final.
    GaveUp {
        /// The reason.
        cause: CloseReason,
    },
    /// This side closed the link, or the connection of a link that does not dial has ended. Final.
    Closed {
        /// The reason.
        reason: CloseReason,
    },
}

impl LinkState {
    /// Returns whether calls can be made.
    #[must_use]
    pub const fn is_ready(&self) -> bool {
        matches!(self, Self::Ready { .. })
    }

    /// Returns the reason, in a final state.
    #[must_use]
    pub const fn ended(&self) -> Option<&CloseReason> {
        match self {
            Self::GaveUp { cause: reason } | Self::Closed { reason } => Some(reason),
            _ => None,
        }
    }
}

/// An event of a link, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkEvent<E> {
    /// An event of the protocol.
    Event(E),
    /// The link's state has changed.
    State(LinkState),
    /// This many events were dropped here because they were not taken in time.
    Lagged(u64),
}

crate::config! {
    /// The configuration of a [`Link`], and the field `link` of every client's configuration.
    #[derive(Clone, Debug)]
    pub struct LinkConfig {
        /// When to dial again. Default: [`ReconnectPolicy::default`].
        pub reconnect: ReconnectPolicy = ReconnectPolicy::default(),
        /// The deadline of one dial, including all handshakes below the protocol. Default 10 s.
        pub connect_timeout: Duration = Duration::from_secs(10),
        /// The event queue. Default: 1,024 items, 16 MiB, `DropOldest`.
        pub events: QueueConfig = QueueConfig::default(),
        /// The queue of each stream. Default: 65,536 items, 16 MiB, `Block` for 30 s. Meanwhile the
        /// whole connection waits, so there is room for a long answer.
        pub streams: QueueConfig = QueueConfig {
            max_items: 65_536,
            policy: LagPolicy::Block {
                deadline: Duration::from_secs(30),
            },
            ..QueueConfig::default()
        },
        /// How many commands may wait for the connection's task. Default 1,024; 0 counts as 1.
        pub max_commands: usize = 1024,
        /// Which servers a `wss` connection trusts; for the dialers of the protocols. Default: those that the
        /// system trusts.
        pub tls: Option<TlsConfig> = None => #[cfg(feature = "tls")],
        /// How the link drives the transport; its [observer](DriverConfig::observer) sees each frame.
        pub driver: DriverConfig = DriverConfig::default(),
        /// The source of call-id seeds and jitter; use a fixed one in reproducible tests. Default:
        /// the operating system.
        pub entropy: fn() -> u64 = entropy,
    }
}

/// Returns fresh randomness from the operating system, or from the browser.
#[must_use]
pub fn entropy() -> u64 {
    #[cfg(not(all(feature = "web", target_family = "wasm")))]
    let random = getrandom::u64();
    #[cfg(all(feature = "web", target_family = "wasm"))]
    let random = super::ws::random();
    random.unwrap_or_else(|_| {
        // No system randomness: the standard library's hash seeds still differ per process.
        use std::hash::{BuildHasher, RandomState};
        RandomState::new().hash_one(Instant::now())
    })
}

/// A link's three parts: the handle, the events, and the task to spawn.
pub type Parts<P> = (Link<P>, Events<<P as Protocol>::Event>, Connection);

/// Creates a link that dials, and dials again when the connection is lost.
///
/// Nothing happens until [`Connection::run`] or [`Connection::establish`] is polled. Many links may share one configuration in
/// an [`Arc`].
pub fn open<P: Protocol, D: Dialer>(
    protocol: P,
    dialer: D,
    config: impl Into<Arc<LinkConfig>>,
) -> Parts<P> {
    let config = config.into();
    let reconnect = config.reconnect;
    task::parts(protocol, dialer, config, reconnect)
}

/// Creates a link over one existing transport. It never dials. Pass the configuration in an
/// [`Arc`], so that all connections of a server share it.
pub fn over<P: Protocol, T: Transport>(
    protocol: P,
    transport: T,
    config: impl Into<Arc<LinkConfig>>,
) -> Parts<P> {
    let given = OnceDialer(Mutex::new(Some(Box::new(transport))));
    task::parts(protocol, given, config.into(), ReconnectPolicy::off())
}

/// A [`Dialer`] that returns one transport, once.
struct OnceDialer<T>(Mutex<Option<Box<T>>>);

impl<T: Transport> Dialer for OnceDialer<T> {
    type Transport = T;

    async fn dial(&self) -> Result<T, DialError> {
        let mut slot = self.0.lock();
        slot.take().map(|given| *given).ok_or(DialError::Exhausted)
    }
}
