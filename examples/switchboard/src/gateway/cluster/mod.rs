//! [`Cluster`]: what the gateways of a cluster share on a [`Store`]: sessions, memory, usage and budgets.
//!
//! A node may end at any time, and the store may be away for a while. What holds then:
//!
//! - The turns of a session run one after the other on whatever node, in the order of arrival. A
//!   turn waits in the queue of the session, and one of a node that is gone leaves it.
//! - A turn is stored by a write that names the last one that it knows, and says what is new. A node whose
//!   turn has left the queue, and that wakes up, is refused.
//! - A node that loses its lease begins no turn until it is back under a new id.
//! - Before a reply is done, its turn, its usage and its tokens are stored.
//! - The tokens of runs of a node that is gone, and that it had not stored, are not counted, as
//!   with one gateway that is killed.

mod budget;
mod history;
mod log;
mod nodes;
mod record;
mod sessions;
mod sweep;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use exoclaw_proto::budget::Budgets;
use futures_util::StreamExt as _;
use rpc_core::cluster::{LeaseConfig, NodeLease};
use rpc_core::store::{Bucket, BucketConfig, Store, StoreError as Failure};
use rpc_core::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use super::engine::Records;
use super::memory::Turn;
use super::store::{Commit, Forget, SessionInfo, StoreError, StoreLimits};
use super::usage::UsageEntry;
use budget::Budget;
pub use budget::{NotAdmitted, Reservation};
use log::UsageLog;
use nodes::Nodes;
use record::Record;
use sessions::Sessions;
pub use sessions::SharedTurn;

/// The pause after the first failed request, and the longest one.
const PAUSE: Duration = Duration::from_millis(2);
const LONGEST_PAUSE: Duration = Duration::from_millis(500);
/// How often what could not be written is tried again.
const LATER: Duration = Duration::from_secs(1);
/// How long the number of sessions is kept: counting them takes a message for each.
const COUNTED: Duration = Duration::from_secs(10);
/// How often a node looks for sessions beyond the limits.
const SWEEP: Duration = Duration::from_secs(60);
/// How many records are read at once.
const READS: usize = 16;
/// Most bytes of one question and of one answer: with both, a message still fits NATS.
const MAX_TEXT: usize = 256 * 1024;

/// Sessions, memory, usage and budgets that several gateways share.
#[derive(Debug)]
pub struct Cluster {
    patience: Duration,
    sessions: Arc<Sessions>,
    budget: Arc<Budget>,
    log: Arc<UsageLog>,
    /// When the keys of the sessions were read, and what they were.
    counted: Mutex<Option<(Instant, Vec<u64>)>>,
    /// Ends with the cluster.
    tasks: Mutex<JoinSet<()>>,
    #[cfg(test)]
    life: tokio::task::AbortHandle,
}

rpc_core::config! {
    /// What the gateways of a cluster have in common. All have the same.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct ClusterConfig {
        /// The limits in tokens. Default none.
        pub budgets: Budgets = Budgets::default() => with_budgets,
        /// The limits of sessions, and of the log of usage. Sessions that are too many, or too large
        /// together, are forgotten within a minute. How many days count is up to the budgets.
        pub limits: StoreLimits = StoreLimits::default().with_text_bytes(MAX_TEXT) => with_limits,
        /// After how long without a sign of life a node counts as gone.
        pub lease: LeaseConfig = LeaseConfig::default() => with_lease,
        /// How long a chat waits for the store at each of its steps. Default 20 s.
        pub patience: Duration = Duration::from_secs(20) => with_patience,
        /// The largest size of the log of sessions in bytes, beyond which turns are refused; sessions are
        /// forgotten from three quarters of it on. What keeps the nodes alive has room beside it. Applies
        /// to a log that does not exist yet. Default `None`: twice the
        /// [bytes](StoreLimits::total_bytes) of all sessions, or the half of it, or the half of that, for
        /// which the store has room now.
        pub max_bytes: Option<u64> = None => with_max_bytes(u64),
    }
}

/// Returns the last entries of the usage log of a cluster, newest first, without being a node.
///
/// # Errors
/// [`StoreError`] if the store refuses or does not answer.
///
/// # Cancel safety
/// Cancel-safe.
pub async fn usage(store: &dyn Store, max: usize) -> Result<Vec<UsageEntry>, StoreError> {
    let log = UsageLog::open(store, ClusterConfig::default()).await?;
    log.last(max).await
}

