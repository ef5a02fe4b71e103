//! [`Run`]: opens the connections, and makes the calls when they are due.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use rpc_core::net::ws::WsDialer;
use tokio::sync::{Notify, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::alarm::Alarm;
use super::connection::{TIMED_OUT, keep};
use super::schedule::{Dispatch, Next, Schedule};
use super::stats::{Counts, Stats};
use super::talk::Scenario;
use super::usage::{Usage, Watch};

/// Most connections that are opened at the same time.
const MAX_DIALS: usize = 64;
/// How often the memory of processes is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// What a run does.
#[derive(Clone, Debug)]
pub struct Load {
    /// What is said.
    pub scenario: Scenario,
    /// The way to the server; see [`Scenario::dialer`].
    pub dialer: WsDialer,
    /// When calls are due.
    pub schedule: Schedule,
    /// How many connections there are.
    pub connections: usize,
    /// Most calls in flight on a connection.
    pub in_flight: usize,
    /// How long a call may take from when it is due.
    pub patience: Duration,
    /// How long it takes to begin all connections, one after the other.
    pub ramp: Duration,
    /// The process of the server, if it is on this machine.
    pub pid: Option<u32>,
}

/// Why a run has no result.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No connection could be opened.
    #[error("no connection could be opened: {}", first(.0))]
    NotConnected(Counts),
    /// The system did not give what is needed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

fn first(refused: &Counts) -> String {
    let kinds = refused.sorted();
    let words: Vec<_> = kinds
        .iter()
        .map(|(kind, n)| format!("{kind} ({n})"))
        .collect();
    words.join(", ")
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The outcome of the calls.
    pub stats: Stats,
    /// Calls that were due and not sent when the run ended.
    pub unsent: u64,
    /// Calls that had to wait because no connection was free.
    pub blocked: u64,
    /// How long calls that count were due: less than planned if the run was stopped.
    pub time: Duration,
    /// What this process has used.
    pub own: Option<Usage>,
    /// What the server has used.
    pub server: Option<Usage>,
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The time of the run; `None` while the connections are opened.
    pub elapsed: Option<Duration>,
    /// Open connections.
    pub open: usize,
    /// Calls that were answered.
    pub ok: u64,
    /// Calls that failed.
    pub failed: u64,
    /// 99 of 100 latencies are at most this, in milliseconds.
    pub p99: f64,
}

/// What the connections of a run share.
pub(super) struct Shared {
    pub(super) scenario: Scenario,
    pub(super) dialer: WsDialer,
    pub(super) patience: Duration,
    pub(super) dispatch: Mutex<Dispatch>,
    pub(super) stats: Mutex<Stats>,
    /// Told when a connection has room for a call.
    pub(super) freed: Notify,
    pub(super) dials: Semaphore,
    start: OnceLock<Instant>,
    connections: usize,
    ramp: Duration,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shared {
    /// Returns the time of the run.
    pub(super) fn now(&self) -> Duration {
        self.start.get().map_or(Duration::ZERO, Instant::elapsed)
    }

    /// Returns the instant of a time of the run, once it has begun.
    pub(super) fn at(&self, time: Duration) -> Option<Instant> {
        self.start.get()?.checked_add(time)
    }

    /// Returns how long a connection waits before it is opened.
    pub(super) fn start_of(&self, index: usize) -> Duration {
        let all = u32::try_from(self.connections).unwrap_or(u32::MAX).max(1);
        (self.ramp / all).saturating_mul(u32::try_from(index).unwrap_or(u32::MAX))
    }
}

/// A run, and what is known of it so far. Clones are the same run.
#[derive(Clone)]
pub struct Run {
    load: Arc<Load>,
    shared: Arc<Shared>,
}

impl std::fmt::Debug for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run")
            .field("load", &self.load)
            .finish_non_exhaustive()
    }
}

impl Run {
    /// Creates a run. `None` if there is no memory for its statistics.
    #[must_use]
    pub fn new(load: Load) -> Option<Self> {
        let dispatch = Dispatch::new(
            load.schedule,
            load.connections,
            load.in_flight,
            load.patience,
        );
        let shared = Shared {
            scenario: load.scenario.clone(),
            dialer: load.dialer.clone(),
            patience: load.patience,
            dispatch: Mutex::new(dispatch),
            stats: Mutex::new(Stats::new(load.schedule)?),
            freed: Notify::new(),
            dials: Semaphore::new(MAX_DIALS),
            start: OnceLock::new(),
            connections: load.connections,
            ramp: load.ramp,
        };
        Some(Self {
            load: Arc::new(load),
            shared: Arc::new(shared),
        })
    }

