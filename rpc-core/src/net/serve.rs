//! [`serve`]: one accepted connection in one task: its transport, its machine, its handlers.

use std::borrow::Cow;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use tokio::sync::Notify;
use tracing::Instrument;

use super::driver::{DriverConfig, Io};
use super::observe::Tap;
use super::queue::{remember, wake_from};
use super::running::Running;
use super::telemetry::{ConnectionMeter, Side, connection_span};
use super::time;
use super::transport::Transport;
use crate::Instant;
use crate::error::{CloseReason, Disconnect};
use crate::machine::Machine;
use crate::message::CloseFrame;
use crate::sync::Mutex;

/// How many messages are handled before more are read. Allocators keep about as many freed pieces of
/// each size at hand, so that a request reuses the memory of the one before it.
const AT_ONCE: usize = 7;

/// How a server handles the events of one connection.
pub trait ConnectionHandler: Send + Unpin + 'static {
    /// The machine of the connection.
    type Machine: Machine + Send + 'static;

    /// The name of the protocol in [spans and metrics](crate::net::telemetry), such as `snek`.
    const SYSTEM: &'static str;

    /// Handles an event. Work that waits goes into `tasks`, whose futures run on the connection's
    /// task and are dropped when the connection ends. Returns the reason if the event is the end.
    ///
    /// The machine is not locked during this call: access it through its [`Handle`].
    fn on_event(
        &mut self,
        event: <Self::Machine as Machine>::Event,
        tasks: &mut Running,
    ) -> Option<CloseReason>;

    /// Passes the machine what is kept for it elsewhere. Called in every turn, before frames are
    /// written.
    fn before_write(&mut self) {}

    /// Shuts down: accepts no new requests, lets open ones finish in `tasks`, then closes.
    fn shut_down(&mut self, tasks: &mut Running);

    /// Called when the connection has ended and its tasks are gone. The returned future runs to its
    /// end.
    fn disconnected(&mut self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }

    /// Replaces secrets in a frame for observers.
    fn redact(text: &str) -> Cow<'_, str> {
        Cow::Borrowed(text)
    }
}

/// A handle to the machine of an accepted connection. Cheap to clone, usable from any task.
///
/// Commands run at once, under a lock that the connection's own task holds only while it moves
/// frames. What they queue is bounded by the machine's own limits and leaves with the task's next
/// turn.
pub struct Handle<M> {
    shared: Arc<Shared<M>>,
}

struct Shared<M> {
    state: Mutex<State<M>>,
    changed: Notify,
}

struct State<M> {
    machine: M,
    /// The waker of the connection's task, while it sleeps.
    task: Option<Waker>,
    /// The frame to close with, once the tasks of this turn have run.
    close: Option<CloseFrame>,
    /// Whether to drop the transport.
    cut: bool,
    /// Whether [`Handle::drain`] waits for the last call.
    is_draining: bool,
}

impl<M: Machine> Handle<M> {
    /// Creates a handle to the machine of a new connection. Pass a clone of it to [`serve`].
    #[must_use]
    pub fn new(machine: M) -> Self {
        let state = State {
            machine,
            task: None,
            close: None,
            cut: false,
            is_draining: false,
        };
        let (state, changed) = (Mutex::new(state), Notify::new());
        let shared = Arc::new(Shared { state, changed });
        Self { shared }
    }

