//! [`GatewayStore`]: sessions, memory, usage and budgets on a [`Store`].

use std::sync::Arc;
use std::time::Duration;

use exoclaw_proto::budget::Budgets;
use rpc_core::cluster::{LeaseConfig, Membership, NodeLease};
use rpc_core::store::{Bucket, BucketConfig, Store, StoreError as Failure};
use rpc_core::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::attempts::{LONGEST_PAUSE, part_of};
use super::budget::Budget;
use super::nodes::{Nodes, keep_alive};
use super::record::Record;
use super::sessions::Sessions;
use super::usage_log::UsageLog;
use super::{
    Commit, Forget, NotAdmitted, OpenTurn, Reservation, SessionInfo, StoreError, StoreLimits,
};
use crate::gateway::memory::Turn;
use crate::gateway::usage::UsageEntry;

/// How often what could not be written is tried again.
const LATER: Duration = Duration::from_secs(1);
/// How long the number of sessions is kept: counting them takes a message for each.
const COUNTED: Duration = Duration::from_secs(10);
/// How often a node looks for sessions beyond the limits.
const SWEEP: Duration = Duration::from_secs(60);

/// Sessions, memory, usage and budgets of a gateway.
#[derive(Debug)]
pub struct GatewayStore {
    patience: Duration,
    pub(super) nodes: Nodes,
    pub(super) sessions: Arc<Sessions>,
    pub(super) budget: Arc<Budget>,
    pub(super) log: Arc<UsageLog>,
    /// When the sessions were read, and when each was last used.
    counted: Mutex<Option<(Instant, Vec<u64>)>>,
    /// Ends with the store.
    pub(super) tasks: Mutex<JoinSet<()>>,
    #[cfg(test)]
    pub(super) life: Option<tokio::task::AbortHandle>,
}

