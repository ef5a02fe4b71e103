//! [`Budget`]: the tokens of the day and of the month, in one counter that nodes change by compare-and-set.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use exoclaw_proto::budget::pools::{Pool, Pools, day_of};
use exoclaw_proto::budget::{Exceeded, Scope};
use rpc_core::store::{Bucket, StoreError as Failure};
use rpc_core::sync::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::OwnedMutexGuard;

use super::attempts::repeat;
use super::nodes::Nodes;
use super::{GatewayStoreConfig, StoreError};

/// The key of the counter.
const KEY: &str = "budget";

/// Why a run is not admitted.
#[derive(Debug)]
#[non_exhaustive]
pub enum NotAdmitted {
    /// A budget has no room.
    Exceeded(Exceeded),
    /// The budgets cannot be read or written.
    Store(StoreError),
}

/// What runs have used, and how much more is reserved for them, by the day on which they were admitted.
type Changes = BTreeMap<u64, (u64, i64)>;

fn add(changes: &Mutex<Changes>, day: u64, (used, reserved): (u64, i64)) {
    let mut changes = changes.lock();
    let sum = changes.entry(day).or_default();
    *sum = (sum.0.saturating_add(used), sum.1.saturating_add(reserved));
}

fn apply(changes: &Changes, pools: &mut Pools) {
    for (&day, &(used, reserved)) in changes {
        advance(pools, day);
        pools.take(day, used, 0);
        if day == pools.day {
            for pool in [&mut pools.daily, &mut pools.monthly] {
                pool.reserved = pool.reserved.saturating_add_signed(reserved);
            }
        }
    }
}

/// Begins a new day. What was reserved on an earlier one is released.
fn advance(pools: &mut Pools, day: u64) {
    if day > pools.day {
        pools.advance(day);
        pools.monthly.reserved = 0;
    }
}

/// Tokens of the budgets reserved for one run; dropping it releases them. A run counts for the day and the
/// month in which it was admitted, even if it ends later.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    unwritten: Arc<Mutex<Changes>>,
    day: u64,
    tokens: i64,
}

impl Reservation {
    /// Counts the tokens that were used instead of the reserved ones.
    pub fn settle(self, used: u64) {
        add(&self.unwritten, self.day, (used, 0));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        add(&self.unwritten, self.day, (0, -self.tokens));
    }
}

/// What is stored.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Counter {
    pools: Pools,
}

/// The tokens of all nodes, checked against the daily and the monthly budget.
///
/// **The bound:** a run is admitted only if the tokens used, the tokens reserved by all nodes and its own estimate
/// are within the budgets at one revision. So the tokens used exceed a budget by no more than what the runs that
/// were open at the last admission then use beyond their reservations. What a node had reserved that is gone stays
/// reserved until the end of the day.
///
/// The budget of a session is not in the counter: the caller passes the tokens that the session has used, and holds
/// the session's turn while it does.
#[derive(Debug)]
pub(super) struct Budget {
    bucket: Bucket,
    nodes: Nodes,
    pub(super) config: GatewayStoreConfig,
    clock: fn() -> u64,
    unwritten: Arc<Mutex<Changes>>,
    /// Held by the one call that reads and writes, until the outcome is known.
    turn: Arc<tokio::sync::Mutex<()>>,
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
            turn: Arc::default(),
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
        session
            .check(Scope::Session, budgets.session, estimate)
            .map_err(NotAdmitted::Exceeded)?;
        if budgets.daily.is_none() && budgets.monthly.is_none() {
            // There is nothing to wait for.
            return Ok(self.hold(day_of((self.clock)()), 0));
        }
        let reserved = repeat(self.config.patience, || self.try_reserve(estimate)).await;
        reserved
            .map_err(NotAdmitted::Store)?
            .map_err(NotAdmitted::Exceeded)
    }

    async fn try_reserve(
        &self,
        estimate: u64,
    ) -> Result<Result<Reservation, Exceeded>, StoreError> {
        let turn = self.turn().await;
        let total = self.total(&turn).await?;
        if let Err(exceeded) = total.check(self.config.budgets, estimate) {
            return Ok(Err(exceeded));
        }
        let reservation = self.hold(total.day, estimate);
        let written = self.write(turn).await;
        // Nobody else counts with what a gateway alone reserves, and its disk may be full.
        if !self.nodes.is_alone() {
            written?;
        }
        Ok(Ok(reservation))
    }

    fn hold(&self, day: u64, tokens: u64) -> Reservation {
        let tokens = i64::try_from(tokens).unwrap_or(i64::MAX);
        add(&self.unwritten, day, (0, tokens));
        Reservation {
            unwritten: Arc::clone(&self.unwritten),
            day,
            tokens,
        }
    }

    /// Waits until all that was settled is written.
    pub(super) async fn written(&self) -> Result<(), StoreError> {
        repeat(self.config.patience, || self.try_write()).await
    }

    pub(super) async fn try_write(&self) -> Result<(), StoreError> {
        self.write(self.turn().await).await
    }

    async fn turn(&self) -> OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// Returns the tokens of the day and of the month, as all nodes have used or reserved them.
    pub(super) async fn used(&self) -> Result<(u64, u64), StoreError> {
        let total = repeat(self.config.patience, || async {
            self.total(&self.turn().await).await
        });
        let total = total.await?;
        let all = |pool: Pool| pool.used.saturating_add(pool.reserved);
        Ok((all(total.daily), all(total.monthly)))
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

    /// Returns the tokens of all nodes on this day.
    async fn total(&self, _: &OwnedMutexGuard<()>) -> Result<Pools, StoreError> {
        let (mut pools, _) = self.read().await?;
        apply(&self.unwritten.lock(), &mut pools);
        advance(&mut pools, day_of((self.clock)()));
        Ok(pools)
    }

    /// Reads the counter and its revision, 0 if there is none.
    async fn read(&self) -> Result<(Pools, u64), StoreError> {
        let Some(entry) = self.bucket.get(KEY).await? else {
            return Ok((Pools::default(), 0));
        };
        let Counter { pools } = serde_json::from_slice(&entry.value)?;
        Ok((pools, entry.revision))
    }

    /// Writes what is not written, also if the future is dropped.
    async fn write(&self, turn: OwnedMutexGuard<()>) -> Result<(), StoreError> {
        let (mut pools, revision) = self.read().await?;
        let mut changes = std::mem::take(&mut *self.unwritten.lock());
        changes.retain(|_, change| *change != (0, 0));
        if changes.is_empty() {
            return Ok(());
        }
        apply(&changes, &mut pools);
        let text = serde_json::to_vec(&Counter { pools })?.into();
        let (bucket, id, unwritten) = (
            self.bucket.clone(),
            self.nodes.id(),
            Arc::clone(&self.unwritten),
        );
        let writing = tokio::spawn(async move {
            let written = bucket.update_once(KEY, text, revision, &id).await;
            for (&day, &change) in changes.iter().filter(|_| written.is_err()) {
                add(&unwritten, day, change);
            }
            drop(turn);
            written
        });
        let written = writing.await.map_err(Failure::unavailable)?;
        Ok(written.map(drop)?)
    }
}
