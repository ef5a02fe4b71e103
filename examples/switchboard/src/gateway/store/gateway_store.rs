//! [`GatewayStore`]: sessions, memory, usage and budgets on a [`Store`].

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::Duration;

use exoclaw_proto::budget::Budgets;
use rpc_core::cluster::{LeaseConfig, Membership, NodeLease};
use rpc_core::store::{
    Bucket, BucketConfig, LogConfig, SessionLog, SessionLogConfig, Store, StoreError as Failure,
};
use rpc_core::sync::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::attempts::{LONGEST_PAUSE, part_of};
use super::budget::Budget;
use super::nodes::{Nodes, keep_alive};
use super::record::Record;
use super::sessions::{Cache, Late};
use super::usage_log::UsageLog;
use super::{NotAdmitted, Reservation, StoreError, StoreLimits};
use crate::gateway::usage::UsageEntry;

/// How often what could not be written is tried again.
const LATER: Duration = Duration::from_secs(1);
/// How long the number of sessions is kept: counting them takes a message for each.
const COUNTED: Duration = Duration::from_secs(10);
/// How often a node looks for sessions beyond the limits.
const SWEEP: Duration = Duration::from_secs(60);
/// The longest pause between two looks at the nodes before a waiting turn.
const LOOK: Duration = Duration::from_secs(2);
/// The name of the log of sessions.
const SESSIONS: &str = "gateway_sessions";

/// Sessions, memory, usage and budgets of a gateway.
#[derive(Debug)]
pub struct GatewayStore {
    pub(super) patience: Duration,
    pub(super) limits: StoreLimits,
    /// How often a waiting turn looks whether the nodes before it are alive.
    pub(super) look: Duration,
    pub(super) nodes: Nodes,
    pub(super) log: SessionLog,
    pub(super) cache: Mutex<Cache>,
    pub(super) budget: Budget,
    pub(super) usage: UsageLog,
    /// What is still to be written, oldest first.
    pub(super) late: Mutex<VecDeque<Late>>,
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
        let mut limits = config.limits;
        let default = limits.total_bytes.saturating_mul(2);
        let log = LogConfig {
            max_bytes: config.max_bytes,
            ..LogConfig::new(&format!("{SESSIONS}.*"))
        };
        let (_, room) = store.log_with_room(SESSIONS, log, default).await?;
        // Sessions are forgotten before they are refused.
        limits.total_bytes = limits.total_bytes.min(room / 4 * 3);
        let log = SessionLogConfig {
            max_bytes: Some(room),
            ..SessionLogConfig::new(SESSIONS)
        };
        let opened = Arc::new(Self {
            patience: config.patience,
            limits,
            look: config.lease.map_or(LOOK, |it| (it.lease / 4).min(LOOK)),
            log: SessionLog::open(&*store, log).await?,
            cache: Mutex::default(),
            budget: Budget::new(bucket, nodes.clone(), config, clock),
            usage: UsageLog::open(&*store, config).await?,
            late: Mutex::default(),
            counted: Mutex::default(),
            tasks: Mutex::default(),
            nodes,
            #[cfg(test)]
            life: _life,
        });
        tasks.spawn(write_late(Arc::downgrade(&opened)));
        tasks.spawn(sweep(Arc::downgrade(&opened)));
        *opened.tasks.lock() = tasks;
        tokio::select! {
            joined = opened.nodes.joined(config.patience) => drop(joined?),
            error = opened.failed() => return Err(error.into()),
        }
        Ok(opened)
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
    pub const fn budgets(&self) -> Budgets {
        self.budget.config.budgets
    }

    /// Admits a run, if the budgets have room for it: that of its session, which has used so many tokens, and those
    /// of all sessions.
    ///
    /// # Errors
    /// [`NotAdmitted`]
    ///
    /// # Cancel safety
    /// Dropping the future reserves nothing.
    pub async fn reserve(
        &self,
        session_used: u64,
        estimate: u64,
    ) -> Result<Reservation, NotAdmitted> {
        let joined = self.nodes.joined(self.patience).await;
        joined.map_err(NotAdmitted::Store)?;
        self.budget.reserve(session_used, estimate).await
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
            Some(session) => self.record(session).await?.tokens,
            None => 0,
        };
        let (daily, monthly) = self.budget.used().await?;
        Ok((of_session, daily, monthly))
    }

    /// Returns the most recently used sessions, newest first.
    ///
    /// # Errors
    /// As for [`recall`](Self::recall).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn sessions(&self, max: usize) -> Result<Vec<Record>, StoreError> {
        let mut listed = self.list().await?;
        listed.truncate(max);
        Ok(listed)
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
        let listed = self.list().await?;
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
        let mut entries = self.usage.last(max).await?;
        let late = self.late.lock();
        let unlogged = late.iter().rev().flat_map(Late::unlogged).cloned();
        entries.splice(..0, unlogged);
        entries.truncate(max);
        Ok(entries)
    }

    /// Finishes what is still to be written, and leaves the cluster. Nothing is stored after it.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn close(&self) {
        let until = Instant::now() + self.patience;
        while !self.write_late().await {
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

/// Writes what could not be written before, as long as the store is there.
async fn write_late(store: Weak<GatewayStore>) {
    loop {
        sleep(LATER).await;
        let Some(store) = store.upgrade() else {
            return;
        };
        store.write_late().await;
    }
}

/// Reads a store of a gateway alone once, and drops what is beyond the limits as long as it is there.
async fn sweep(store: Weak<GatewayStore>) {
    if let Some(store) = store.upgrade().filter(|it| it.nodes.is_alone())
        && let Err(error) = store.log.check().await
    {
        // As where the program has ended meanwhile.
        tracing::debug!(%error, "the sessions are not checked");
    }
    loop {
        sleep(SWEEP / 2 + part_of(SWEEP / 2)).await;
        let Some(store) = store.upgrade() else {
            return;
        };
        match store.drop_surplus().await {
            Ok(0) => {}
            Ok(dropped) => tracing::info!(dropped, "the oldest sessions are forgotten"),
            Err(error) => tracing::warn!(%error, "old sessions are not forgotten"),
        }
    }
}
