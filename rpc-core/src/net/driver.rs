//! [`Driver`]: moves frames and time between one machine and one transport.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::task::unconstrained;
use tokio::time::Sleep;

use super::observe::{Observer, Redact, Tap};
use super::queue::remember;
use super::transport::{Message, Transport, TransportError};
use crate::error::Disconnect;
use crate::machine::Machine;
use crate::message::Outgoing;
use crate::timers::later;

crate::config! {
    /// How a [`Driver`] treats its transport.
    #[derive(Clone, Debug)]
    pub struct DriverConfig {
        /// How long the transport may take no further frame while frames wait. Then the line is given
        /// up with [`Disconnect::WriteStalled`]. A single large frame has to get through in this time.
        /// Default 30 s.
        pub write_timeout: Duration = Duration::from_secs(30) => with_write_timeout,
        /// How long the closing handshake may take before the line is dropped, what is written before the
        /// Close included. A program that ends waits for it, also where the peer ignores a Close. Default
        /// 1.5 s.
        pub close_timeout: Duration = Duration::from_millis(1_500) => with_close_timeout,
        /// Most frames read in one wake-up before other tasks get their turn. Default 128; 0 counts as 1.
        pub read_budget: usize = 128 => with_read_budget,
    }
}

/// Drives one machine over one transport: reads, feeds every ready frame, flushes **once** per
/// wake-up, and keeps the machine's deadlines.
///
/// Most programs use a [`Link`](super::Link), which adds commands, waiters and reconnects. Use a
/// driver for your own loop:
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/guide/doubling.inc"));
/// # use futures_util::SinkExt as _;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let (mut peer, transport) = rpc_core::net::mem::duplex(16);
/// # peer.send(Outgoing::Text(r#"{"id":7,"n":21}"#.into())).await?;
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
/// Dropping a driver drops the line without a closing handshake.
pub struct Driver<M, T> {
    machine: M,
    transport: Option<T>,
    config: DriverConfig,
    tap: Tap,
    sleep: Pin<Box<Sleep>>,
    /// When the machine is given the time next: at its deadline, or before it.
    armed: Option<Instant>,
    /// Whom the timer wakes.
    sleeper: Option<Waker>,
    unflushed: bool,
    /// What a machine that has ended wants next, found while the transport takes no frame.
    next: Option<Box<Outgoing>>,
    /// The transport took no further frame the last time.
    choked: bool,
    stalled_since: Option<Instant>,
    closing_until: Option<Instant>,
    close_seen: bool,
    /// The peer broke the transport's rules.
    failed: bool,
}

/// The time by tokio's clock, which tests can pause. It is what commands and machines are given.
#[must_use]
pub fn clock() -> Instant {
    tokio::time::Instant::now().into_std()
}

impl<M: Machine, T: Transport> Driver<M, T> {
    /// A driver with the default configuration.
    ///
    /// # Panics
    /// Outside a tokio runtime with its timer enabled.
    pub fn new(machine: M, transport: T) -> Self {
        Self::with_config(machine, transport, DriverConfig::default())
    }

    /// A driver with this configuration.
    ///
    /// # Panics
    /// Outside a tokio runtime with its timer enabled.
    pub fn with_config(machine: M, transport: T, config: DriverConfig) -> Self {
        Self {
            machine,
            transport: Some(transport),
            config,
            tap: Tap::default(),
            sleep: Box::pin(tokio::time::sleep(Duration::ZERO)),
            armed: None,
            sleeper: None,
            unflushed: false,
            next: None,
            choked: false,
            stalled_since: None,
            closing_until: None,
            close_seen: false,
            failed: false,
        }
    }

    /// Shows every frame to `observer`, with text passed through `redact`.
    #[must_use]
    pub fn observed(mut self, observer: Arc<dyn Observer>, redact: Redact) -> Self {
        self.tap = Tap {
            observer: Some(observer),
            redact,
        };
        self
    }

    /// Whether the line is gone.
    pub(super) const fn is_gone(&self) -> bool {
        self.transport.is_none()
    }

    pub(crate) fn tapped(mut self, tap: Tap) -> Self {
        self.tap = tap;
        self
    }

    /// The machine.
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    /// The machine, for commands. What they queue leaves with the next poll.
    pub const fn machine_mut(&mut self) -> &mut M {
        &mut self.machine
    }

    /// The time that commands take: tokio's clock, which tests can pause.
    #[must_use]
    pub fn now(&self) -> Instant {
        clock()
    }

