//! One connection of a link while it is up: runs commands and orders, delivers events.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use super::handle::DrainReport;
use super::inbox::{Command, Orders, Serving};
use super::task::Front;
use super::waiters::Waiters;
use super::{LinkAction, LinkEvent, LinkState, Protocol};
use crate::Instant;
use crate::error::{CallError, CloseReason, Delivery, Refused};
use crate::machine::Machine;
use crate::message::CloseFrame;
use crate::net::driver::Driver;
use crate::net::queue::Push;
use crate::net::transport::Transport;
use crate::net::{IS_PAGE, time};
use crate::timers::later;

/// Most commands per wake-up before the transport gets its turn.
const COMMAND_BUDGET: usize = 256;

/// Whether and how the application wants to end this connection.
enum Stop {
    No,
    /// Nothing new is accepted; calls in flight may end until the deadline.
    Draining {
        until: Instant,
        at_start: usize,
    },
    /// A Close is in progress.
    Closing(CloseReason),
    /// A Close is in progress, and a new connection follows at once.
    Redialling,
}

/// What follows a connection.
pub(super) enum After {
    Stop,
    /// The reconnector decides.
    Retry,
    /// A new connection at once.
    Redial,
}

/// An event that waits for room in its queue.
struct Held<P: Protocol> {
    sorted: LinkAction<P>,
    /// When the wait began.
    since: Instant,
}

/// The conditions while events are delivered.
#[derive(Clone, Copy)]
struct Turn {
    now: Instant,
    generation: u64,
    /// Whether the transport is gone.
    is_gone: bool,
}

/// One connection while it is up.
pub(super) struct Session<'a, P: Protocol, T> {
    driver: Box<Driver<P::Machine, T>>,
    protocol: &'a mut P,
    front: &'a mut Front<P>,
    waiters: Waiters<P>,
    /// Boxed, because an event may be large and rarely waits.
    held: Option<Box<Held<P>>>,
    reason: Option<CloseReason>,
    stop: Stop,
    ready: bool,
    /// Whether the application knows that the connection is closing.
    closing_sent: bool,
    /// Whether the machine was changed while its events were delivered.
    touched: bool,
    /// Whether the last call has timed out.
    timed_out: bool,
    /// Whether the peer answers no ping, and so will not answer a Close either.
    is_dead: bool,
    /// Whether events were not taken for too long, so that further ones are dropped.
    overrun: bool,
    /// The timer for the deadlines of `stop` and `held`; created on first use.
    timer: Option<Pin<Box<time::Sleep>>>,
}

impl<'a, P: Protocol, T: Transport> Session<'a, P, T> {
    pub(super) fn new(
        driver: Box<Driver<P::Machine, T>>,
        protocol: &'a mut P,
        front: &'a mut Front<P>,
    ) -> Self {
        Self {
            driver,
            protocol,
            front,
            waiters: Waiters::new(),
            held: None,
            reason: None,
            stop: Stop::No,
            ready: false,
            closing_sent: false,
            touched: false,
            timed_out: false,
            is_dead: false,
            overrun: false,
            timer: None,
        }
    }

    /// Returns whether the handshake has finished.
    pub(super) const fn is_ready(&self) -> bool {
        self.ready
    }

