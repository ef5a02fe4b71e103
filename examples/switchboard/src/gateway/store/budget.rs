//! [`Budget`]: the tokens of the day and of the month, in one counter that nodes change by compare-and-set.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use exoclaw_proto::budget::pools::{Pool, Pools, day_of, month_of};
use exoclaw_proto::budget::{BudgetScope, Exceeded};
use rpc_core::store::{Bucket, StoreError as Failure};
use rpc_core::sync::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;

use super::attempts::repeat;
use super::nodes::Nodes;
use super::writing::Writing;
use super::{GatewayStoreConfig, StoreError};

/// The key of the counter.
const KEY: &str = "budget";

/// Why a run is not admitted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotAdmitted {
    /// A budget has no room.
    #[error(transparent)]
    Exceeded(#[from] Exceeded),
    /// The budgets cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A day, and the tokens that runs admitted on it have used since, or released.
type Change = (u64, i64);

fn apply(changes: &[Change], pools: &mut Pools) {
    for &(day, tokens) in changes {
        pools.advance(day);
        let is_same = day == pools.day;
        if is_same {
            pools.daily.used = pools.daily.used.saturating_add_signed(tokens);
        }
        if is_same || month_of(day) == month_of(pools.day) {
            pools.monthly.used = pools.monthly.used.saturating_add_signed(tokens);
        }
    }
}

/// The estimated tokens of one run, which are counted from its admission on; dropping it takes them back. A run
/// counts for the day and the month in which it was admitted, even if it ends later.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    unwritten: Arc<Mutex<Vec<Change>>>,
    day: u64,
    tokens: i64,
}

impl Reservation {
    /// Counts the tokens that were used instead of the estimated ones.
    pub fn settle(mut self, used: u64) {
        self.tokens -= i64::try_from(used).unwrap_or(i64::MAX);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.unwritten.lock().push((self.day, -self.tokens));
    }
}

/// What is stored.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Counter {
    pools: Pools,
}

/// What is stored, at a revision, as far as this process knows.
#[derive(Debug, Default)]
struct Current {
    pools: Pools,
    revision: u64,
    /// Whether it need not be read again: no one else writes it, and no write has failed.
    is_known: bool,
}

/// The tokens of all nodes, checked against the daily and the monthly budget.
///
/// **The bound:** a run is admitted only if the tokens used, the estimates of the open runs of all nodes and its own
/// are within the budgets at one revision. So the tokens used exceed a budget by no more than what the runs that
/// were open at the last admission then use beyond their estimates. The runs of a node that is gone stay counted as
/// estimated.
///
/// The budget of a session is not in the counter: the caller passes the tokens that the session has used, and holds
/// the session's turn while it does.
#[derive(Debug)]
pub(super) struct Budget {
    bucket: Bucket,
    nodes: Nodes,
    pub(super) config: GatewayStoreConfig,
    clock: fn() -> u64,
    unwritten: Arc<Mutex<Vec<Change>>>,
    current: Arc<tokio::sync::Mutex<Current>>,
    writing: Writing,
}

impl Budget {
    pub(super) fn new(
        bucket: Bucket,
        nodes: Nodes,
        config: GatewayStoreConfig,
        clock: fn() -> u64,
    ) -> Self {
        Self {
            bucket,
            nodes,
            config,
            clock,
            unwritten: Arc::default(),
            current: Arc::default(),
            writing: Writing::default(),
        }
    }

    /// Admits a run, if the budgets have room for it. Dropping the future reserves nothing.
    pub(super) async fn reserve(
        &self,
        session_used: u64,
        estimate: u64,
    ) -> Result<Reservation, NotAdmitted> {
        let budgets = self.config.budgets;
        let session = Pool {
            used: session_used,
            reserved: 0,
        };
        session.check(BudgetScope::Session, budgets.session, estimate)?;
        if budgets.daily.is_none() && budgets.monthly.is_none() {
            // There is nothing to wait for.
            return Ok(self.hold(day_of((self.clock)()), estimate));
        }
        let reserving = || async {
            let current = self.current().await?;
            let total = self.total(&current);
            if let Err(exceeded) = total.check(budgets, estimate) {
                return Ok(Err(exceeded));
            }
            let reservation = self.hold(total.day, estimate);
            // Nobody else counts with what a gateway alone reserves.
            if !self.nodes.is_alone() {
                self.write(current).await?;
            }
            Ok(Ok(reservation))
        };
        Ok(repeat(self.config.patience, reserving).await??)
    }