    fn lock(&self) -> MutexGuard<'_, State<M>> {
        self.shared.state.lock()
    }

    /// Runs `command` on the machine and wakes the connection's task. Do not use the handle inside
    /// it.
    pub fn with<R>(&self, command: impl FnOnce(&mut M) -> R) -> R {
        let mut state = self.lock();
        let result = command(&mut state.machine);
        wake(state);
        result
    }

    /// Reads from the machine.
    pub fn read<R>(&self, look: impl FnOnce(&M) -> R) -> R {
        look(&self.lock().machine)
    }

    /// Repeats `command` until it returns a value, whenever [`notify`](Self::notify) reports that
    /// the machine may have room again.
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, `command` has returned no value.
    pub async fn retry<R>(&self, mut command: impl FnMut(&mut M) -> Option<R>) -> R {
        if let Some(result) = self.with(&mut command) {
            return result;
        }
        loop {
            // Made before the attempt, so that no change falls between.
            let changed = self.shared.changed.notified();
            if let Some(result) = self.with(&mut command) {
                return result;
            }
            changed.await;
        }
    }

    /// Reports that the machine has room again, so that every [`retry`](Self::retry) tries again.
    pub fn notify(&self) {
        self.shared.changed.notify_waiters();
    }

    /// Waits until nothing is [in flight](Machine::in_flight) or the connection has ended, at most for
    /// `timeout`; then [closes](Self::close_with).
    ///
    /// # Cancel safety
    /// If the future is dropped before it is ready, nothing is closed.
    pub async fn drain(&self, timeout: Duration, frame: CloseFrame) {
        let idle = async {
            loop {
                let changed = self.shared.changed.notified();
                {
                    let mut state = self.lock();
                    if state.machine.is_closed() || state.machine.in_flight() == 0 {
                        return;
                    }
                    state.is_draining = true;
                }
                changed.await;
            }
        };
        // Time that has run out ends the wait as well.
        let _ = time::timeout(timeout, idle).await;
        self.close_with(frame);
    }

    /// Closes with this frame, after the queued frames and those that the connection's tasks still
    /// write in this turn. The first frame counts.
    pub fn close_with(&self, frame: CloseFrame) {
        let mut state = self.lock();
        state.close.get_or_insert(frame);
        wake(state);
    }

    /// Drops the transport without a closing handshake, like a pulled cable.
    pub fn cut(&self) {
        let mut state = self.lock();
        state.cut = true;
        wake(state);
    }
}

/// Wakes the connection's task, if it sleeps.
fn wake<M>(state: MutexGuard<'_, State<M>>) {
    wake_from(state, |state| state.task.take());
}

impl<M> Clone for Handle<M> {
    fn clone(&self) -> Self {
        let shared = Arc::clone(&self.shared);
        Self { shared }
    }
}

crate::debug::debug_fields!([M] Handle<M>, _ => {});

