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
use tokio::sync::MutexGuard;

use super::attempts::repeat;
use super::nodes::Nodes;
use super::{GatewayStoreConfig, StoreError};

/// The key of the counter.
const KEY: &str = "budget";
/// How many processes the counter knows.
const MAX_PROCESSES: usize = 256;

/// Why a run is not admitted.
#[derive(Debug)]
#[non_exhaustive]
pub enum NotAdmitted {
    /// A budget has no room.
    Exceeded(Exceeded),
    /// The budgets cannot be read or written.
    Store(StoreError),
}

/// Tokens of the budgets reserved for one run; dropping it releases them. A run counts for the day and the
/// month in which it was admitted, even if it ends later.
#[derive(Debug)]
#[must_use]
pub struct Reservation {
    unwritten: Arc<Mutex<Unwritten>>,
    day: u64,
    tokens: i64,
}

impl Reservation {
    /// Counts the tokens that were used instead of the reserved ones.
    pub fn settle(self, used: u64) {
        self.unwritten.lock().add(self.day, used, 0);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.unwritten.lock().add(self.day, 0, -self.tokens);
    }
}

/// What runs have used, and how much more is reserved for them, by the day on which they were admitted.
type Changes = BTreeMap<u64, (u64, i64)>;

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

/// What this process has changed, and the counter may not have.
#[derive(Debug, Default)]
struct Unwritten {
    /// What is being written, under this number. It stays the same until it is known to be written.
    sent: Changes,
    number: u64,
    /// What comes after it.
    new: Changes,
}

impl Unwritten {
    fn add(&mut self, day: u64, used: u64, reserved: i64) {
        let change = self.new.entry(day).or_default();
        change.0 = change.0.saturating_add(used);
        change.1 = change.1.saturating_add(reserved);
    }

    /// Returns whether there is something to write. A gateway alone need not write what is reserved.
    fn send(&mut self, is_alone: bool) -> bool {
        let is_news = |(used, reserved): &(u64, i64)| *used > 0 || (*reserved != 0 && !is_alone);
        if self.sent.is_empty() && self.new.values().any(is_news) {
            self.sent = std::mem::take(&mut self.new);
            self.number += 1;
        }
        !self.sent.is_empty()
    }
}

/// What is stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Counter {
    pools: Pools,
    /// By the id of a process, the last of its changes that is counted: none is counted twice.
    counted: Vec<(String, u64)>,
}

impl Counter {
    fn counted(&self, process: &str) -> u64 {
        let of_it = self.counted.iter().find(|(it, _)| it == process);
        of_it.map_or(0, |(_, number)| *number)
    }

    fn count(&mut self, unwritten: &Unwritten, process: &str) {
        apply(&unwritten.sent, &mut self.pools);
        self.counted.retain(|(it, _)| it != process);
        self.counted.push((process.to_owned(), unwritten.number));
        let surplus = self.counted.len().saturating_sub(MAX_PROCESSES);
        self.counted.drain(..surplus);
    }
}

/// The counter and its revision, 0 if there is none.
type Stored = (Counter, u64);