    fn hold(&self, day: u64, tokens: u64) -> Reservation {
        let tokens = i64::try_from(tokens).unwrap_or(i64::MAX);
        let unwritten = Arc::clone(&self.unwritten);
        unwritten.lock().push((day, tokens));
        Reservation {
            unwritten,
            day,
            tokens,
        }
    }

    /// Waits until all that was settled is written.
    pub(super) async fn written(&self) -> Result<(), StoreError> {
        repeat(self.config.patience, || self.try_write()).await
    }

    pub(super) async fn try_write(&self) -> Result<(), StoreError> {
        self.write(self.current().await?).await
    }

    /// Returns the tokens of the day and of the month, as all nodes have counted them.
    pub(super) async fn used(&self) -> Result<(u64, u64), StoreError> {
        let current = repeat(self.config.patience, || self.current()).await?;
        let total = self.total(&current);
        Ok((total.daily.used, total.monthly.used))
    }

    /// Returns whether there is a counter.
    pub(super) async fn has_begun(&self) -> Result<bool, StoreError> {
        Ok(self.bucket.get(KEY).await?.is_some())
    }

    /// Begins with what an earlier version has counted, if there is no counter.
    pub(super) async fn begin(&self, pools: Pools) -> Result<(), StoreError> {
        let text = serde_json::to_vec(&Counter { pools })?.into();
        match self.bucket.create(KEY, text).await {
            Err(Failure::Conflict) => Ok(()),
            created => Ok(created.map(drop)?),
        }
    }

    /// Returns what is stored. Meanwhile nothing else in this process reads or writes it.
    async fn current(&self) -> Result<OwnedMutexGuard<Current>, StoreError> {
        let mut current = Arc::clone(&self.current).lock_owned().await;
        if !current.is_known {
            let entry = self.bucket.get(KEY).await?;
            let revision = entry.as_ref().map_or(0, |entry| entry.revision);
            let counter = entry.map(|entry| serde_json::from_slice(&entry.value));
            let Counter { pools } = counter.transpose()?.unwrap_or_default();
            (current.pools, current.revision) = (pools, revision);
            current.is_known = self.nodes.is_alone();
        }
        Ok(current)
    }

    /// Returns the tokens of all nodes on this day.
    fn total(&self, current: &Current) -> Pools {
        let mut pools = current.pools;
        apply(&self.unwritten.lock(), &mut pools);
        pools.advance(day_of((self.clock)()));
        pools
    }

    /// Writes what is not written, also if the future is dropped.
    async fn write(&self, mut current: OwnedMutexGuard<Current>) -> Result<(), StoreError> {
        let (mut pools, unwritten) = (current.pools, Arc::clone(&self.unwritten));
        let changes = std::mem::take(&mut *unwritten.lock());
        apply(&changes, &mut pools);
        if pools == current.pools {
            return Ok(());
        }
        let text = serde_json::to_vec(&Counter { pools })?.into();
        let (bucket, id) = (self.bucket.clone(), self.nodes.id());
        let writing = async move {
            let is_known = std::mem::take(&mut current.is_known);
            let written = bucket.update_once(KEY, text, current.revision, &id).await;
            match written {
                Ok(revision) => {
                    (current.pools, current.revision) = (pools, revision);
                    current.is_known = is_known;
                }
                Err(_) => drop(unwritten.lock().splice(..0, changes)),
            }
            written.map(drop)
        };
        Ok(self.writing.start(writing).await?)
    }
}
