//! [`Connection`]: the task that owns the driver, the waiters and the reconnects.

use std::fmt;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::sync::{mpsc, watch};

use super::handle::{Command, DrainReport, Link, Orders, Serving, Shared};
use super::waiters::{Pushed, Waiters};
use super::{Events, LinkConfig, LinkEvent, LinkState, Protocol, Sorted};
use crate::error::{CallError, CloseReason, Delivery, Refused};
use crate::machine::Machine;
use crate::message::CloseFrame;
use crate::net::dial::{DialError, Dialer};
use crate::net::driver::Driver;
use crate::net::observe::Tap;
use crate::net::queue::{self, Producer, Push};
use crate::reconnect::{Dial, Reconnector};

/// Most commands run in one wake-up before the line gets its turn.
const COMMAND_BUDGET: usize = 256;

fn clock() -> Instant {
    tokio::time::Instant::now().into_std()
}

pub(super) fn parts<P: Protocol, D: Dialer>(
    protocol: P,
    dialer: D,
    config: LinkConfig,
) -> (Link<P>, Events<P::Event>, Connection<P, D>) {
    let (commands, receiver) = mpsc::channel(config.max_commands);
    let (state, watcher) = watch::channel(LinkState::Connecting { attempt: 0 });
    let (producer, events) = queue::queue(config.events.clone());
    let shared = Arc::new(Shared {
        reaper: Arc::default(),
        orders: Orders::default(),
        state: watcher,
        streams: config.streams.clone(),
    });
    let front = Front {
        commands: receiver,
        state,
        events: producer,
        shared: Arc::clone(&shared),
    };
    let connection = Connection {
        protocol,
        dialer,
        config,
        front,
        generation: 0,
        attempt: 0,
    };
    (Link::new(commands, shared), events, connection)
}

/// The connection itself and all its successors. Spawn [`run`](Self::run).
///
/// Dropping it ends every call with [`CloseReason::TaskGone`].
pub struct Connection<P: Protocol, D: Dialer> {
    protocol: P,
    dialer: D,
    config: LinkConfig,
    front: Front<P>,
    generation: u64,
    attempt: u32,
}

/// What faces the application.
struct Front<P: Protocol> {
    commands: mpsc::Receiver<Command<P>>,
    state: watch::Sender<LinkState>,
    events: Producer<LinkEvent<P::Event>>,
    shared: Arc<Shared<P>>,
}

/// Why an offline wait ended.
enum Offline<T> {
    Done(T),
    /// Stop for good.
    Stop(CloseReason),
    /// Do not wait any longer.
    Redial,
}

impl<P: Protocol, D: Dialer> Connection<P, D> {
    /// Connects, serves, reconnects, until the link is closed or gives up. Returns the reason.
    ///
    /// # Cancel safety
    /// Dropping the future drops the line without a closing handshake; every call ends.
    ///
    /// # Panics
    /// Outside a tokio runtime with its timer enabled.
    pub async fn run(mut self) -> CloseReason {
        let mut reconnector = Reconnector::new(self.config.reconnect);
        let dials_again = !self.config.reconnect.backoff.is_off();
        loop {
            self.set_state(LinkState::Connecting {
                attempt: self.attempt,
            });
            let reason = match self.connect().await {
                Offline::Stop(reason) => return self.end(LinkState::Closed { reason }),
                Offline::Redial => continue,
                Offline::Done(Err(error)) => CloseReason::from(&error),
                Offline::Done(Ok(transport)) => {
                    reconnector.on_open(clock());
                    let (reason, after) = self.serve(transport, &mut reconnector).await;
                    match after {
                        After::Stop => return self.end(LinkState::Closed { reason }),
                        _ if !dials_again => return self.end(LinkState::Closed { reason }),
                        After::Redial => {
                            let retry_in = Duration::ZERO;
                            let exhausted = false;
                            self.set_state(LinkState::Lost {
                                cause: reason,
                                retry_in,
                                exhausted,
                            });
                            continue;
                        }
                        After::Retry => reason,
                    }
                }
            };
            let now = clock();
            let dial = reconnector.on_lost(reason.retry(), now, (self.config.entropy)());
            let (at, exhausted) = match dial {
                Dial::GiveUp => return self.end(LinkState::GaveUp { cause: reason }),
                Dial::Now => (now, false),
                Dial::At { at, .. } => (at, dial.starts_new_cycle()),
            };
            let retry_in = at.saturating_duration_since(now);
            self.set_state(LinkState::Lost {
                cause: reason,
                retry_in,
                exhausted,
            });
            self.attempt = self.attempt.saturating_add(1);
            let pause = tokio::time::sleep_until(at.into());
            if let Offline::Stop(reason) = self.front.offline(pause).await {
                return self.end(LinkState::Closed { reason });
            }
        }
    }