/// The tokens of all nodes, checked against the daily and the monthly budget.
///
/// **The bound:** a run is admitted only if the tokens used, the tokens reserved by all nodes and its own estimate
/// are within the budgets at one revision. So the tokens used exceed a budget by no more than what the runs that
/// were open at the last admission then use beyond their reservations. What a node had reserved that is gone stays
/// reserved until the end of the day. A gateway alone reserves in memory only.
///
/// The budget of a session is not in the counter: the caller passes the tokens that the session has used, and holds
/// the session's turn while it does.
#[derive(Debug)]
pub(super) struct Budget {
    bucket: Bucket,
    nodes: Nodes,
    pub(super) config: GatewayStoreConfig,
    clock: fn() -> u64,
    unwritten: Arc<Mutex<Unwritten>>,
    /// Held by the one call that reads and writes. A gateway alone knows what it has written.
    stored: tokio::sync::Mutex<Option<Stored>>,
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
            stored: tokio::sync::Mutex::default(),
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
            return Ok(self.hold(self.today(), 0));
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
        let mut stored = self.lock().await;
        let total = self.total(&mut stored).await?;
        if let Err(exceeded) = total.check(self.config.budgets, estimate) {
            return Ok(Err(exceeded));
        }
        let reservation = self.hold(total.day, estimate);
        if !self.nodes.is_alone() {
            self.write(&mut stored).await?;
        }
        Ok(Ok(reservation))
    }

    fn hold(&self, day: u64, tokens: u64) -> Reservation {
        let tokens = i64::try_from(tokens).unwrap_or(i64::MAX);
        self.unwritten.lock().add(day, 0, tokens);
        Reservation {
            unwritten: Arc::clone(&self.unwritten),
            day,
            tokens,
        }
    }

    fn today(&self) -> u64 {
        day_of((self.clock)())
    }

    /// Waits until all that was settled is written.
    pub(super) async fn written(&self) -> Result<(), StoreError> {
        repeat(self.config.patience, || self.try_write()).await
    }

    pub(super) async fn try_write(&self) -> Result<(), StoreError> {
        let mut stored = self.lock().await;
        self.write(&mut stored).await
    }

    /// Returns the tokens of the day and of the month, as all nodes have used them.
    pub(super) async fn used(&self) -> Result<(u64, u64), StoreError> {
        let total = repeat(self.config.patience, || async {
            self.total(&mut *self.lock().await).await
        });
        let total = total.await?;
        Ok((total.daily.used, total.monthly.used))
    }

    /// Returns whether there is a counter.
    pub(super) async fn has_begun(&self) -> Result<bool, StoreError> {
        Ok(self.bucket.get(KEY).await?.is_some())
    }

    /// Begins with what an earlier version has counted, if there is no counter.
    pub(super) async fn begin(&self, pools: Pools) -> Result<(), StoreError> {
        let counter = Counter {
            pools,
            ..Counter::default()
        };
        let text = serde_json::to_vec(&counter)?.into();
        match self.bucket.create(KEY, text).await {
            Err(Failure::Conflict) => Ok(()),
            created => Ok(created.map(drop)?),
        }
    }

    async fn lock(&self) -> MutexGuard<'_, Option<Stored>> {
        let mut stored = self.stored.lock().await;
        stored.take_if(|_| !self.nodes.is_alone());
        stored
    }

    /// Returns the tokens of all nodes on this day.
    async fn total(&self, stored: &mut Option<Stored>) -> Result<Pools, StoreError> {
        let (Counter { mut pools, .. }, _) = self.read(stored).await?;
        let unwritten = self.unwritten.lock();
        apply(&unwritten.sent, &mut pools);
        apply(&unwritten.new, &mut pools);
        advance(&mut pools, self.today());
        Ok(pools)
    }

    /// Reads the counter, unless it is known.
    async fn read(&self, stored: &mut Option<Stored>) -> Result<Stored, StoreError> {
        if let Some(stored) = stored {
            return Ok(stored.clone());
        }
        let (mut counter, revision) = match self.bucket.get(KEY).await? {
            Some(entry) => (serde_json::from_slice(&entry.value)?, entry.revision),
            None => (Counter::default(), 0),
        };
        let counted = counter.counted(self.nodes.process());
        if counted == 0 && self.nodes.is_alone() {
            // The runs that had reserved have ended.
            (counter.pools.daily.reserved, counter.pools.monthly.reserved) = (0, 0);
        }
        let mut unwritten = self.unwritten.lock();
        if counted == unwritten.number {
            unwritten.sent.clear();
        }
        Ok(stored.insert((counter, revision)).clone())
    }

    /// Writes what is not written.
    async fn write(&self, stored: &mut Option<Stored>) -> Result<(), StoreError> {
        // What was sent before, and what has come since.
        for _ in 0..2 {
            if !self.unwritten.lock().send(self.nodes.is_alone()) {
                break;
            }
            let (mut counter, revision) = self.read(stored).await?;
            counter.count(&self.unwritten.lock(), self.nodes.process());
            let text = serde_json::to_vec(&counter)?.into();
            // Until the answer is there.
            *stored = None;
            let revision = match revision {
                0 => self.bucket.create(KEY, text).await?,
                revision => self.bucket.update(KEY, text, revision).await?,
            };
            *stored = Some((counter, revision));
            self.unwritten.lock().sent.clear();
        }
        Ok(())
    }
}