/// Returns whether the same request may succeed soon. There is no waiting for room.
const fn passes(error: &Failure) -> bool {
    error.is_retryable() && !matches!(error, Failure::Full { .. })
}

/// Returns a random part of a pause, so that nodes that collided do not come back at the same time.
fn part_of(pause: Duration) -> Duration {
    let [byte, ..] = rpc_core::net::entropy().to_ne_bytes();
    pause * u32::from(byte) / 255
}

/// The attempts at something that other nodes do too, or for which the store may be away for a while.
struct Attempts {
    patience: Duration,
    until: Instant,
    pause: Duration,
}

impl Attempts {
    fn new(patience: Duration) -> Self {
        Self {
            patience,
            until: Instant::now() + patience,
            pause: PAUSE,
        }
    }

    /// Makes an attempt. Returns `None`, after a pause, if another one may succeed.
    async fn run<T>(
        &mut self,
        attempt: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<Option<T>, StoreError> {
        let done = timeout_at(self.until, attempt).await;
        match done.map_err(|_| unavailable(self.patience))? {
            Err(StoreError::Cluster(error)) if passes(&error) || error == Failure::Conflict => {
                tracing::debug!(%error, "the store is asked again");
            }
            done => return done.map(Some),
        }
        sleep(part_of(self.pause)).await;
        self.pause = LONGEST_PAUSE.min(self.pause * 2);
        Ok(None)
    }
}

/// The error if the store did not answer for so long.
fn unavailable(patience: Duration) -> StoreError {
    StoreError::Cluster(Failure::unavailable(format_args!("not for {patience:?}")))
}

impl Cluster {
    /// Enters the cluster as a node, and starts what keeps it there. `clock` returns the time in
    /// seconds since 1970.
    ///
    /// # Errors
    /// [`StoreError`] if the store refuses or does not answer.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing running.
    pub async fn start(
        store: Arc<dyn Store>,
        config: ClusterConfig,
        clock: fn() -> u64,
    ) -> Result<Arc<Self>, StoreError> {
        let nodes = Nodes::new();
        // What keeps the node alive has its room first.
        let life = NodeLease::open(&store, config.lease).await?;
        let bucket = Bucket::open(&store, "gateway", BucketConfig::default()).await?;
        let log = Arc::new(UsageLog::open(&*store, config).await?);
        let sessions = Arc::new(Sessions::open(&*store, nodes.clone(), config).await?);
        let budget = Arc::new(Budget::new(bucket, nodes.clone(), config, clock));
        let mut tasks = JoinSet::new();
        let _life = tasks.spawn(nodes.clone().keep_alive(store, config.lease, life));
        let late = (Arc::clone(&sessions), Arc::clone(&log), Arc::clone(&budget));
        tasks.spawn(async move {
            loop {
                sleep(LATER).await;
                tokio::join!(
                    late.0.write_late(),
                    late.1.write_late(),
                    late.2.write_late()
                );
            }
        });
        let swept = Arc::clone(&sessions);
        tasks.spawn(async move {
            loop {
                sleep(SWEEP / 2 + part_of(SWEEP)).await;
                match swept.sweep().await {
                    Ok(0) => {}
                    Ok(dropped) => tracing::info!(dropped, "the oldest sessions are forgotten"),
                    Err(error) => tracing::warn!(%error, "old sessions are not forgotten"),
                }
            }
        });
        tokio::select! {
            joined = nodes.joined(config.patience) => drop(joined?),
            error = nodes.member.failed() => return Err(error.into()),
        }
        Ok(Arc::new(Self {
            patience: config.patience,
            sessions,
            budget,
            log,
            counted: Mutex::default(),
            tasks: Mutex::new(tasks),
            #[cfg(test)]
            life: _life,
        }))
    }

    /// Returns whether this gateway counts as alive among the nodes; without it, no turn begins.
    pub fn is_joined(&self) -> bool {
        self.sessions.nodes.member.current().is_some()
    }

    /// Waits until this gateway cannot come back by itself: the store denies it what it needs, or is
    /// configured for something else. Waits for ever while that does not happen.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn failed(&self) -> Failure {
        self.sessions.nodes.member.failed().await
    }