    /// Ends the remaining calls. Returns whether the handshake had finished, and what follows.
    pub(super) fn end(mut self, reason: &CloseReason) -> (bool, After) {
        self.waiters.fail_all(reason);
        let after = match self.stop {
            Stop::No => After::Retry,
            Stop::Redialling => After::Redial,
            Stop::Draining { .. } | Stop::Closing(_) => After::Stop,
        };
        (self.ready, after)
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>, generation: u64) -> Poll<CloseReason> {
        let now = time::now();
        let front = &mut *self.front;
        let found = front.shared.inbox.poll_take(cx, &mut front.commands);
        if let Some(orders) = found.orders {
            self.obey(*orders, now, generation);
        }
        // Before the commands: what is left over from the last line must meet no call of this one,
        // whose id may be the same.
        for call in found.abandoned {
            if self.waiters.forget(call) {
                P::cancel(self.driver.machine_mut(), call, now);
            }
        }
        let more = self.run_commands(now);
        if matches!(self.stop, Stop::No | Stop::Draining { .. }) {
            self.protocol.before_write(self.driver.machine_mut(), now);
        }
        if found.orphaned && !more {
            // The last handle is gone.
            let frame = CloseFrame::new(CloseFrame::NORMAL, "");
            self.close(frame, CloseReason::Local, now);
        }
        self.drain_step(now);
        loop {
            let unread = self.driver.poll_input(cx, now);
            self.note_closing();
            // Before the frames leave: what the peer learns from them has happened here by then, for
            // other connections too.
            let mut turn = Turn {
                now,
                generation,
                is_gone: self.driver.is_gone(),
            };
            let was_choked = !self.driver.machine().wants_input();
            self.deliver(cx, turn);
            let unchoked = was_choked && self.driver.machine().wants_input();
            self.touched = false;
            let io = self.driver.poll_output(cx, now, unread);
            if matches!(self.stop, Stop::Redialling) && io.is_pending() {
                // The Close is on its way. Who orders another line does not trust this one to
                // answer it.
                self.driver.cut();
                self.touched = true;
            }
            let choked = !self.driver.machine().wants_input();
            turn.is_gone = io.is_ready();
            if turn.is_gone {
                self.note_closing();
            }
            self.deliver(cx, turn);
            if std::mem::take(&mut self.is_dead) {
                // By now it has been told as far as its line takes it.
                self.driver.cut();
                self.touched = true;
            }
            if io.is_ready() {
                return Poll::Ready(match &self.stop {
                    Stop::Closing(reason) => reason.clone(),
                    _ => self.reason.take().unwrap_or(CloseReason::Lost),
                });
            }
            // Events that were taken may have made room for input, or led to new frames.
            let room = unchoked || (choked && self.driver.machine().wants_input());
            if !room && !std::mem::take(&mut self.touched) {
                break;
            }
        }
        let drained = self.drain_step(now);
        // Also where all of the connection, from its first to its last words, came at once.
        self.note_closing();
        if more || drained {
            cx.waker().wake_by_ref();
        }
        self.arm(cx, now);
        Poll::Pending
    }

    /// Reports a machine that has ended and refuses calls, although its connection may stay up for
    /// its last frames. Once the connection is gone the next state reports it, but who asks must not
    /// find the link ready after a call has failed.
    fn note_closing(&mut self) {
        let is_closing = self.ready && self.driver.machine().is_closed();
        if !is_closing || std::mem::replace(&mut self.closing_sent, true) {
            return;
        }
        match self.driver.is_gone() {
            true => self.front.shared.state.set(LinkState::Closing),
            false => self.front.set_state(LinkState::Closing),
        }
    }

    fn obey(&mut self, order: Orders, now: Instant, generation: u64) {
        // First, so that it reports what the other orders cut off.
        if let Some(deadline) = order.drain {
            self.drain(later(now, deadline));
        }
        if let Some(frame) = order.close {
            self.close(frame, CloseReason::Local, now);
        }
        if order.abort {
            self.driver.cut();
        }
        let this_line = order.redial == Some(generation) && self.ready;
        if this_line && self.front.shared.dials_again && matches!(self.stop, Stop::No) {
            self.stop = Stop::Redialling;
            let frame = CloseFrame::new(CloseFrame::NORMAL, "reconnecting");
            self.driver.machine_mut().close_with(frame, now);
        }
    }

