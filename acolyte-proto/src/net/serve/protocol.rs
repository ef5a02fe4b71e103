//! How the server's machine rides on a [`Link`](rpc_core::net::Link).

use std::convert::Infallible;
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use rpc_core::CloseFrame;
use rpc_core::net::{Protocol, Sorted};
use tokio::sync::Notify;

use super::outlet::Outlet;
use crate::id::RpcId;
use crate::server::{ServerConfig, ServerConn, ServerEvent};
use crate::task::{TaskRegistry, TaskState};

/// The tasks of all connections.
pub(super) type Tasks = Arc<Mutex<TaskRegistry>>;

/// What the two halves of a connection share: the one that works and the one that moves frames.
#[derive(Default)]
pub(super) struct Line {
    /// The chat that runs.
    current: Mutex<Option<(RpcId, Arc<Outlet>)>>,
    /// How many wait behind it.
    pub(super) waiting: Arc<AtomicUsize>,
    /// The machine has room again.
    pub(super) writable: Notify,
    gone: AtomicBool,
}

impl Line {
    fn current(&self) -> MutexGuard<'_, Option<(RpcId, Arc<Outlet>)>> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outlet of the chat that runs.
    pub(super) fn outlet(&self) -> Option<Arc<Outlet>> {
        let current = self.current();
        current.as_ref().map(|(_, outlet)| Arc::clone(outlet))
    }

    pub(super) fn begin(&self, id: RpcId, outlet: Arc<Outlet>) {
        *self.current() = Some((id, outlet));
    }

    /// The chat's work has been given up.
    pub(super) fn forget(&self) {
        *self.current() = None;
    }

    /// As [`forget`](Self::forget), if this chat is still the one that runs.
    fn give_up(&self, id: &RpcId) {
        let given_up = self.current().take_if(|(running, _)| running == id);
        if let Some((_, outlet)) = given_up {
            outlet.stop();
        }
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    /// The client has left.
    pub(super) fn leave(&self) {
        self.gone.store(true, Ordering::Release);
        let current = self.current().take();
        if let Some((_, outlet)) = current {
            outlet.stop();
        }
        self.writable.notify_waiters();
    }

    fn gather_into(&self, conn: &mut ServerConn) {
        let current = self.current().clone();
        if let Some((id, outlet)) = current
            && outlet.gather_into(&id, conn)
        {
            self.forget();
        }
        self.waiting.store(conn.waiting(), Ordering::Relaxed);
    }
}

/// The server's side of one accepted connection.
pub(super) struct ServerSide {
    config: Arc<ServerConfig>,
    tasks: Tasks,
    line: Arc<Line>,
}

impl ServerSide {
    pub(super) const fn new(config: Arc<ServerConfig>, tasks: Tasks, line: Arc<Line>) -> Self {
        Self {
            config,
            tasks,
            line,
        }
    }
}

impl fmt::Debug for ServerSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSide")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}

impl Protocol for ServerSide {
    type Machine = ServerConn;
    type Call = Infallible;
    type Value = Infallible;
    type Remote = Infallible;
    type Item = Infallible;
    type Event = ServerEvent;

    fn open(&mut self, now: Instant, entropy: u64) -> ServerConn {
        ServerConn::new(Arc::clone(&self.config), entropy, now)
    }

    fn sort(&mut self, event: ServerEvent) -> Sorted<Self> {
        match event {
            ServerEvent::Task { task_id, state } => {
                if state == TaskState::Queued {
                    self.line.waiting.fetch_add(1, Ordering::Relaxed);
                }
                let mut tasks = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
                if let Err(error) = tasks.note(&task_id, state, SystemTime::now()) {
                    tracing::warn!(%task_id, %error, "a task's state was not noted");
                }
                Sorted::Ignore
            }
            ServerEvent::Closed(reason) => {
                // The closing handshake may take a while; the work ends now.
                self.line.leave();
                Sorted::Closed(reason)
            }
            ServerEvent::GivenUp { id } => {
                // At once: the client may use the id again, and what the old work still says must
                // not become a part of the new chat.
                self.line.give_up(&id);
                Sorted::Event(ServerEvent::GivenUp { id })
            }
            other => Sorted::Event(other),
        }
    }

    fn close(machine: &mut ServerConn, frame: CloseFrame, now: Instant) {
        machine.close_with(frame, now);
    }

    fn cancel(_: &mut ServerConn, call: Infallible, _: Instant) {
        match call {}
    }

    fn gather(&mut self, machine: &mut ServerConn, _: Instant) {
        self.line.gather_into(machine);
    }

    fn in_flight(machine: &ServerConn) -> usize {
        machine.in_flight()
    }
}

#[cfg(test)]
mod tests {
    use rpc_core::Limits;

    use super::super::outlet::Bell;
    use super::*;

    #[test]
    fn a_chat_that_was_given_up_says_nothing_under_an_id_that_is_used_again() {
        let line = Arc::<Line>::default();
        let config = Arc::<ServerConfig>::default();
        let mut side = ServerSide::new(config, Tasks::default(), Arc::clone(&line));
        let outlet = || Arc::new(Outlet::new(Bell::Body(Notify::new()), &Limits::default()));
        let (old, other) = (RpcId::random(1), RpcId::random(2));
        line.begin(old.clone(), outlet());
        let given_up = |id: &RpcId| ServerEvent::GivenUp { id: id.clone() };
        assert!(matches!(side.sort(given_up(&other)), Sorted::Event(_)));
        assert!(line.outlet().is_some(), "another chat runs");
        assert!(matches!(side.sort(given_up(&old)), Sorted::Event(_)));
        assert!(line.outlet().is_none(), "nothing more is taken from it");
    }
}
