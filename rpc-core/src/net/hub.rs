//! [`SharedHub`]: a hub without IO, shared by the tasks of many connections.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

use super::serve::Handle;
use super::time;
use crate::Instant;
use crate::error::Refused;
use crate::machine::Machine;
use crate::message::CloseFrame;
use crate::sync::Mutex;

/// The state under the lock of a [`SharedHub`]: the protocol's hub, and where its outputs go.
pub trait HubState: Send + 'static {
    /// The time that the hub's methods take.
    type Now: Copy;

    /// Returns the current time, by [`time::now`](super::time::now) and where needed by the wall
    /// clock.
    fn now() -> Self::Now;

    /// Delivers every output of the hub. Returns `true` if the task that runs the hub has something
    /// to start.
    fn drain_outputs(&mut self, now: Self::Now) -> bool;

    /// Returns the hub's next deadline.
    fn poll_timeout(&self) -> Option<Instant>;

    /// Handles a deadline that has passed.
    fn handle_timeout(&mut self, now: Self::Now);

    /// Returns whether nothing is open that a shutdown should wait for.
    fn is_idle(&self) -> bool;

    /// Ends everything that waits for the hub, because no task runs it any more.
    fn end(&mut self);
}

/// A hub that many tasks share. Cheap to clone; all clones are the same hub.
///
/// One task runs it: it [waits](Self::changed) for deadlines and for work to start.
pub struct SharedHub<S> {
    shared: Arc<Shared<S>>,
}

struct Shared<S> {
    locked: Mutex<Locked<S>>,
    /// Notified when there is work to start, or the next deadline is earlier.
    woken: Notify,
    /// Notified when nothing is open any more while the hub drains.
    idle: Notify,
    /// Changes under the lock.
    is_draining: AtomicBool,
}

struct Locked<S> {
    state: S,
    /// The deadline that the running task sleeps until.
    armed: Option<Instant>,
}

impl<S: HubState> SharedHub<S> {
    /// Creates a hub with this state.
    #[must_use]
    pub fn new(state: S) -> Self {
        Self {
            shared: Arc::new(Shared {
                locked: Mutex::new(Locked { state, armed: None }),
                woken: Notify::new(),
                idle: Notify::new(),
                is_draining: AtomicBool::new(false),
            }),
        }
    }

    /// Runs `act` on the hub and delivers its outputs before anything else uses the hub. Do not use
    /// the hub inside `act`.
    pub fn with<R>(&self, act: impl FnOnce(&mut S, S::Now) -> R) -> R {
        let mut locked = self.shared.locked.lock();
        let now = S::now();
        let result = act(&mut locked.state, now);
        let has_work = locked.state.drain_outputs(now);
        let next = locked.state.poll_timeout();
        let is_sooner = next.is_some_and(|next| locked.armed.is_none_or(|armed| next < armed));
        let is_idle = self.is_draining() && locked.state.is_idle();
        drop(locked);
        if has_work || is_sooner {
            self.shared.woken.notify_one();
        }
        if is_idle {
            self.shared.idle.notify_waiters();
        }
        result
    }

    /// Like [`with`](Self::with), but returns `None` if the hub drains or has ended.
    pub fn with_open<R>(&self, act: impl FnOnce(&mut S, S::Now) -> R) -> Option<R> {
        self.with(|state, now| (!self.is_draining()).then(|| act(state, now)))
    }

    /// Runs `act`, which neither changes the hub nor produces outputs.
    pub fn peek<R>(&self, act: impl FnOnce(&mut S) -> R) -> R {
        act(&mut self.shared.locked.lock().state)
    }

    /// Returns whether [`drain`](Self::drain) was called or the hub has ended.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.shared.is_draining.load(Ordering::Relaxed)
    }

    /// Waits until nothing is open, for at most `timeout`; returns `false` on timeout.
    ///
    /// # Cancel safety
    /// The hub keeps draining; only the result is lost.
    pub async fn drain(&self, timeout: Duration) -> bool {
        let locked = self.shared.locked.lock();
        self.shared.is_draining.store(true, Ordering::Relaxed);
        drop(locked);
        let idle = async {
            loop {
                // Made before the look, so that no change falls between.
                let idle = self.shared.idle.notified();
                if self.shared.locked.lock().state.is_idle() {
                    return;
                }
                idle.await;
            }
        };
        time::timeout(timeout, idle).await.is_ok()
    }

    /// Waits, in the task that runs the hub, until there may be work to start, and handles
    /// deadlines meanwhile.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn changed(&self) {
        let deadline = {
            let mut locked = self.shared.locked.lock();
            locked.armed = locked.state.poll_timeout();
            locked.armed
        };
        tokio::select! {
            () = self.shared.woken.notified() => {}
            () = time::sleep_until(deadline.unwrap_or_else(time::now)), if deadline.is_some() => {
                self.with(S::handle_timeout);
            }
        }
    }

    /// Returns a guard that [ends](HubState::end) the hub when the task that runs it ends for any
    /// reason.
    #[must_use]
    pub fn running(&self) -> RunningHub<S> {
        RunningHub(self.clone())
    }
}