    async fn connect(&mut self) -> Offline<Result<D::Transport, DialError>> {
        let after = self.config.connect_timeout;
        let dial = async {
            match tokio::time::timeout(after, self.dialer.dial()).await {
                Ok(dialled) => dialled,
                Err(_) => Err(DialError::TimedOut { after }),
            }
        };
        let mut dial = pin!(dial);
        loop {
            match self.front.offline(dial.as_mut()).await {
                // It is being done already.
                Offline::Redial => {}
                other => return other,
            }
        }
    }

    /// Serves one connection. Returns why it ended and what follows.
    async fn serve(
        &mut self,
        transport: D::Transport,
        reconnector: &mut Reconnector,
    ) -> (CloseReason, After) {
        let machine = self.protocol.open(clock(), (self.config.entropy)());
        let tap = Tap {
            observer: self.config.observer.clone(),
            redact: P::redact,
        };
        let driver = Driver::with_config(machine, transport, self.config.driver.clone());
        let mut session = Session {
            driver: driver.tapped(tap),
            protocol: &mut self.protocol,
            front: &mut self.front,
            waiters: Waiters::new(),
            held: None,
            reason: None,
            stop: Stop::No,
            ready: false,
            touched: false,
            overrun: false,
            timer: Box::pin(tokio::time::sleep(Duration::ZERO)),
        };
        let generation = self.generation + 1;
        let reason = poll_fn(|cx| {
            let was_ready = session.ready;
            let polled = session.poll(cx, generation);
            if session.ready && !was_ready {
                reconnector.on_ready(clock());
            }
            polled
        })
        .await;
        let after = match session.stop {
            Stop::No => After::Retry,
            Stop::Redialling => After::Redial,
            Stop::Draining { .. } | Stop::Closing(_) => After::Stop,
        };
        session.waiters.fail_all(&reason);
        if session.ready {
            self.generation = generation;
            self.attempt = 0;
        }
        (reason, after)
    }

    fn set_state(&self, state: LinkState) {
        self.front.set_state(state);
    }

    /// The final state: nothing more comes.
    fn end(mut self, state: LinkState) -> CloseReason {
        let reason = state.ended().cloned().unwrap_or(CloseReason::TaskGone);
        self.front.commands.close();
        // What was on its way here was never sent.
        while let Ok(command) = self.front.commands.try_recv() {
            command(Err(Refused::Closed));
        }
        self.front.set_state(state);
        reason
    }
}

impl<P: Protocol> Front<P> {
    fn set_state(&self, state: LinkState) {
        tracing::debug!(?state, "link");
        self.events.notice(LinkEvent::State(state.clone()));
        self.state.send_replace(state);
    }

    /// Waits for `work` without a connection: commands are refused, orders are heard.
    async fn offline<F: Future>(&mut self, work: F) -> Offline<F::Output> {
        let mut work = pin!(work);
        poll_fn(|cx| {
            let order = self.shared.orders.poll_take(cx);
            if order.drain.is_some() {
                return Poll::Ready(Offline::Stop(CloseReason::Drained));
            }
            if order.close.is_some() {
                return Poll::Ready(Offline::Stop(CloseReason::Local));
            }
            if order.redial.is_some() {
                return Poll::Ready(Offline::Redial);
            }
            loop {
                match self.commands.poll_recv(cx) {
                    Poll::Ready(Some(command)) => command(Err(Refused::NotConnected)),
                    Poll::Ready(None) => return Poll::Ready(Offline::Stop(CloseReason::Local)),
                    Poll::Pending => break,
                }
            }
            work.as_mut().poll(cx).map(Offline::Done)
        })
        .await
    }
}