    /// The next event, or `None` once the machine has ended, all its events are taken and the
    /// closing handshake is over (or has timed out).
    ///
    /// # Cancel safety
    /// Cancel-safe: no frame and no event is lost by dropping the future.
    pub async fn next(&mut self) -> Option<M::Event> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Poll form of [`next`](Self::next).
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<M::Event>> {
        let io = self.poll_io(cx);
        match self.machine.poll_event() {
            Some(event) => Poll::Ready(Some(event)),
            None => io.map(|()| None),
        }
    }

    /// Ends the connection at once, without a closing handshake.
    pub fn abort(&mut self) {
        self.drop_line(Disconnect::Local, clock());
    }

    /// As [`abort`](Self::abort), but the machine sees a cut line.
    pub(crate) fn cut(&mut self) {
        self.drop_line(Disconnect::Eof, clock());
    }

    /// One round of work: read what is there, let time pass, feed all frames, flush once.
    /// Ready when the machine is closed and the line is gone; events may remain. The caller takes
    /// them after every round.
    pub fn poll_io(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_io_at(cx, clock())
    }

    /// As [`poll_io`](Self::poll_io), for who has just read the clock.
    pub(super) fn poll_io_at(&mut self, cx: &mut Context<'_>, now: Instant) -> Poll<()> {
        let more = self.poll_input(cx, now);
        self.poll_output(cx, now, more)
    }

    /// The first half of a round: reads what is there and lets time pass. True if there may be more
    /// to read.
    pub(super) fn poll_input(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let more = self.read(cx, now);
        // Deadlines are read where a round ends, behind everything that may move them. Here only
        // the one that was found there matters.
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        if is_due(self.armed) && is_due(self.machine.poll_timeout()) {
            self.machine.handle_timeout(now);
        }
        more
    }