impl<S> Clone for SharedHub<S> {
    fn clone(&self) -> Self {
        let shared = Arc::clone(&self.shared);
        Self { shared }
    }
}

crate::debug::debug_fields!([S] SharedHub<S>, _ => {});

/// Ends a hub when it is dropped: see [`SharedHub::running`].
#[derive(Debug)]
pub struct RunningHub<S: HubState>(SharedHub<S>);

impl<S: HubState> Drop for RunningHub<S> {
    fn drop(&mut self) {
        let mut locked = self.0.shared.locked.lock();
        self.0.shared.is_draining.store(true, Ordering::Relaxed);
        locked.state.end();
    }
}

/// The connections of a hub by number.
pub struct Connections<M> {
    handles: HashMap<u64, Handle<M>>,
    last: u64,
}

impl<M: Machine> Connections<M> {
    /// Adds a connection and returns its number.
    pub fn insert(&mut self, handle: Handle<M>) -> u64 {
        self.last += 1;
        self.handles.insert(self.last, handle);
        self.last
    }

    /// Removes a connection; returns `false` if there is none with this number.
    pub fn remove(&mut self, conn: u64) -> bool {
        self.handles.remove(&conn).is_some()
    }

    /// Returns the handle of a connection.
    #[must_use]
    pub fn get(&self, conn: u64) -> Option<&Handle<M>> {
        self.handles.get(&conn)
    }

    /// Writes to a connection, if it still exists. Disconnects a client that reads too slowly with
    /// 1013.
    pub fn write(&self, conn: u64, write: impl FnOnce(&mut M) -> Result<(), Refused>) {
        let Some(handle) = self.handles.get(&conn) else {
            return;
        };
        match handle.with(write) {
            Ok(()) | Err(Refused::Closed) => {}
            Err(Refused::QueueFull) => {
                handle.close_with(CloseFrame::new(CloseFrame::TRY_AGAIN, "slow reader"));
            }
            Err(why) => tracing::debug!(%why, conn, "a frame was not sent"),
        }
    }
}

impl<M> Default for Connections<M> {
    fn default() -> Self {
        Self {
            handles: HashMap::new(),
            last: 0,
        }
    }
}

crate::debug::debug_fields!([M] Connections<M>, this => { len: this.handles.len() });

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt as _;

    use super::*;
    use crate::net::time;

    /// Counts, and returns its input as work.
    #[derive(Default)]
    struct Jobs {
        inbox: Vec<u32>,
        work: Vec<u32>,
        deadline: Option<Instant>,
        timeouts: u32,
        has_ended: bool,
    }

    impl HubState for Jobs {
        type Now = Instant;

        fn now() -> Instant {
            time::now()
        }

        fn drain_outputs(&mut self, _: Instant) -> bool {
            let has_work = !self.inbox.is_empty();
            self.work.append(&mut self.inbox);
            has_work
        }

        fn poll_timeout(&self) -> Option<Instant> {
            self.deadline
        }

        fn handle_timeout(&mut self, now: Instant) {
            if self.deadline.is_some_and(|at| at <= now) {
                self.deadline = None;
                self.timeouts += 1;
            }
        }

        fn is_idle(&self) -> bool {
            self.work.is_empty()
        }

        fn end(&mut self) {
            self.has_ended = true;
        }
    }

    const SECOND: Duration = Duration::from_secs(1);

    #[tokio::test(start_paused = true)]
    async fn a_hubs_task_is_woken_only_for_work() {
        let hub = SharedHub::new(Jobs::default());
        let mut changed = pin!(hub.changed());
        assert!(changed.as_mut().now_or_never().is_none());
        hub.with(|_, _| ());
        assert!(changed.as_mut().now_or_never().is_none());
        hub.with(|jobs, _| jobs.inbox.push(1));
        assert!(changed.now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn earlier_deadlines_of_a_hub_are_honored() {
        let hub = SharedHub::new(Jobs::default());
        let running = hub.clone();
        let task = tokio::spawn(async move {
            loop {
                running.changed().await;
            }
        });
        for seconds in [100, 1] {
            hub.with(|jobs, now| jobs.deadline = Some(now + seconds * SECOND));
            tokio::task::yield_now().await;
        }
        tokio::time::sleep(2 * SECOND).await;
        assert_eq!(hub.peek(|jobs| jobs.timeouts), 1);
        task.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn a_drain_refuses_new_work_and_ends_when_idle() {
        let hub = SharedHub::new(Jobs::default());
        assert_eq!(hub.with_open(|jobs, _| jobs.inbox.push(1)), Some(()));
        assert!(!hub.drain(SECOND).await, "work is open");
        assert_eq!(hub.with_open(|jobs, _| jobs.inbox.push(2)), None);
        let mut draining = pin!(hub.drain(SECOND));
        assert!(draining.as_mut().now_or_never().is_none());
        hub.with(|jobs, _| jobs.work.clear());
        assert_eq!(draining.now_or_never(), Some(true));
    }

    #[test]
    fn a_hub_ends_when_its_task_is_dropped() {
        let hub = SharedHub::new(Jobs::default());
        drop(hub.running());
        assert!(hub.peek(|jobs| jobs.has_ended));
        assert!(hub.with_open(|_, _| ()).is_none());
    }
}
