//! [`Budget`]: the token budgets of all nodes, in one value that they change by compare-and-set.

#[cfg(test)]
mod tests;
mod value;

use std::sync::Arc;

use exoclaw_proto::budget::pools::{Pools, day_of};
use exoclaw_proto::budget::{Exceeded, Scope};
use rpc_core::store::Bucket;
use rpc_core::sync::Mutex;

use super::nodes::Nodes;
use super::{Attempts, ClusterConfig};
use crate::gateway::store::StoreError;
use value::{Value, minus_used, plus, used};

/// The key of the value.
const KEY: &str = "budget";

/// Why a run is not admitted.
#[derive(Debug)]
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
    own: Arc<Mutex<Totals>>,
    day: u64,
    held: u64,
}

impl Reservation {
    fn take(&mut self, tokens: u64) {
        let mut own = self.own.lock();
        own.pools.take(self.day, tokens, self.held);
        own.change += 1;
        self.held = 0;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.held > 0 {
            self.take(0);
        }
    }
}

/// What the runs of this process have used and reserved.
#[derive(Debug, Default)]
struct Totals {
    pools: Pools,
    /// The number of the last change, and of the last one that is written.
    change: u64,
    written: u64,
}

/// The value as it was read or written last.
#[derive(Debug, Default)]
struct Stored {
    value: Value,
    revision: Option<u64>,
    /// Whether it may still be what is stored.
    is_current: bool,
    /// The totals of this process in it.
    confirmed: Option<Pools>,
}

/// The tokens of all nodes, checked against the daily and the monthly budget.
///
/// A process writes its own totals, never a difference, so a write with an unknown outcome is repeated safely.
/// Reservations of a node that is gone are released as soon as a run would be refused because of them; what it
/// has used stays. A node that counted as gone and is not has its reservations again with its next write.
///
/// **The bound:** a run is admitted only if the tokens used, the tokens reserved by all nodes and its own estimate
/// are within the budgets at one revision. So the tokens used exceed a budget by no more than what the runs that
/// were open at the last admission then use beyond their reservations; those of a node that counted as gone have
/// none.
///
/// The budget of a session is not in the value: the caller passes the tokens that the session has used, and holds
/// the session's turn while it does.
#[derive(Debug)]
pub(super) struct Budget {
    bucket: Bucket,
    nodes: Nodes,
    config: ClusterConfig,
    clock: fn() -> u64,
    own: Arc<Mutex<Totals>>,
    /// Held by the one call that reads and writes.
    stored: tokio::sync::Mutex<Stored>,
}

