//! [`Io`]: a transport with its deadlines, without a machine.

use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::task::unconstrained;

use super::DriverConfig;
use crate::Instant;
use crate::error::Disconnect;
use crate::machine::Machine;
use crate::message::Outgoing;
use crate::net::observe::Tap;
use crate::net::queue::remember;
use crate::net::telemetry::ConnectionMeter;
use crate::net::time::{self, Sleep};
use crate::net::transport::{Message, Transport, TransportError};
use crate::net::{GRACE, IS_PAGE, LATE};
use crate::timers::later;

/// Moves frames and time between a transport and the machine that is passed to each call.
pub(crate) struct Io<T> {
    transport: Option<T>,
    tap: Tap,
    meter: ConnectionMeter,
    write_timeout: Duration,
    close_timeout: Duration,
    read_budget: usize,
    sleep: Pin<Box<Sleep>>,
    /// When the machine handles time next: at its deadline or earlier.
    armed: Option<Instant>,
    /// The task that the timer wakes.
    sleeper: Option<Waker>,
    /// Until when a deadline that was slept through waits for messages.
    grace: Option<Instant>,
    /// Whether a message other than a pong has come since [`take_received`](Self::take_received).
    arrived: bool,
    unflushed: bool,
    /// The next frame of a machine that has ended, taken while the transport accepts no frame.
    next: Option<Box<Outgoing>>,
    /// Whether the transport accepted no frame the last time.
    choked: bool,
    stalled_since: Option<Instant>,
    closing_until: Option<Instant>,
    close_seen: bool,
    /// Whether the peer violated the transport's protocol.
    failed: bool,
}

impl<T: Transport> Io<T> {
    /// # Panics
    /// Outside a tokio runtime with its timer enabled.
    pub(crate) fn new(
        transport: T,
        config: &DriverConfig,
        tap: Tap,
        meter: ConnectionMeter,
    ) -> Self {
        Self {
            transport: Some(transport),
            tap,
            meter,
            write_timeout: config.write_timeout,
            close_timeout: config.close_timeout,
            read_budget: config.read_budget.max(1),
            sleep: Box::pin(time::sleep(Duration::ZERO)),
            armed: None,
            sleeper: None,
            grace: None,
            arrived: false,
            unflushed: false,
            next: None,
            choked: false,
            stalled_since: None,
            closing_until: None,
            close_seen: false,
            failed: false,
        }
    }

    /// Returns whether the transport is gone.
    pub(crate) const fn is_gone(&self) -> bool {
        self.transport.is_none()
    }

    pub(super) const fn take_received(&mut self) -> bool {
        std::mem::replace(&mut self.arrived, false)
    }

    /// Returns how many messages are read in a turn at most.
    pub(crate) const fn read_budget(&self) -> usize {
        self.read_budget
    }