    fn drain(&mut self, until: Instant) {
        match &mut self.stop {
            Stop::No => {
                let at_start = self.driver.machine().in_flight();
                self.stop = Stop::Draining { until, at_start };
            }
            Stop::Draining { until: before, .. } => *before = until.min(*before),
            // The line and its calls are on their way out; what is left is to dial no more.
            Stop::Redialling => self.stop = Stop::Closing(CloseReason::Drained),
            Stop::Closing(_) => {}
        }
    }

    fn close(&mut self, frame: CloseFrame, reason: CloseReason, now: Instant) {
        match &self.stop {
            Stop::Closing(_) => return,
            Stop::Draining { at_start, .. } => {
                let left = self.driver.machine().in_flight();
                self.front.shared.inbox.put_report(DrainReport {
                    finished: at_start.saturating_sub(left),
                    aborted: left,
                });
            }
            Stop::No | Stop::Redialling => {}
        }
        self.stop = Stop::Closing(reason);
        self.driver.machine_mut().close_with(frame, now);
    }

    /// Runs the waiting commands, within the budget; returns `true` if more wait.
    fn run_commands(&mut self, now: Instant) -> bool {
        let commands = self.front.commands.len().min(COMMAND_BUDGET);
        for _ in 0..commands {
            let Some(command) = self.front.commands.pop_front() else {
                break;
            };
            self.run(command, now);
        }
        self.front.shared.inbox.make_room(commands);
        !self.front.commands.is_empty()
    }

    fn run(&mut self, command: Command<P>, now: Instant) {
        let draining = match &self.stop {
            Stop::No => false,
            Stop::Draining { .. } => true,
            Stop::Closing(_) => return command.refuse(Refused::Closed),
            Stop::Redialling => return command.refuse(Refused::NotConnected),
        };
        let machine = self.driver.machine_mut();
        match command {
            Command::Work(work) => work(Ok(Serving { machine, now })),
            Command::Call(call) if draining => call.complete(Err(Refused::Draining.into())),
            Command::Call(call) => match call.start(machine, now) {
                Some(Ok(id)) => self.waiters.insert(id, call),
                Some(Err(Refused::Closed)) if self.front.shared.dials_again => {
                    // This line is on its way out, but the link is not.
                    call.complete(Err(Refused::NotConnected.into()));
                }
                Some(Err(refused)) => call.complete(Err(refused.into())),
                // Its caller has gone.
                None => {}
            },
        }
    }

    /// Ends a drain whose calls have ended or whose deadline has passed; returns whether it did.
    fn drain_step(&mut self, now: Instant) -> bool {
        let Stop::Draining { until, .. } = &self.stop else {
            return false;
        };
        if self.driver.machine().in_flight() > 0 && now < *until {
            return false;
        }
        let frame = CloseFrame::new(CloseFrame::NORMAL, P::GOODBYE);
        self.close(frame, CloseReason::Drained, now);
        true
    }

    /// Delivers the machine's events in order, until one has to wait for room.
    fn deliver(&mut self, cx: &mut Context<'_>, turn: Turn) {
        if let Some(held) = self.held.take() {
            let Held { sorted, since } = *held;
            if !self.offer(cx, sorted, since, turn) {
                return;
            }
        }
        while let Some(event) = self.driver.machine_mut().poll_event() {
            let sorted = self.protocol.classify(event);
            if !self.offer(cx, sorted, turn.now, turn) {
                return;
            }
        }
    }

    /// Delivers an event; returns `false` if it has to wait for room. Once the connection is gone
    /// none waits: few are left, and the ends of all calls are among them.
    fn offer(
        &mut self,
        cx: &mut Context<'_>,
        sorted: LinkAction<P>,
        since: Instant,
        turn: Turn,
    ) -> bool {
        let room = match &sorted {
            LinkAction::Event(_) => self.front.shared.events.poll_room(cx),
            LinkAction::Item(call, _) => self.waiters.poll_room(*call, cx),
            _ => Poll::Ready(()),
        };
        if room.is_ready() || (turn.is_gone && !self.overrun) {
            self.hand_out(sorted, turn);
            return true;
        }
        let held = Held { sorted, since };
        if !self.overrun && self.deadline_of(&held).is_some_and(|at| turn.now < at) {
            self.held = Some(Box::new(held));
            return false;
        }
        self.overflow(&held.sorted, turn.now);
        true
    }