impl Budget {
    pub(super) fn new(
        bucket: Bucket,
        nodes: Nodes,
        config: ClusterConfig,
        clock: fn() -> u64,
    ) -> Self {
        Self {
            bucket,
            nodes,
            config,
            clock,
            own: Arc::default(),
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
        used(session_used)
            .check(Scope::Session, budgets.session, estimate)
            .map_err(NotAdmitted::Exceeded)?;
        if budgets.daily.is_none() && budgets.monthly.is_none() {
            // There is nothing to wait for.
            return Ok(self.hold(0));
        }
        let reserved = self.attempt(|| self.try_reserve(estimate)).await;
        reserved
            .map_err(NotAdmitted::Store)?
            .map_err(NotAdmitted::Exceeded)
    }

    async fn try_reserve(
        &self,
        estimate: u64,
    ) -> Result<Result<Reservation, Exceeded>, StoreError> {
        let mut stored = self.stored.lock().await;
        let (mut is_fresh, mut are_gone_known) = (false, false);
        loop {
            is_fresh |= self.read(&mut stored).await?;
            let total = self.total(&stored.value);
            match total.check(self.config.budgets, estimate) {
                Ok(()) => {
                    let reservation = self.hold(estimate);
                    self.write(&mut stored).await?;
                    return Ok(Ok(reservation));
                }
                Err(_) if !is_fresh => stored.is_current = false,
                Err(_) if !are_gone_known => {
                    let holders = stored.value.holders(self.nodes.process());
                    let gone = self.nodes.gone(holders).await?;
                    stored.value.release(&gone);
                    are_gone_known = true;
                }
                Err(exceeded) => return Ok(Err(exceeded)),
            }
        }
    }

    fn hold(&self, tokens: u64) -> Reservation {
        let mut own = self.own.lock();
        own.pools.advance(day_of((self.clock)()));
        own.pools.reserve(tokens);
        Reservation {
            day: own.pools.day,
            own: Arc::clone(&self.own),
            held: tokens,
        }
    }

    /// Settles a run with the budgets. Returns the number to [wait](Self::is_written) for.
    pub(super) fn settle(&self, mut reservation: Reservation, tokens: u64) -> u64 {
        reservation.take(tokens);
        self.own.lock().change
    }

    /// Waits until a change is written.
    pub(super) async fn is_written(&self, change: u64) -> Result<(), StoreError> {
        self.attempt(|| self.try_write(change)).await
    }

    async fn try_write(&self, change: u64) -> Result<(), StoreError> {
        let mut stored = self.stored.lock().await;
        if self.own.lock().written >= change {
            return Ok(());
        }
        self.read(&mut stored).await?;
        self.write(&mut stored).await
    }

    /// Writes what is not written. Returns whether nothing is left.
    pub(super) async fn write_late(&self) -> bool {
        let change = self.own.lock().change;
        self.try_write(change).await.is_ok()
    }

    /// Returns the tokens of the day and of the month, as all nodes have used them.
    pub(super) async fn used(&self) -> Result<(u64, u64), StoreError> {
        self.attempt(|| self.try_used()).await
    }

    async fn try_used(&self) -> Result<(u64, u64), StoreError> {
        let mut stored = self.stored.lock().await;
        stored.is_current = false;
        self.read(&mut stored).await?;
        let total = self.total(&stored.value);
        Ok((total.daily.used, total.monthly.used))
    }

    async fn attempt<T, F>(&self, attempt: impl Fn() -> F) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        let mut attempts = Attempts::new(self.config.patience);
        loop {
            if let Some(done) = attempts.run(attempt()).await? {
                return Ok(done);
            }
        }
    }

    /// Returns the tokens of all nodes on this day.
    fn total(&self, value: &Value) -> Pools {
        let mut own = self.own.lock();
        own.pools.advance(day_of((self.clock)()).max(value.day()));
        plus(value.others(self.nodes.process()), own.pools)
    }

    /// Reads the value, if the last one is not current. Returns whether it did.
    async fn read(&self, stored: &mut Stored) -> Result<bool, StoreError> {
        if stored.is_current {
            return Ok(false);
        }
        let entry = self.bucket.get(KEY).await?;
        stored.value = match &entry {
            Some(entry) => serde_json::from_slice(&entry.value)
                .map_err(|error| StoreError::damaged("the cluster", error.to_string()))?,
            None => Value::default(),
        };
        let now = stored.value.get(self.nodes.process());
        if now != stored.confirmed {
            // The store has lost it, or it is to be written once more.
            let mut own = self.own.lock();
            own.change += 1;
            if stored.value.is_folded(self.nodes.process()) {
                own.pools = minus_used(own.pools, stored.confirmed.unwrap_or_default());
            }
        }
        (stored.confirmed, stored.is_current) = (now, true);
        stored.revision = entry.map(|entry| entry.revision);
        Ok(true)
    }

    /// Writes the totals of this process into the value.
    async fn write(&self, stored: &mut Stored) -> Result<(), StoreError> {
        let process = self.nodes.process();
        let (pools, change) = {
            let mut own = self.own.lock();
            own.pools.advance(stored.value.day());
            (own.pools, own.change)
        };
        let lease = self.nodes.member.current();
        stored
            .value
            .put(process, lease.as_ref().map(|it| &**it.node()), pools);
        let text = serde_json::to_vec(&stored.value)
            .map_err(|error| StoreError::damaged("the cluster", error.to_string()))?;
        // Until the answer is there.
        stored.is_current = false;
        let revision = match stored.revision {
            Some(revision) => self.bucket.update(KEY, text.into(), revision).await?,
            None => self.bucket.create(KEY, text.into()).await?,
        };
        (stored.revision, stored.is_current) = (Some(revision), true);
        stored.confirmed = stored.value.get(process);
        let mut own = self.own.lock();
        own.written = own.written.max(change);
        Ok(())
    }
}