/// Whether and how the application wants this connection to end.
enum Stop {
    No,
    /// Nothing new is taken; calls in flight may end until then.
    Draining {
        until: Instant,
        at_start: usize,
        frame: CloseFrame,
    },
    /// A Close is under way.
    Closing(CloseReason),
    /// A Close is under way, and a new connection follows at once.
    Redialling,
}

/// What follows a connection.
enum After {
    Stop,
    /// The reconnector decides.
    Retry,
    /// A new connection at once.
    Redial,
}

/// An event that waits for room in its queue.
struct Held<P: Protocol> {
    sorted: Sorted<P>,
    /// When the wait began.
    since: Instant,
}

/// One connection while it is up.
struct Session<'a, P: Protocol, T> {
    driver: Driver<P::Machine, T>,
    protocol: &'a mut P,
    front: &'a mut Front<P>,
    waiters: Waiters<P>,
    held: Option<Held<P>>,
    reason: Option<CloseReason>,
    stop: Stop,
    ready: bool,
    /// The machine was told something while its events were handed out.
    touched: bool,
    /// Events were not taken for too long: those that still come have nowhere to go.
    overrun: bool,
    timer: Pin<Box<tokio::time::Sleep>>,
}

impl<P: Protocol, T: crate::net::Transport> Session<'_, P, T> {
    fn poll(&mut self, cx: &mut Context<'_>, generation: u64) -> Poll<CloseReason> {
        let now = clock();
        self.take_orders(cx, now, generation);
        let more = self.run_commands(cx, now);
        for call in self.front.shared.reaper.poll_take(cx) {
            if self.waiters.forget(call) {
                P::cancel(self.driver.machine_mut(), call, now);
            }
        }
        self.drain_step(now);
        loop {
            let io = self.driver.poll_io(cx);
            let choked = !self.driver.machine().wants_input();
            let blocked = self.deliver(cx, now, generation);
            if io.is_ready() && !blocked {
                let lost = self.reason.take().unwrap_or(CloseReason::Lost);
                return Poll::Ready(match std::mem::replace(&mut self.stop, Stop::No) {
                    Stop::Closing(reason) => {
                        self.stop = Stop::Closing(reason.clone());
                        reason
                    }
                    other => {
                        self.stop = other;
                        lost
                    }
                });
            }
            // Events that were taken may have made room for input, or led to new frames.
            let room = choked && self.driver.machine().wants_input();
            if !room && !std::mem::take(&mut self.touched) {
                break;
            }
        }
        let drained = self.drain_step(now);
        if more || drained {
            cx.waker().wake_by_ref();
        }
        self.arm(cx, now);
        Poll::Pending
    }

    fn take_orders(&mut self, cx: &Context<'_>, now: Instant, generation: u64) {
        let order = self.front.shared.orders.poll_take(cx);
        if let Some(frame) = order.close {
            self.close(frame, CloseReason::Local, now);
        }
        if order.abort {
            self.driver.cut();
        }
        if order.redial == Some(generation) && self.ready && matches!(self.stop, Stop::No) {
            self.stop = Stop::Redialling;
            let frame = CloseFrame::new(CloseFrame::NORMAL, "reconnecting");
            P::close(self.driver.machine_mut(), frame, now);
        }
        if let (Some((deadline, frame)), Stop::No) = (order.drain, &self.stop) {
            let at_start = P::in_flight(self.driver.machine());
            self.stop = Stop::Draining {
                until: now + deadline,
                at_start,
                frame,
            };
        }
    }

    fn close(&mut self, frame: CloseFrame, reason: CloseReason, now: Instant) {
        if !matches!(self.stop, Stop::Closing(_)) {
            self.stop = Stop::Closing(reason);
            P::close(self.driver.machine_mut(), frame, now);
        }
    }

    /// Runs what waits, within the budget; true if more waits.
    fn run_commands(&mut self, cx: &mut Context<'_>, now: Instant) -> bool {
        for _ in 0..COMMAND_BUDGET {
            match self.front.commands.poll_recv(cx) {
                Poll::Pending => return false,
                Poll::Ready(None) => {
                    // The last handle is gone.
                    let frame = CloseFrame::new(CloseFrame::NORMAL, "");
                    self.close(frame, CloseReason::Local, now);
                    return false;
                }
                Poll::Ready(Some(command)) => match &self.stop {
                    Stop::No => command(Ok(Serving {
                        machine: self.driver.machine_mut(),
                        waiters: &mut self.waiters,
                        now,
                    })),
                    Stop::Draining { .. } => command(Err(Refused::Draining)),
                    Stop::Closing(_) => command(Err(Refused::Closed)),
                    Stop::Redialling => command(Err(Refused::NotConnected)),
                },
            }
        }
        true
    }

    /// Ends a drain whose calls have ended or whose deadline has passed; true if it did.
    fn drain_step(&mut self, now: Instant) -> bool {
        let Stop::Draining {
            until,
            at_start,
            frame,
        } = &self.stop
        else {
            return false;
        };
        let left = P::in_flight(self.driver.machine());
        if left > 0 && now < *until {
            return false;
        }
        let report = DrainReport {
            finished: at_start.saturating_sub(left),
            aborted: left,
        };
        let frame = frame.clone();
        self.front.shared.orders.report(report);
        self.close(frame, CloseReason::Drained, now);
        true
    }

    /// Hands out the machine's events in order; true if one waits for room.
    fn deliver(&mut self, cx: &mut Context<'_>, now: Instant, generation: u64) -> bool {
        loop {
            let held = match self.held.take() {
                Some(held) => held,
                None => match self.driver.machine_mut().poll_event() {
                    Some(event) => Held {
                        sorted: self.protocol.sort(event),
                        since: now,
                    },
                    None => return false,
                },
            };
            let held = match held.sorted {
                // Readiness waits for nobody; only its event does.
                Sorted::Ready(event) => {
                    self.ready = true;
                    self.front.set_state(LinkState::Ready { generation });
                    let Some(event) = event else { continue };
                    Held {
                        sorted: Sorted::Event(event),
                        ..held
                    }
                }
                _ => held,
            };
            let room = match &held.sorted {
                Sorted::Event(_) | Sorted::Ready(_) => self.front.events.poll_room(cx),
                Sorted::Item(call, _) => self.waiters.poll_room(*call, cx),
                Sorted::Reply(..) | Sorted::Closed(_) | Sorted::Ignore => Poll::Ready(()),
            };
            if room.is_pending() {
                if !self.overrun && self.deadline_of(&held).is_some_and(|at| now < at) {
                    self.held = Some(held);
                    return true;
                }
                self.overflow(&held.sorted, now);
                continue;
            }
            self.hand_out(held.sorted, now);
        }
    }

    fn deadline_of(&self, held: &Held<P>) -> Option<Instant> {
        let wait = match &held.sorted {
            Sorted::Item(call, _) => self.waiters.block_deadline(*call),
            _ => self.front.events.block_deadline(),
        };
        wait.map(|wait| held.since + wait)
    }

    fn hand_out(&mut self, sorted: Sorted<P>, now: Instant) {
        match sorted {
            Sorted::Event(event) => self.push_event(event, now),
            Sorted::Reply(call, outcome) => self.waiters.complete(call, outcome),
            Sorted::Item(call, item) => {
                if self.waiters.push(call, item) == Pushed::Overflow {
                    self.end_stream(call, now);
                }
            }
            Sorted::Closed(reason) => {
                self.reason.get_or_insert(reason);
            }
            Sorted::Ready(_) | Sorted::Ignore => {}
        }
    }

    fn push_event(&mut self, event: P::Event, now: Instant) {
        let weight = P::weight(&event);
        if self.front.events.push(LinkEvent::Event(event), weight) == Push::Overflow {
            self.too_slow(now);
        }
    }

    /// A queue had no room for too long.
    fn overflow(&mut self, sorted: &Sorted<P>, now: Instant) {
        match sorted {
            Sorted::Item(call, _) => self.end_stream(*call, now),
            _ => self.too_slow(now),
        }
    }

    /// A full stream of one call ends that stream, not the connection.
    fn end_stream(&mut self, call: P::Call, now: Instant) {
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
            P::close(self.driver.machine_mut(), frame, now);
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
        self.timer.as_mut().reset(next.max(now).into());
        if self.timer.as_mut().poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }
}

impl<P: Protocol, D: Dialer> fmt::Debug for Connection<P, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("state", &*self.front.state.borrow())
            .field("generation", &self.generation)
            .finish_non_exhaustive()
    }
}
