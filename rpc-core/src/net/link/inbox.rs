//! [`Inbox`]: what handles and callers leave for the connection's task.
//!
//! One lock and one waker for all of it: the task looks once per turn, and however much is left
//! for it between two turns wakes it once.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, TryAcquireError};

use super::Protocol;
use super::call::Completer;
use super::handle::DrainReport;
use crate::error::Refused;
use crate::message::CloseFrame;
use crate::net::queue::remember;

/// Room for more commands than these is given back when none waits.
const KEPT: usize = 64;

/// What a command works on, while there is a connection.
pub(super) struct Serving<'a, P: Protocol> {
    pub(super) machine: &'a mut P::Machine,
    pub(super) now: Instant,
}

/// Work on the machine.
pub(super) type Work<P> = Box<dyn FnOnce(Result<Serving<'_, P>, Refused>) + Send>;

/// What the task is asked to do, in order.
pub(super) enum Command<P: Protocol> {
    /// Start this call.
    Call(Completer<P>),
    /// Anything else. It runs during a drain too, so that what is open can be answered.
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
    pub(super) drain: Option<(Duration, CloseFrame)>,
    /// Dial now, if this is still the generation of the line that is up (or none is).
    pub(super) redial: Option<u64>,
    pub(super) abort: bool,
}

/// What the task finds besides commands.
pub(super) struct Found<C> {
    /// `None` on all but a few turns.
    pub(super) orders: Option<Box<Orders>>,
    /// Calls whose callers went away.
    pub(super) abandoned: Vec<C>,
    /// The last handle is gone, so no command follows those that are there.
    pub(super) orphaned: bool,
}

pub(super) struct Inbox<P: Protocol> {
    state: Mutex<State<P>>,
    /// A permit for each command that may still be left here.
    room: Semaphore,
}

struct State<P: Protocol> {
    commands: VecDeque<Command<P>>,
    abandoned: Vec<P::Call>,
    orders: Option<Box<Orders>>,
    report: Option<DrainReport>,
    handles: usize,
    /// The task takes nothing more.
    closed: bool,
    /// The task, unless something has woken it since its last look.
    task: Option<Waker>,
}

impl<P: Protocol> Inbox<P> {
    /// For one handle and at most so many commands.
    pub(super) fn new(max_commands: usize) -> Self {
        Self {
            state: Mutex::new(State {
                commands: VecDeque::new(),
                abandoned: Vec::new(),
                orders: None,
                report: None,
                handles: 1,
                closed: false,
                task: None,
            }),
            room: Semaphore::new(max_commands.clamp(1, Semaphore::MAX_PERMITS)),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves a command if there is room now; else it comes back, with the reason.
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

    /// Leaves a command once there is room. It comes back if nobody takes it any more.
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
        let mut state = self.lock();
        if state.closed {
            return Err(command);
        }
        state.commands.push_back(command);
        wake(state);
        Ok(())
    }

    pub(super) fn order(&self, give: impl FnOnce(&mut Orders)) {
        let mut state = self.lock();
        give(state.orders.get_or_insert_default());
        wake(state);
    }

    /// Wakes the task.
    pub(super) fn wake(&self) {
        wake(self.lock());
    }

    /// The caller of this call went away.
    pub(super) fn abandon(&self, call: P::Call) {
        let mut state = self.lock();
        if !state.closed {
            state.abandoned.push(call);
            wake(state);
        }
    }

    pub(super) fn add_handle(&self) {
        self.lock().handles += 1;
    }

    /// Adds a handle unless there is none any more: what has been given up does not come back.
    pub(super) fn revive(&self) -> bool {
        let mut state = self.lock();
        let lives = state.handles > 0;
        state.handles += usize::from(lives);
        lives
    }

    pub(super) fn drop_handle(&self) {
        let mut state = self.lock();
        state.handles -= 1;
        if state.handles == 0 {
            wake(state);
        }
    }

    pub(super) fn put_report(&self, report: DrainReport) {
        self.lock().report = Some(report);
    }

    pub(super) fn report(&self) -> Option<DrainReport> {
        self.lock().report
    }

    /// Takes what is there, the commands to the end of `commands`, and asks to be woken for more.
    pub(super) fn poll_take(
        &self,
        cx: &Context<'_>,
        commands: &mut VecDeque<Command<P>>,
    ) -> Found<P::Call> {
        let mut state = self.lock();
        remember(&mut state.task, cx);
        if commands.is_empty() {
            std::mem::swap(commands, &mut state.commands);
        } else {
            commands.append(&mut state.commands);
        }
        Found {
            orders: state.orders.take(),
            abandoned: std::mem::take(&mut state.abandoned),
            orphaned: state.handles == 0,
        }
    }

    /// So many commands were carried out: as many may follow.
    pub(super) fn make_room(&self, commands: usize) {
        if commands > 0 {
            self.room.add_permits(commands);
        }
    }

    /// Takes nothing more, and gives back what nobody will take.
    pub(super) fn close(&self) -> VecDeque<Command<P>> {
        let mut state = self.lock();
        state.closed = true;
        state.abandoned = Vec::new();
        let left = std::mem::take(&mut state.commands);
        drop(state);
        self.room.close();
        left
    }
}

impl<P: Protocol> fmt::Debug for Inbox<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inbox").finish_non_exhaustive()
    }
}

/// Wakes the task, unless that has been done.
fn wake<P: Protocol>(mut state: MutexGuard<'_, State<P>>) {
    let task = state.task.take();
    drop(state);
    if let Some(task) = task {
        task.wake();
    }
}

/// Frees what a burst of commands needed.
pub(super) fn tidy<T>(commands: &mut VecDeque<T>) {
    if commands.is_empty() && commands.capacity() > KEPT {
        *commands = VecDeque::new();
    }
}