    /// Runs the first half of a turn, or a part of it: reads what is available, at most so many
    /// messages, and handles deadlines. Returns `true` if there may be more to read.
    pub(crate) fn poll_input(
        &mut self,
        machine: &mut impl Machine,
        cx: &mut Context<'_>,
        now: Instant,
        at_most: usize,
    ) -> bool {
        let more = 'read: {
            for _ in 0..at_most {
                let closed = machine.is_closed();
                if !closed && !machine.wants_input() {
                    break 'read false;
                }
                let Some(transport) = &mut self.transport else {
                    break 'read false;
                };
                match Pin::new(transport).poll_next(cx) {
                    Poll::Pending => break 'read false,
                    Poll::Ready(Some(Ok(message))) => {
                        self.take(machine, &message, now);
                        // Its last words leave before what the peer has sent behind can end the line.
                        if !closed && machine.is_closed() {
                            break 'read true;
                        }
                    }
                    Poll::Ready(Some(Err(error))) => {
                        self.fail(machine, &error, now);
                        // A line that lingers has still to be polled.
                        break 'read self.transport.is_some();
                    }
                    Poll::Ready(None) => {
                        self.drop_transport(machine, Disconnect::Eof, now);
                        break 'read false;
                    }
                }
            }
            true
        };
        // Deadlines are read where a round ends, behind everything that may move them. Here only
        // the one that was found there matters.
        let is_due = self.armed.is_some_and(|at| at <= now);
        if is_due || self.grace.is_some() {
            match machine.poll_timeout().filter(|at| *at <= now) {
                None => self.grace = None,
                Some(at) if is_due && !self.waits(at, now) => machine.handle_timeout(now),
                Some(_) => {}
            }
        }
        more
    }

    /// Returns whether a deadline that is due has to wait, because a page has slept.
    fn waits(&mut self, at: Instant, now: Instant) -> bool {
        if IS_PAGE && self.grace.is_none() && now.saturating_duration_since(at) > LATE {
            self.grace = Some(later(now, GRACE));
            self.stalled_since = self.stalled_since.map(|_| now);
        }
        self.grace.take_if(|until| *until <= now);
        self.grace.is_some()
    }

    /// Runs the second half: writes all frames, flushes once and arms the timer. Handle the events
    /// first, so that their effects exist before the peer sees a reply.
    pub(crate) fn poll_output(
        &mut self,
        machine: &mut impl Machine,
        cx: &mut Context<'_>,
        now: Instant,
        mut more: bool,
    ) -> Poll<()> {
        let choked = !machine.wants_input();
        self.write(machine, cx, now);
        // Frames that left may have made room for input, and nothing else would wake us for it.
        more |= choked && machine.wants_input();
        self.finish(machine, cx, now);
        if self.transport.is_none() {
            return Poll::Ready(());
        }
        more |= self.arm(machine, cx, now);
        if more {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    #[inline]
    fn take(&mut self, machine: &mut impl Machine, message: &Message, now: Instant) {
        self.tap.incoming(message);
        self.meter.received(message.len());
        self.arrived |= !matches!(message, Message::Pong(_));
        match message.as_incoming() {
            Ok(incoming) => {
                if !machine.is_closed() {
                    machine.handle_message(incoming, now);
                }
            }
            Err(close) => {
                // The transport has queued its answer.
                self.close_seen = true;
                self.unflushed = true;
                machine.handle_disconnect(Disconnect::PeerClosed(close.cloned()), now);
            }
        }
    }

    /// Writes every frame that the transport accepts, then flushes once.
    fn write(&mut self, machine: &mut impl Machine, cx: &mut Context<'_>, now: Instant) {
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
                    if self.next.is_none() && machine.is_closed() {
                        self.next = machine.poll_transmit().map(Box::new);
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
            let Some(frame) = next.or_else(|| machine.poll_transmit()) else {
                break Ok(());
            };
            self.tap.outgoing(&frame);
            self.meter.sent(frame.len());
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
            return self.drop_transport(machine, Disconnect::Local, now);
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
            Err(error) => self.drain_after_write_error(machine, cx, now, &Disconnect::from(&error)),
        }
        if self
            .stalled_since
            .is_some_and(|since| now >= later(since, self.write_timeout))
        {
            self.drop_transport(machine, Disconnect::WriteStalled, now);
        }
    }

    /// Reads the peer's last frames and its Close, which may still be readable after a failed
    /// write.
    fn drain_after_write_error(
        &mut self,
        machine: &mut impl Machine,
        cx: &mut Context<'_>,
        now: Instant,
        why: &Disconnect,
    ) {
        for _ in 0..self.read_budget {
            let Some(transport) = &mut self.transport else {
                return;
            };
            let Poll::Ready(Some(Ok(message))) = Pin::new(transport).poll_next(cx) else {
                break;
            };
            self.take(machine, &message, now);
        }
        self.drop_transport(machine, why.clone(), now);
    }

    /// Runs the closing handshake, with a deadline, once the machine has closed and its frames have
    /// left.
    fn finish(&mut self, machine: &impl Machine, cx: &mut Context<'_>, now: Instant) {
        if !machine.is_closed() {
            return;
        }
        let until = *self
            .closing_until
            .get_or_insert_with(|| later(now, self.close_timeout));
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

    /// Arms the timer for the next deadline; returns `true` if that deadline has passed already.
    fn arm(&mut self, machine: &impl Machine, cx: &mut Context<'_>, now: Instant) -> bool {
        let stall = self
            .stalled_since
            .map(|since| later(since, self.write_timeout));
        let timeout = machine.poll_timeout().max(self.grace);
        let next = [timeout, stall, self.closing_until];
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

    /// Handles an error of the transport.
    fn fail(&mut self, machine: &mut impl Machine, error: &TransportError, now: Instant) {
        let why = Disconnect::from(error);
        match error {
            // The transport tells the peer what it did wrong, and ends when the peer has hung up.
            TransportError::TooLarge { .. }
            | TransportError::Overloaded
            | TransportError::Protocol(_)
                if !self.failed =>
            {
                self.failed = true;
                self.close_seen = true;
                self.end(machine, why, now);
            }
            _ => self.drop_transport(machine, why, now),
        }
    }

    /// Drops the transport without a closing handshake.
    pub(crate) fn drop_transport(
        &mut self,
        machine: &mut impl Machine,
        why: Disconnect,
        now: Instant,
    ) {
        self.transport = None;
        self.end(machine, why, now);
    }

    fn end(&mut self, machine: &mut impl Machine, why: Disconnect, now: Instant) {
        self.next = None;
        machine.handle_disconnect(why, now);
        // What the machine still wanted to say can no longer be said.
        while machine.poll_transmit().is_some() {}
    }
}