    /// Returns how far the run is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        let open = lock(&self.shared.dispatch).open();
        let stats = lock(&self.shared.stats);
        Progress {
            elapsed: self.shared.start.get().map(Instant::elapsed),
            open,
            ok: stats.ok,
            failed: stats.failed.total(),
            p99: stats.latency.quantiles().p99,
        }
    }

    /// Opens the connections and makes the calls, until the schedule ends or `stop` is ready; then waits for
    /// the answers to the last calls. To be called once.
    ///
    /// # Errors
    /// No connection could be opened.
    ///
    /// # Cancel safety
    /// Dropping the future drops the connections.
    pub async fn go(&self, stop: impl Future<Output = ()>) -> Result<Finished, RunError> {
        let mut stop = std::pin::pin!(stop);
        let alarm = Alarm::new()?;
        let mut connections = JoinSet::new();
        let (mut senders, mut tried) = (Vec::new(), Vec::new());
        for index in 0..self.load.connections {
            let (sender, calls) = mpsc::unbounded_channel();
            let (first, after) = oneshot::channel();
            senders.push(sender);
            tried.push(after);
            connections.spawn(keep(Arc::clone(&self.shared), index, calls, first));
        }
        let mut is_stopped = tokio::select! {
            _ = join_all(tried) => false,
            () = &mut stop => true,
        };
        if lock(&self.shared.dispatch).open() == 0 {
            return Err(RunError::NotConnected(
                lock(&self.shared.stats).refused.clone(),
            ));
        }
        let start = *self.shared.start.get_or_init(Instant::now);
        let mut watches = Watches::default();
        if !is_stopped {
            tokio::select! {
                made = self.dispatch(start, &alarm, &senders) => made?,
                () = watches.keep(start, self.load.schedule.warmup, self.load.pid) => {}
                () = &mut stop => is_stopped = true,
            }
        }
        let now = start.elapsed().min(self.load.schedule.end());
        let (unsent, blocked) = {
            let mut dispatch = lock(&self.shared.dispatch);
            dispatch.stop();
            let mut stats = lock(&self.shared.stats);
            let unsent = dispatch.backlog(now).inspect(|call| {
                // What was due in the moment of the stop did not fail.
                if !is_stopped {
                    stats.unsent(*call, now);
                }
            });
            (unsent.count() as u64, dispatch.blocked())
        };
        let (own, server) = watches.end();
        drop(senders);
        while connections.join_next().await.is_some() {}
        Ok(Finished {
            stats: lock(&self.shared.stats).clone(),
            unsent,
            blocked,
            time: now.saturating_sub(self.load.schedule.warmup),
            own,
            server,
        })
    }

    /// Sends each call when it is due, or as soon as a connection is free.
    async fn dispatch(
        &self,
        start: Instant,
        alarm: &Alarm,
        senders: &[mpsc::UnboundedSender<super::schedule::Call>],
    ) -> std::io::Result<()> {
        loop {
            let next = lock(&self.shared.dispatch).next(start.elapsed());
            match next {
                Next::Send(connection, call) => {
                    let sent = senders.get(connection).map(|sender| sender.send(call));
                    if !matches!(sent, Some(Ok(()))) {
                        lock(&self.shared.stats).failed(call, "not connected");
                    }
                }
                Next::GaveUp(call) => lock(&self.shared.stats).failed(call, TIMED_OUT),
                Next::Wait(until) => alarm.at(start + until).await?,
                Next::Blocked(until) => tokio::select! {
                    () = self.shared.freed.notified() => {}
                    woken = alarm.at(start + until) => woken?,
                },
                Next::Over => return Ok(()),
            }
        }
    }
}

/// The processes that are watched.
#[derive(Default)]
struct Watches {
    own: Option<Watch>,
    server: Option<Watch>,
}

impl Watches {
    /// Watches from the end of the warmup on. Never ends.
    async fn keep(&mut self, start: Instant, warmup: Duration, pid: Option<u32>) {
        tokio::time::sleep_until(start + warmup).await;
        self.own = Watch::begin(std::process::id());
        self.server = pid.and_then(Watch::begin);
        loop {
            sleep(LOOK).await;
            for watch in [&mut self.own, &mut self.server].into_iter().flatten() {
                watch.look();
            }
        }
    }

    fn end(&self) -> (Option<Usage>, Option<Usage>) {
        let end = |watch: &Option<Watch>| watch.as_ref().and_then(Watch::end);
        (end(&self.own), end(&self.server))
    }
}
