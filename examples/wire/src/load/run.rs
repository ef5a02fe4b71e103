//! [`Run`]: opens the connections, and says when calls are due.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use futures_util::future::join_all;
use rpc_core::net::ws::WsDialer;
use tokio::sync::{Notify, Semaphore, oneshot};
use tokio::task::{JoinSet, yield_now};
use tokio::time::Instant;

use super::alarm::Alarm;
use super::connection::keep;
use super::scenario::Scenario;
use super::stats::{Counts, Schedule, Stats};
use crate::lock;

/// How many connections are opened at the same time.
const MAX_DIALS: usize = 64;
/// So many calls that are due are passed on before others have their turn.
const MANY: u64 = 64;

/// What a run does.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    /// The calls.
    pub scenario: Scenario,
    /// The way to the server.
    pub dialer: WsDialer,
    /// When calls are due. They take turns on the connections.
    pub schedule: Schedule,
    /// How many connections there are.
    pub connections: usize,
    /// How many calls each has in flight at most.
    pub in_flight: usize,
    /// How long a call may take, from when it is due.
    pub patience: Duration,
}

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// Not one connection could be opened, for these reasons.
    #[error("no connection could be opened: {0}")]
    NotConnected(Counts),
    /// The system failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// What a run has come to.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    /// The calls.
    pub stats: Stats,
    /// How long the calls that count were due.
    pub time: Duration,
    /// Processors that this process has used on average, if the system says it.
    pub processors: Option<f64>,
}

/// The end of the calls.
pub(super) struct Ended {
    pub(super) at: Duration,
    pub(super) is_stopped: bool,
}

pub(super) struct Shared {
    pub(super) load: Load,
    pub(super) stats: Mutex<Stats>,
    pub(super) dials: Semaphore,
    /// Each wakes a connection.
    pub(super) wakes: Vec<Notify>,
    pub(super) ended: OnceLock<Ended>,
    start: OnceLock<Instant>,
}

impl Shared {
    pub(super) fn has_begun(&self) -> bool {
        self.start.get().is_some()
    }

    /// Returns the time since calls began to be due.
    pub(super) fn now(&self) -> Duration {
        self.start.get().map_or(Duration::ZERO, Instant::elapsed)
    }
}

/// A run.
#[derive(Clone)]
pub(crate) struct Run(Arc<Shared>);

impl Run {
    /// Prepares a run.
    pub(crate) fn new(load: Load) -> Self {
        Self(Arc::new(Shared {
            stats: Mutex::new(Stats::new(load.schedule)),
            dials: Semaphore::new(MAX_DIALS),
            wakes: (0..load.connections).map(|_| Notify::new()).collect(),
            ended: OnceLock::new(),
            start: OnceLock::new(),
            load,
        }))
    }

    /// Returns the time since calls began to be due; `None` before.
    pub(crate) fn elapsed(&self) -> Option<Duration> {
        self.0.start.get().map(Instant::elapsed)
    }

    /// Returns what has become of the calls until now.
    pub(crate) fn stats(&self) -> MutexGuard<'_, Stats> {
        lock(&self.0.stats)
    }

    /// Makes the calls, until the schedule ends, or `stop`; then waits for the answers.
    ///
    /// # Errors
    /// No connection can be opened, or the system has no timer.
    pub(crate) async fn go(&self, stop: impl Future<Output = ()>) -> Result<Finished, RunError> {
        let Self(shared) = self;
        let schedule = shared.load.schedule;
        let mut stop = std::pin::pin!(stop);
        let mut alarm = Alarm::new()?;
        let mut connections = JoinSet::new();
        let tried = (0..shared.load.connections).map(|index| {
            let (tried, after) = oneshot::channel();
            connections.spawn(keep(Arc::clone(shared), index, tried));
            after
        });
        let mut is_stopped = tokio::select! {
            _ = join_all(tried) => false,
            () = &mut stop => true,
        };
        {
            let stats = lock(&shared.stats);
            if stats.open == 0 {
                return Err(RunError::NotConnected(stats.refused.clone()));
            }
        }
        let start = *shared.start.get_or_init(Instant::now);
        let before = processor_time();
        if !is_stopped {
            tokio::select! {
                made = self.dispatch(start, &mut alarm) => made?,
                () = &mut stop => is_stopped = true,
            }
        }
        let at = start.elapsed().min(schedule.end());
        let _ = shared.ended.set(Ended { at, is_stopped });
        let used = processor_time()
            .zip(before)
            .map(|(now, before)| now - before);
        let processors = used.map(|used| used.as_secs_f64() / start.elapsed().as_secs_f64());
        shared.wakes.iter().for_each(Notify::notify_one);
        while connections.join_next().await.is_some() {}
        Ok(Finished {
            stats: lock(&shared.stats).clone(),
            time: at.saturating_sub(schedule.warmup),
            processors,
        })
    }

    async fn dispatch(&self, start: Instant, alarm: &mut Alarm) -> std::io::Result<()> {
        let Self(shared) = self;
        for (number, wake) in (0..).zip(shared.wakes.iter().cycle()) {
            let Some(due) = shared.load.schedule.due(number) else {
                break;
            };
            alarm.at(start + due).await?;
            lock(&shared.stats).woken(due, start.elapsed());
            wake.notify_one();
            if number % MANY == 0 {
                yield_now().await;
            }
        }
        alarm.at(start + shared.load.schedule.end()).await
    }
}

/// Returns how long processors have worked for this process, if the system says it.
fn processor_time() -> Option<Duration> {
    #[cfg(unix)]
    {
        use rustix::time::{ClockId, clock_gettime};
        clock_gettime(ClockId::ProcessCPUTime).try_into().ok()
    }
    #[cfg(not(unix))]
    None
}