    fn deadline_of(&self, held: &Held<P>) -> Option<Instant> {
        let wait = match &held.sorted {
            LinkAction::Item(call, _) => self.waiters.block_deadline(*call),
            _ => self.front.shared.events.block_deadline(),
        };
        wait.map(|wait| later(held.since, wait))
    }

    fn hand_out(&mut self, sorted: LinkAction<P>, turn: Turn) {
        let Turn {
            now, generation, ..
        } = turn;
        match sorted {
            LinkAction::Ready(event) => {
                self.ready = true;
                self.front.set_state(LinkState::Ready { generation });
                // What follows may make no sense without it, so it must not get lost.
                if let Some(event) = event {
                    self.front.shared.events.notice(LinkEvent::Event(event));
                }
            }
            LinkAction::Event(event) => self.push_event(event, now),
            LinkAction::Reply(call, outcome) => {
                let received = self.driver.take_received();
                let timed_out = matches!(outcome, Err(CallError::TimedOut { .. }));
                // In place of pings.
                self.is_dead |= IS_PAGE && timed_out && self.timed_out && !received;
                self.timed_out = timed_out;
                self.waiters.complete(call, outcome);
            }
            LinkAction::Item(call, item) => {
                let bytes = self.driver.machine().event_bytes();
                if self.waiters.push(call, item, bytes) == Push::Overflow {
                    self.end_stream(call, now);
                }
            }
            LinkAction::Closed(reason) => {
                self.is_dead |= matches!(reason, CloseReason::KeepAlive { .. });
                self.reason.get_or_insert(reason);
            }
            LinkAction::Ignore => {}
        }
    }

    fn push_event(&mut self, event: P::Event, now: Instant) {
        let bytes = self.driver.machine().event_bytes();
        let events = &self.front.shared.events;
        if events.push(LinkEvent::Event(event), bytes) == Push::Overflow {
            self.too_slow(now);
        }
    }

    /// Handles a queue that had no room for too long.
    fn overflow(&mut self, sorted: &LinkAction<P>, now: Instant) {
        match sorted {
            LinkAction::Item(call, _) => self.end_stream(*call, now),
            _ => self.too_slow(now),
        }
    }

    /// Ends the stream of one call because its queue is full; the connection goes on.
    fn end_stream(&mut self, call: P::Call, now: Instant) {
        self.touched = true;
        let reason = CloseReason::SlowConsumer;
        let delivery = Delivery::Delivered;
        self.waiters
            .complete(call, Err(CallError::Closed { reason, delivery }));
        P::cancel(self.driver.machine_mut(), call, now);
    }

    fn too_slow(&mut self, now: Instant) {
        if self.reason.is_none() && !self.driver.machine().is_closed() {
            tracing::debug!("events were not taken as fast as they came: closing");
            self.reason = Some(CloseReason::SlowConsumer);
            let frame = CloseFrame::new(CloseFrame::GOING_AWAY, "slow consumer");
            self.driver.machine_mut().close_with(frame, now);
            self.touched = true;
        }
        self.overrun = true;
    }

    fn arm(&mut self, cx: &mut Context<'_>, now: Instant) {
        let drain = match &self.stop {
            Stop::Draining { until, .. } => Some(*until),
            Stop::No | Stop::Closing(_) | Stop::Redialling => None,
        };
        let held = self.held.as_ref().and_then(|held| self.deadline_of(held));
        let Some(next) = drain.into_iter().chain(held).min() else {
            return;
        };
        let at = next.max(now);
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(time::sleep_until(at)));
        timer.as_mut().reset(at.into());
        if timer.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }
}
