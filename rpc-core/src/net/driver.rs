//! [`Driver`]: moves frames and time between one machine and one transport.

mod io;

use std::borrow::Cow;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

pub(crate) use io::Io;

use super::link::Protocol;
use super::observe::{Observer, Tap};
use super::telemetry::{ConnectionMeter, Side};
use super::time;
use super::transport::Transport;
use crate::Instant;
use crate::error::Disconnect;
use crate::machine::Machine;

crate::config! {
    /// How a [`Driver`] treats its transport.
    #[derive(Clone, Debug)]
    pub struct DriverConfig {
        /// How long the transport may accept no frame while frames are waiting. Then the connection
        /// is dropped with [`Disconnect::WriteStalled`]. A single large frame has to be accepted
        /// within this time. Default 30 s.
        pub write_timeout: Duration = Duration::from_secs(30),
        /// How long the closing handshake may take before the connection is dropped, including the
        /// frames before the Close. A program that shuts down waits this long for a peer that
        /// ignores the Close. Default 1.5 s.
        pub close_timeout: Duration = Duration::from_millis(1_500),
        /// Most frames to read per wake-up before other tasks run. Default 128; 0 counts as 1.
        pub read_budget: usize = 128,
        /// Sees every frame, redacted. Default none.
        pub observer: Option<Arc<dyn Observer>> = None,
    }
}

/// Drives one machine over one transport: reads, writes every ready frame, flushes **once** per
/// wake-up, and keeps the machine's deadlines.
///
/// Most programs use a [`Link`](super::Link), which adds commands, calls and reconnects. Use a
/// driver for your own loop:
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/doubling.inc"));
/// # use futures_util::SinkExt as _;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (mut peer, transport) = rpc_core::net::mem::duplex(16);
/// # peer.send(Outgoing::Text(r#"{"id":"7","n":21}"#.into())).await?;
/// # drop(peer);
/// # let (machine, mut events) = (Server::default(), 0);
/// let mut driver = Driver::new(machine, transport);
/// while let Some(event) = driver.next().await {
///     // act on the event; commands go to `driver.machine_mut()` with `driver.now()`
///     # events += 1;
/// }
/// # assert_eq!(events, 1);
/// # Ok(())
/// # }
/// ```
///
/// Dropping a driver drops the connection without a closing handshake.
pub struct Driver<M, T> {
    machine: M,
    io: Io<T>,
}

impl<M: Machine, T: Transport> Driver<M, T> {
    /// Creates a driver with the default configuration.
    ///
    /// # Panics
    /// Outside a tokio runtime with its timer enabled.
    pub fn new(machine: M, transport: T) -> Self {
        Self::with_config(machine, transport, DriverConfig::default())
    }

    /// Creates a driver with this configuration.
    ///
    /// # Panics
    /// Outside a tokio runtime with its timer enabled.
    pub fn with_config(machine: M, transport: T, mut config: DriverConfig) -> Self {
        let tap = Tap::new(config.observer.take(), |text| Cow::Borrowed(text), None, 0);
        let io = Io::new(transport, &config, tap, ConnectionMeter::default());
        Self { machine, io }
    }

    /// Creates the driver of a client, which counts connection and bytes, and shows the observer frames
    /// without secrets.
    pub(super) fn for_client<P: Protocol<Machine = M>>(
        machine: M,
        transport: T,
        config: &DriverConfig,
        peer: Option<SocketAddr>,
        generation: u64,
    ) -> Self {
        let meter = ConnectionMeter::new(Side::Client, P::SYSTEM);
        let tap = Tap::new(config.observer.clone(), P::redact, peer, generation);
        let io = Io::new(transport, config, tap, meter);
        Self { machine, io }
    }

    /// Returns whether the transport is gone.
    pub(super) const fn is_gone(&self) -> bool {
        self.io.is_gone()
    }

    /// Returns whether a message other than a pong has come since the last call.
    pub(super) const fn take_received(&mut self) -> bool {
        self.io.take_received()
    }

    /// Returns the machine.
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    /// Returns the machine, for commands. What they queue leaves with the next poll.
    pub const fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// Returns the time for commands: tokio's clock, which tests can pause.
    #[must_use]
    pub fn now(&self) -> Instant {
        time::now()
    }

    /// Returns the next event, or `None` once the machine has ended, all its events are taken and
    /// the closing handshake is over (or has timed out).
    ///
    /// # Cancel safety
    /// Cancel-safe: no frame and no event is lost by dropping the future.
    pub async fn next(&mut self) -> Option<M::Event> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Poll form of [`next`](Self::next).
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<M::Event>> {
        let now = time::now();
        let more = self.poll_input(cx, now);
        let io = self.poll_output(cx, now, more);
        match self.machine.poll_event() {
            Some(event) => Poll::Ready(Some(event)),
            None => io.map(|()| None),
        }
    }

    /// Ends the connection at once, without a closing handshake; the machine sees a lost connection.
    pub(crate) fn cut(&mut self) {
        let now = time::now();
        self.io
            .drop_transport(&mut self.machine, Disconnect::Eof, now);
    }

    /// Runs the first half of a turn: [`Io::poll_input`].
    pub(super) fn poll_input(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let budget = self.io.read_budget();
        self.io.poll_input(&mut self.machine, cx, now, budget)
    }

    /// Runs the second half: [`Io::poll_output`]. Ready when the machine is closed and the transport is
    /// gone; events may remain.
    pub(super) fn poll_output(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
        more: bool,
    ) -> Poll<()> {
        self.io.poll_output(&mut self.machine, cx, now, more)
    }
}

crate::debug::debug_fields!([M: std::fmt::Debug, T: Transport] Driver<M, T>, this => {
    machine: this.machine,
    open: !this.io.is_gone(),
});

#[cfg(test)]
mod tests;