rpc_core::config! {
    /// How a gateway stores. The gateways of a cluster have the same.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct GatewayStoreConfig {
        /// The limits in tokens. Default none.
        pub budgets: Budgets = Budgets::default() => with_budgets,
        /// The limits of sessions, and of the log of usage.
        pub limits: StoreLimits = StoreLimits::default() => with_limits,
        /// After how long without a sign of life a node of a cluster counts as gone. Default `None`: this gateway
        /// alone uses the store.
        pub lease: Option<LeaseConfig> = None => with_lease(LeaseConfig),
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

/// Returns the last entries of the usage log on a store, newest first, beside the gateways that use it.
///
/// # Errors
/// [`StoreError`] if the store refuses or does not answer.
///
/// # Cancel safety
/// Cancel-safe.
pub async fn usage(store: &dyn Store, max: usize) -> Result<Vec<UsageEntry>, StoreError> {
    let log = UsageLog::open(store, GatewayStoreConfig::default()).await?;
    log.last(max).await
}

impl GatewayStore {
    /// Opens what a gateway has on a store, and enters the cluster if it shares it with others. `clock` returns
    /// the time in seconds since 1970.
    ///
    /// # Errors
    /// [`StoreError`] if the store refuses or does not answer.
    ///
    /// # Cancel safety
    /// Dropping the future leaves nothing running.
    pub async fn open(
        store: Arc<dyn Store>,
        config: GatewayStoreConfig,
        clock: fn() -> u64,
    ) -> Result<Arc<Self>, StoreError> {
        let nodes = Nodes::new(config.lease.map(|_| Membership::new()));
        let mut tasks = JoinSet::new();
        // What keeps the node alive has its room first.
        let mut _life = None;
        if let (Some(member), Some(lease)) = (nodes.member.clone(), config.lease) {
            let life = NodeLease::open(&store, lease).await?;
            _life = Some(tasks.spawn(keep_alive(member, Arc::clone(&store), lease, life)));
        }
        let bucket = Bucket::open(&store, "gateway", BucketConfig::default()).await?;
        let log = Arc::new(UsageLog::open(&*store, config).await?);
        let sessions = Arc::new(Sessions::open(&*store, nodes.clone(), config).await?);
        let budget = Arc::new(Budget::new(bucket, nodes.clone(), config, clock));
        let late = (Arc::clone(&sessions), Arc::clone(&log), Arc::clone(&budget));
        tasks.spawn(async move {
            loop {
                sleep(LATER).await;
                write_late(&late.0, &late.1, &late.2).await;
            }
        });
        let swept = Arc::clone(&sessions);
        tasks.spawn(async move {
            loop {
                sleep(SWEEP / 2 + part_of(SWEEP / 2)).await;
                match swept.sweep().await {
                    Ok(0) => {}
                    Ok(dropped) => tracing::info!(dropped, "the oldest sessions are forgotten"),
                    Err(error) => tracing::warn!(%error, "old sessions are not forgotten"),
                }
            }
        });
        if nodes.is_alone() {
            let checked = Arc::clone(&sessions);
            tasks.spawn(async move { checked.check().await });
        }
        tokio::select! {
            joined = nodes.joined(config.patience) => drop(joined?),
            error = nodes.failed() => return Err(error.into()),
        }
        Ok(Arc::new(Self {
            patience: config.patience,
            nodes,
            sessions,
            budget,
            log,
            counted: Mutex::default(),
            tasks: Mutex::new(tasks),
            #[cfg(test)]
            life: _life,
        }))
    }

    /// Returns whether turns can begin: `false` while this gateway counts as gone in its cluster.
    pub fn is_ready(&self) -> bool {
        self.nodes.is_joined()
    }

    /// Waits until this gateway cannot come back into its cluster by itself: the store denies it what it needs,
    /// or is configured for something else. Waits for ever while that does not happen.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn failed(&self) -> Failure {
        self.nodes.failed().await
    }

    /// Returns the limits in tokens.
    pub fn budgets(&self) -> Budgets {
        self.budget.limits()
    }

    /// Admits a run, if the budgets have room for it: its session's, and those of all sessions.
    ///
    /// # Errors
    /// [`NotAdmitted`]
    ///
    /// # Cancel safety
    /// Dropping the future reserves nothing.
    pub async fn reserve(
        &self,
        turn: &OpenTurn,
        estimate: u64,
    ) -> Result<Reservation, NotAdmitted> {
        let joined = self.nodes.joined(self.patience).await;
        joined.map_err(NotAdmitted::Store)?;
        self.budget.reserve(turn.tokens(), estimate).await
    }

    /// Settles a run with the budgets. Returns the number for [`commit`](Self::commit).
    pub fn settle(&self, reservation: Reservation, tokens: u64) -> u64 {
        self.budget.settle(reservation, tokens)
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

    /// Begins a turn of a session after those of other nodes.
    ///
    /// # Errors
    /// [`StoreError`] if there is no turn.
    ///
    /// # Cancel safety
    /// Dropping the future begins none.
    pub async fn enter(&self, session: &str, now: u64) -> Result<OpenTurn, StoreError> {
        self.sessions.enter(session, now).await
    }

    /// Stores the results of a run in its turn, and waits until they are stored; `settled` is the number of what
    /// it has used of the budgets. Runs of one session keep their order if each is awaited before the next.
    ///
    /// # Errors
    /// [`StoreError`] if something is not stored. The usage is kept and written later: do not commit it again.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the results stored or not.
    pub async fn commit(
        &self,
        commit: Commit,
        turn: Option<&mut OpenTurn>,
        settled: Option<u64>,
    ) -> Result<(), StoreError> {
        let id = self.nodes.id();
        let usage = commit.usage.clone();
        let logged = async {
            for (number, entry) in usage.iter().enumerate() {
                self.log.add(format!("{id}-{number}"), entry).await?;
            }
            Ok(())
        };
        let written = async {
            match settled {
                Some(number) => self.budget.written(number).await,
                None => Ok(()),
            }
        };
        let stored = self.sessions.commit(id.clone(), commit, turn);
        let (stored, logged, written) = tokio::join!(stored, logged, written);
        stored.and(logged).and(written)
    }

    /// Returns the last turns of a session, oldest first: as its `turn` has found them, or as they are stored now.
    /// Empty for an unknown session.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn recall(
        &self,
        session: &str,
        turn: Option<&OpenTurn>,
        turns: usize,
    ) -> Result<Vec<Turn>, StoreError> {
        self.sessions.recall(session, turn, turns).await
    }

    /// Waits until no turn of a session runs or waits on another node, or what becomes of it cannot be seen.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn ended(&self, session: &str) {
        if let Err(error) = self.sessions.ended(session).await {
            tracing::debug!(%error, "the end of a turn cannot be seen");
        }
    }

    /// Returns the most recently used sessions, newest first.
    ///
    /// # Errors
    /// As for [`recall`](Self::recall).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn sessions(&self, max: usize) -> Result<Vec<SessionInfo>, StoreError> {
        let listed = self.sessions.list().await?.into_iter();
        Ok(listed.take(max).map(Record::info).collect())
    }

    /// Returns the number of sessions used at or after `since`, in seconds since 1970; it may be 10 s old.
    ///
    /// # Errors
    /// As for [`recall`](Self::recall).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn session_count(&self, since: u64) -> Result<u64, StoreError> {
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
        let times: Vec<u64> = listed.iter().map(|it| it.active).collect();
        let sessions = count(&times);
        *self.counted.lock() = Some((Instant::now(), times));
        Ok(sessions)
    }

    /// Returns the last entries of the usage log, newest first, including those not yet written here.
    ///
    /// # Errors
    /// As for [`recall`](Self::recall).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn usage(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError> {
        self.log.last(max).await
    }

    /// Forgets a session, or its turns, in the turn of the caller. Returns whether it was known.
    ///
    /// # Errors
    /// [`StoreError`] if nothing was forgotten. Trying again is safe.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it done or not done.
    pub async fn forget(&self, session: &str, what: Forget) -> Result<bool, StoreError> {
        self.sessions.forget(session, what).await
    }

    /// Finishes what is still to be written, and leaves the cluster. Nothing is stored after it.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn close(&self) {
        let until = Instant::now() + self.patience;
        while !write_late(&self.sessions, &self.log, &self.budget).await {
            if self.nodes.is_alone() || Instant::now() >= until {
                tracing::error!("what could not be stored is lost");
                break;
            }
            sleep(LONGEST_PAUSE).await;
        }
        self.nodes.leave(self.patience).await;
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.shutdown().await;
    }
}

/// Writes what could not be written before. Returns whether nothing is left.
async fn write_late(sessions: &Sessions, log: &UsageLog, budget: &Budget) -> bool {
    let late = tokio::join!(sessions.write_late(), log.write_late(), budget.write_late());
    late == (true, true, true)
}