    /// The second half: feeds all frames, flushes once and arms the timer. Events that were taken
    /// before it have led to something by the time the peer can know of them.
    pub(super) fn poll_output(
        &mut self,
        cx: &mut Context<'_>,
        now: Instant,
        mut more: bool,
    ) -> Poll<()> {
        let choked = !self.machine.wants_input();
        self.write(cx, now);
        // Frames that left may have made room for input, and nothing else would wake us for it.
        more |= choked && self.machine.wants_input();
        self.finish(cx, now);
        if self.transport.is_none() {
            return Poll::Ready(());
        }
        more |= self.arm(cx, now);
        if more {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Reads within the budget; true if there may be more.
    fn read(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        for _ in 0..self.config.read_budget.max(1) {
            let closed = self.machine.is_closed();
            if !closed && !self.machine.wants_input() {
                return false;
            }
            let Some(transport) = &mut self.transport else {
                return false;
            };
            match Pin::new(transport).poll_next(cx) {
                Poll::Pending => return false,
                Poll::Ready(Some(Ok(message))) => {
                    self.take(&message, now);
                    // Its last words leave before what the peer has sent behind can end the line.
                    if !closed && self.machine.is_closed() {
                        return true;
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    self.fail(&error, now);
                    // A line that lingers has still to be polled.
                    return self.transport.is_some();
                }
                Poll::Ready(None) => {
                    self.drop_line(Disconnect::Eof, now);
                    return false;
                }
            }
        }
        true
    }

    fn take(&mut self, message: &Message, now: Instant) {
        self.tap.incoming(message);
        match message.as_incoming() {
            Ok(incoming) => {
                if !self.machine.is_closed() {
                    self.machine.handle_message(incoming, now);
                }
            }
            Err(close) => {
                // The transport has queued its answer.
                self.close_seen = true;
                self.unflushed = true;
                self.machine
                    .handle_disconnect(Disconnect::PeerClosed(close.cloned()), now);
            }
        }
    }

    /// Feeds every frame that the transport takes, then flushes once.
    fn write(&mut self, cx: &mut Context<'_>, now: Instant) {
        let Some(transport) = &mut self.transport else {
            return;
        };
        let mut transport = Pin::new(transport);
        let mut stalled = false;
        let mut aborted = false;
        let result = loop {
            match transport.as_mut().poll_ready(cx) {
                Poll::Pending => {
                    stalled = true;
                    self.choked = true;
                    // A line that takes nothing must not hold up its own end.
                    if self.next.is_none() && self.machine.is_closed() {
                        self.next = self.machine.poll_transmit().map(Box::new);
                    }
                    aborted = matches!(self.next.as_deref(), Some(Outgoing::Abort));
                    break Ok(());
                }
                Poll::Ready(Err(error)) => break Err(error),
                Poll::Ready(Ok(())) => {}
            }
            if std::mem::take(&mut self.choked) {
                // It takes frames again, so the peer takes data, however slowly.
                self.stalled_since = None;
            }
            let next = self.next.take().map(|next| *next);
            let Some(frame) = next.or_else(|| self.machine.poll_transmit()) else {
                break Ok(());
            };
            self.tap.outgoing(&frame);
            if matches!(frame, Outgoing::Abort) {
                aborted = true;
                break Ok(());
            }
            self.unflushed = true;
            self.close_seen |= matches!(frame, Outgoing::Close(_));
            if let Err(error) = transport.as_mut().start_send(frame) {
                break Err(error);
            }
        };
        if aborted {
            return self.drop_line(Disconnect::Local, now);
        }
        let result = result.and_then(|()| {
            if !self.unflushed {
                return Ok(());
            }
            match transport.as_mut().poll_flush(cx) {
                Poll::Pending => {
                    stalled = true;
                    Ok(())
                }
                Poll::Ready(done) => {
                    self.unflushed = false;
                    done
                }
            }
        });
        match result {
            Ok(()) if stalled => {
                self.stalled_since.get_or_insert(now);
            }
            Ok(()) => self.stalled_since = None,
            // The peer may have said why before the line failed: read it before giving up.
            Err(error) => self.drain_after_write_error(cx, now, &Disconnect::from(&error)),
        }
        if self
            .stalled_since
            .is_some_and(|since| now >= later(since, self.config.write_timeout))
        {
            self.drop_line(Disconnect::WriteStalled, now);
        }
    }

    /// After a failed write the peer's last frames and its Close may still be readable.
    fn drain_after_write_error(&mut self, cx: &mut Context<'_>, now: Instant, why: &Disconnect) {
        for _ in 0..self.config.read_budget.max(1) {
            let Some(transport) = &mut self.transport else {
                return;
            };
            let Poll::Ready(Some(Ok(message))) = Pin::new(transport).poll_next(cx) else {
                break;
            };
            self.take(&message, now);
        }
        self.drop_line(why.clone(), now);
    }

    /// Once the machine has closed and its frames are out: the closing handshake, with a deadline.
    fn finish(&mut self, cx: &mut Context<'_>, now: Instant) {
        if !self.machine.is_closed() {
            return;
        }
        let until = *self
            .closing_until
            .get_or_insert_with(|| later(now, self.config.close_timeout));
        let Some(transport) = &mut self.transport else {
            return;
        };
        if now >= until {
            self.transport = None;
            return;
        }
        // With a Close under way the line stays up until the peer has answered it (the stream
        // ends): dropping it now could destroy what the peer has not read yet.
        if !self.close_seen
            && self.stalled_since.is_none()
            && Pin::new(transport).poll_close(cx).is_ready()
        {
            self.transport = None;
        }
    }

    /// Arms the timer for the next deadline; true if that deadline has passed already.
    fn arm(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        let stall = self
            .stalled_since
            .map(|since| later(since, self.config.write_timeout));
        let next = [self.machine.poll_timeout(), stall, self.closing_until];
        let Some(next) = next.into_iter().flatten().min() else {
            return false;
        };
        let is_armed = self.armed.is_some_and(|armed| now < armed && armed <= next);
        if next <= now || !is_armed {
            self.armed = Some(next);
        }
        if next <= now {
            return true;
        }
        // A timer that fires early costs one wake-up, so a later deadline does not re-arm it.
        if is_armed && !self.sleep.is_elapsed() {
            let sleeper = self.sleeper.as_ref();
            if sleeper.is_some_and(|sleeper| sleeper.will_wake(cx.waker())) {
                return false;
            }
        } else {
            self.sleep.as_mut().reset(next.into());
        }
        remember(&mut self.sleeper, cx);
        // Unconstrained, because to a task that has used up its turn a timer says nothing but "come
        // again", and wakes nobody later. The clock decides, not the timer: it may have fired for a
        // deadline that has moved.
        pin!(unconstrained(self.sleep.as_mut())).poll(cx).is_ready()
    }

    /// The transport reported an error instead of a message.
    fn fail(&mut self, error: &TransportError, now: Instant) {
        let why = Disconnect::from(error);
        match error {
            // The transport tells the peer what it did wrong, and ends when the peer has hung up.
            TransportError::TooLarge { .. } | TransportError::Protocol(_) if !self.failed => {
                self.failed = true;
                self.close_seen = true;
                self.end(why, now);
            }
            _ => self.drop_line(why, now),
        }
    }

    fn drop_line(&mut self, why: Disconnect, now: Instant) {
        self.transport = None;
        self.end(why, now);
    }

    fn end(&mut self, why: Disconnect, now: Instant) {
        self.next = None;
        self.machine.handle_disconnect(why, now);
        // What the machine still wanted to say can no longer be said.
        while self.machine.poll_transmit().is_some() {}
    }
}

impl<M: fmt::Debug, T> fmt::Debug for Driver<M, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("machine", &self.machine)
            .field("open", &self.transport.is_some())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