/// Serves one connection to its end: reads, passes events to `handler`, runs its tasks, writes and
/// flushes once per turn. Everything happens in the returned future. Once `shutdown` is ready, the
/// handler [shuts down](ConnectionHandler::shut_down).
///
/// # Cancel safety
/// Dropping the future drops the transport and the tasks; the machine is closed.
///
/// # Panics
/// Outside a tokio runtime with its timer enabled.
pub fn serve<H: ConnectionHandler, T: Transport>(
    handle: Handle<H::Machine>,
    transport: T,
    handler: H,
    config: DriverConfig,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> impl Future<Output = CloseReason> + Send {
    serve_peer(handle, transport, handler, config, None, shutdown)
}

/// Like [`serve`], for a peer whose address may be known.
pub(super) fn serve_peer<H: ConnectionHandler, T: Transport>(
    handle: Handle<H::Machine>,
    transport: T,
    handler: H,
    mut config: DriverConfig,
    peer: Option<SocketAddr>,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> impl Future<Output = CloseReason> + Send {
    let meter = ConnectionMeter::new(Side::Server, H::SYSTEM);
    let tap = Tap::new(config.observer.take(), H::redact, peer, 0);
    let mut connection = Connection {
        handle,
        io: Io::new(transport, &config, tap, meter),
        handler,
        tasks: Running::new(),
        shutdown: Some(Box::pin(shutdown)),
        reason: None,
        has_ended: false,
    };
    let span = connection_span(Side::Server, H::SYSTEM);
    // Not an `async fn`, which would hold its arguments a second time.
    poll_fn(move |cx| connection.poll(cx)).instrument(span)
}

struct Connection<H: ConnectionHandler, T: Transport> {
    handle: Handle<H::Machine>,
    io: Io<T>,
    handler: H,
    tasks: Running,
    shutdown: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    reason: Option<CloseReason>,
    /// Whether the handler knows that the machine has closed.
    has_ended: bool,
}

impl<H: ConnectionHandler, T: Transport> Connection<H, T> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<CloseReason> {
        let now = time::now();
        loop {
            let (more, was_full) = self.handle_input(cx, now);
            if let Some(shutdown) = &mut self.shutdown
                && shutdown.as_mut().poll(cx).is_ready()
            {
                // Behind the tasks, in case one of them logs the peer in.
                self.shutdown = None;
                self.handler.shut_down(&mut self.tasks);
                self.run_tasks(cx);
            }
            self.handler.before_write();

            let mut state = self.handle.lock();
            if let Some(frame) = state.close.take() {
                state.machine.close_with(frame, now);
            }
            // Whether the transport is gone is asked below, behind what may drop it.
            let _ = self.io.poll_output(&mut state.machine, cx, now, more);
            if matches!(self.reason, Some(CloseReason::KeepAlive { .. })) {
                // The peer answers no ping, so it will not answer a Close either.
                let machine = &mut state.machine;
                self.io.drop_transport(machine, Disconnect::Local, now);
            }
            if let Some(event) = state.machine.poll_event() {
                drop(state);
                self.handle_event(event);
                continue;
            }
            if state.machine.is_closed() && !self.has_ended {
                drop(state);
                self.end();
                continue;
            }
            if was_full && state.machine.wants_input() && !state.machine.is_closed() {
                continue;
            }
            if self.io.is_gone() && self.tasks.is_empty() {
                return Poll::Ready(self.reason.take().unwrap_or(CloseReason::Lost));
            }
            if state.is_draining && state.machine.in_flight() == 0 {
                state.is_draining = false;
                self.handle.notify();
            }
            remember(&mut state.task, cx);
            return Poll::Pending;
        }
    }

    /// Reads, handles events and runs tasks, a few messages at a time. Returns whether there may be
    /// more to read, and whether the machine wanted no further input at the end of it.
    fn handle_input(&mut self, cx: &mut Context<'_>, now: Instant) -> (bool, bool) {
        let mut budget = self.io.read_budget();
        loop {
            let mut state = self.handle.lock();
            // What is queued in this turn leaves in it, so no one has to wake the task.
            state.task = None;
            let State { machine, cut, .. } = &mut *state;
            if std::mem::take(cut) {
                self.io.drop_transport(machine, Disconnect::Eof, now);
            }
            let at_most = budget.min(AT_ONCE);
            budget -= at_most;
            let more = self.io.poll_input(machine, cx, now, at_most);
            let was_full = !machine.wants_input();
            while let Some(event) = state.machine.poll_event() {
                drop(state);
                self.handle_event(event);
                state = self.handle.lock();
            }
            drop(state);
            self.run_tasks(cx);
            // The last words of a machine that has closed leave before anything else is read.
            if !more || budget == 0 || self.handle.read(Machine::is_closed) {
                return (more, was_full);
            }
        }
    }

    #[inline(always)] // An event is moved less.
    fn handle_event(&mut self, event: <H::Machine as Machine>::Event) {
        if let Some(reason) = self.handler.on_event(event, &mut self.tasks) {
            self.reason.get_or_insert(reason);
        }
    }

    fn run_tasks(&mut self, cx: &mut Context<'_>) {
        while self.tasks.poll_next(cx).is_ready() {}
    }

    /// Handles the end of the machine. The closing handshake may take a while; the tasks end now.
    fn end(&mut self) {
        self.has_ended = true;
        self.shutdown = None;
        self.tasks = Running::new();
        self.tasks.push(self.handler.disconnected());
        self.handle.notify();
    }
}

/// Marks the machine closed for all handles, however the task ends.
impl<H: ConnectionHandler, T: Transport> Drop for Connection<H, T> {
    fn drop(&mut self) {
        let mut state = self.handle.lock();
        state.task = None;
        state
            .machine
            .handle_disconnect(Disconnect::Local, time::now());
        drop(state);
        self.handle.notify();
    }
}

#[cfg(test)]
mod tests;
