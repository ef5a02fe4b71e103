//! [`Inbox`]: what handles and callers queue for the connection's task.
//!
//! One lock and one waker for everything: the task looks once per turn, and any number of entries
//! between two turns wakes it once.

use std::sync::MutexGuard;
use std::task::{Context, Waker};
use std::time::Duration;

use tokio::sync::{Semaphore, TryAcquireError};

use super::Protocol;
use super::call::Completer;
use super::handle::DrainReport;
use crate::Instant;
use crate::backlog::Backlog;
use crate::error::Refused;
use crate::message::CloseFrame;
use crate::net::queue::{remember, wake_from};
use crate::sync::Mutex;

/// The target of a command while there is a connection.
pub(super) struct Serving<'a, P: Protocol> {
    pub(super) machine: &'a mut P::Machine,
    pub(super) now: Instant,
}

/// A closure that runs on the machine.
pub(super) type Work<P> = Box<dyn FnOnce(Result<Serving<'_, P>, Refused>) + Send>;

/// A command for the task, in order.
pub(super) enum Command<P: Protocol> {
    /// Start this call.
    Call(Completer<P>),
    /// Anything else. It also runs during a drain, to answer open requests.
    Work(Work<P>),
}

impl<P: Protocol> Command<P> {
    pub(super) fn refuse(self, why: Refused) {
        match self {
            Self::Call(call) => call.complete(Err(why.into())),
            Self::Work(work) => work(Err(why)),
        }
    }
}

/// Orders, which overtake commands.
#[derive(Debug, Default)]
pub(super) struct Orders {
    pub(super) close: Option<CloseFrame>,
    pub(super) drain: Option<Duration>,
    /// Dial now, if this is still the generation of the current connection (or there is none).
    pub(super) redial: Option<u64>,
    pub(super) abort: bool,
}

/// What the task finds besides commands.
pub(super) struct Found<C> {
    /// `None` on all but a few turns.
    pub(super) orders: Option<Box<Orders>>,
    /// Calls whose callers are gone.
    pub(super) abandoned: Vec<C>,
    /// Whether the last handle is gone, so that no further command can come.
    pub(super) orphaned: bool,
}

pub(super) struct Inbox<P: Protocol> {
    state: Mutex<State<P>>,
    /// One permit for each further command.
    room: Semaphore,
}

struct State<P: Protocol> {
    commands: Backlog<Command<P>>,
    abandoned: Vec<P::Call>,
    orders: Option<Box<Orders>>,
    report: Option<DrainReport>,
    handles: usize,
    /// Whether the task accepts nothing more.
    closed: bool,
    /// Whether the task is run.
    running: bool,
    /// The task's waker, unless the task was woken since its last look.
    task: Option<Waker>,
}

impl<P: Protocol> Inbox<P> {
    /// Creates an inbox for one handle and at most `max_commands` commands.
    pub(super) fn new(max_commands: usize) -> Self {
        Self {
            state: Mutex::new(State {
                commands: Backlog::new(),
                abandoned: Vec::new(),
                orders: None,
                report: None,
                handles: 1,
                closed: false,
                running: false,
                task: None,
            }),
            room: Semaphore::new(max_commands.clamp(1, Semaphore::MAX_PERMITS)),
        }
    }

    /// Queues a command if there is room now; otherwise returns it with the reason.
    pub(super) fn try_leave(&self, command: Command<P>) -> Result<(), (Command<P>, Refused)> {
        match self.room.try_acquire() {
            Ok(permit) => {
                permit.forget();
                self.push(command)
                    .map_err(|command| (command, Refused::Closed))
            }
            Err(TryAcquireError::NoPermits) => Err((command, Refused::QueueFull)),
            Err(TryAcquireError::Closed) => Err((command, Refused::Closed)),
        }
    }

    /// Queues a command once there is room. Returns it if the task has closed the queue.
    pub(super) async fn leave(&self, command: Command<P>) -> Result<(), Command<P>> {
        match self.room.acquire().await {
            Ok(permit) => {
                permit.forget();
                self.push(command)
            }
            Err(_) => Err(command),
        }
    }

    fn push(&self, command: Command<P>) -> Result<(), Command<P>> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(command);
        }
        if !state.running {
            // A task that is never run would let it wait for ever.
            drop(state);
            self.make_room(1);
            command.refuse(Refused::NotConnected);
            return Ok(());
        }
        state.commands.push_back(command);
        wake(state);
        Ok(())
    }

    pub(super) fn order(&self, give: impl FnOnce(&mut Orders)) {
        let mut state = self.state.lock();
        give(state.orders.get_or_insert_default());
        wake(state);
    }

    /// Wakes the task.
    pub(super) fn wake(&self) {
        wake(self.state.lock());
    }

    /// Notes that the caller of this call is gone.
    pub(super) fn abandon(&self, call: P::Call) {
        let mut state = self.state.lock();
        if !state.closed {
            state.abandoned.push(call);
            wake(state);
        }
    }

    pub(super) fn add_handle(&self) {
        self.state.lock().handles += 1;
    }

    /// Adds a handle, unless there is none left: a link that has been given up stays closed.
    pub(super) fn revive(&self) -> bool {
        let mut state = self.state.lock();
        let lives = state.handles > 0;
        state.handles += usize::from(lives);
        lives
    }

    pub(super) fn drop_handle(&self) {
        let mut state = self.state.lock();
        state.handles -= 1;
        if state.handles == 0 {
            wake(state);
        }
    }

    pub(super) fn put_report(&self, report: DrainReport) {
        self.state.lock().report = Some(report);
    }

    pub(super) fn report(&self) -> Option<DrainReport> {
        self.state.lock().report
    }

    /// Takes everything, appends the commands to `commands`, and registers to be woken for more.
    pub(super) fn poll_take(
        &self,
        cx: &Context<'_>,
        commands: &mut Backlog<Command<P>>,
    ) -> Found<P::Call> {
        let mut state = self.state.lock();
        remember(&mut state.task, cx);
        if commands.is_empty() {
            std::mem::swap(commands, &mut state.commands);
        } else {
            while let Some(command) = state.commands.pop_front() {
                commands.push_back(command);
            }
        }
        Found {
            orders: state.orders.take(),
            abandoned: std::mem::take(&mut state.abandoned),
            orphaned: state.handles == 0,
        }
    }

    /// Sets whether the task is run. Nobody would take commands otherwise: they are refused.
    pub(super) fn set_running(&self, runs: bool) {
        self.state.lock().running = runs;
    }

    /// Frees the room of this many commands that were run.
    pub(super) fn make_room(&self, commands: usize) {
        if commands > 0 {
            self.room.add_permits(commands);
        }
    }

    /// Closes the inbox and returns the commands that are left.
    pub(super) fn close(&self) -> Backlog<Command<P>> {
        let mut state = self.state.lock();
        state.closed = true;
        state.abandoned = Vec::new();
        let left = std::mem::take(&mut state.commands);
        drop(state);
        self.room.close();
        left
    }
}

/// Wakes the task, unless it was woken already.
fn wake<P: Protocol>(state: MutexGuard<'_, State<P>>) {
    wake_from(state, |state| state.task.take());
}