    /// Admits a run, if the budgets have room for it: its session's, and those of all nodes.
    ///
    /// # Errors
    /// [`NotAdmitted`]
    ///
    /// # Cancel safety
    /// Dropping the future reserves nothing.
    pub async fn reserve(
        &self,
        turn: &SharedTurn,
        estimate: u64,
    ) -> Result<Reservation, NotAdmitted> {
        let joined = self.sessions.nodes.joined(self.patience).await;
        joined.map_err(NotAdmitted::Store)?;
        self.budget.reserve(turn.tokens(), estimate).await
    }

    /// Settles a run with the budgets. Returns the number for [`commit`](Self::commit).
    pub fn settle(&self, reservation: Reservation, tokens: u64) -> u64 {
        self.budget.settle(reservation, tokens)
    }

    /// Waits until no turn of a session runs or waits, or what becomes of it cannot be seen.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn ended(&self, session: &str) {
        if let Err(error) = self.sessions.ended(session).await {
            tracing::debug!(%error, "the end of a turn cannot be seen");
        }
    }

    /// Returns the tokens that a session, all sessions on this day, and all in this month have used.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn used(&self, session: Option<&str>) -> Result<(u64, u64, u64), StoreError> {
        let of_session = match session {
            Some(session) => self.sessions.record(session).await?.tokens,
            None => 0,
        };
        let (daily, monthly) = self.budget.used().await?;
        Ok((of_session, daily, monthly))
    }
}

#[async_trait]
impl Records for Cluster {
    fn cluster(&self) -> Option<&Cluster> {
        Some(self)
    }

    async fn enter(&self, session: &str, now: u64) -> Result<Option<SharedTurn>, StoreError> {
        self.sessions.enter(session, now).await.map(Some)
    }

    async fn commit(
        &self,
        commit: Commit,
        turn: Option<&mut SharedTurn>,
        settled: Option<u64>,
    ) -> Result<(), StoreError> {
        let id = self.sessions.nodes.id();
        let usage = commit.usage.clone();
        let logged = async {
            for (number, entry) in usage.iter().enumerate() {
                self.log.add(format!("{id}-{number}"), entry).await?;
            }
            Ok(())
        };
        let written = async {
            match settled {
                Some(change) => self.budget.is_written(change).await,
                None => Ok(()),
            }
        };
        let stored = self.sessions.commit(id.clone(), commit, turn);
        let (stored, logged, written) = tokio::join!(stored, logged, written);
        stored.and(logged).and(written)
    }

    async fn recall(
        &self,
        session: &str,
        turn: Option<&SharedTurn>,
        turns: usize,
    ) -> Result<Vec<Turn>, StoreError> {
        self.sessions.recall(session, turn, turns).await
    }

    async fn sessions(&self, max: usize) -> Result<Vec<SessionInfo>, StoreError> {
        let listed = self.sessions.list().await?.into_iter().take(max);
        let reads = listed.map(|it| async move { self.sessions.last(&it.subject).await });
        let records = futures_util::stream::iter(reads).buffered(READS);
        let records: Vec<Result<Option<(Record, u64)>, StoreError>> = records.collect().await;
        let mut sessions = Vec::with_capacity(records.len());
        for record in records {
            sessions.extend(record?.map(|(record, _)| SessionInfo {
                kept: record.kept,
                session: record.session,
                created: record.created,
                active: record.active,
                turns: record.count,
                tokens: record.tokens,
            }));
        }
        Ok(sessions)
    }

    async fn session_count(&self, since: u64) -> Result<u64, StoreError> {
        let count = |times: &[u64]| times.iter().filter(|time| **time >= since).count() as u64;
        {
            let counted = self.counted.lock();
            if let Some((at, times)) = &*counted
                && at.elapsed() < COUNTED
            {
                return Ok(count(times));
            }
        }
        let listed = self.sessions.list().await?;
        let times: Vec<u64> = listed.iter().map(|it| it.time).collect();
        let sessions = count(&times);
        let mut counted = self.counted.lock();
        *counted = Some((Instant::now(), times));
        Ok(sessions)
    }

    async fn usage(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError> {
        self.log.last(max).await
    }

    async fn forget(&self, session: &str, _: Forget) -> Result<bool, StoreError> {
        self.sessions.forget(session).await
    }

    async fn close(&self) {
        let until = Instant::now() + self.patience;
        loop {
            let late = tokio::join!(
                self.sessions.write_late(),
                self.log.write_late(),
                self.budget.write_late()
            );
            if late == (true, true, true) || Instant::now() >= until {
                break;
            }
            sleep(LONGEST_PAUSE).await;
        }
        self.sessions.nodes.leave(self.patience).await;
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
    }
}
