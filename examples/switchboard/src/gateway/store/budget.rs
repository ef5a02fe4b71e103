//! [`Budget`]: the tokens of the day and of the month, in one counter that nodes change by compare-and-set.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use exoclaw_proto::budget::pools::{Pool, Pools, day_of, month_of};
use exoclaw_proto::budget::{Budgets, Exceeded, Scope};
use rpc_core::store::{Bucket, StoreError as Failure};
use rpc_core::sync::Mutex;
use serde::{Deserialize, Serialize};

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
    reserved: i64,
}

impl Reservation {
    /// Releases the tokens, and counts those that were used. Returns the number to [wait](Budget::written) for.
    fn take(&mut self, used: u64) -> u64 {
        let reserved = -std::mem::take(&mut self.reserved);
        self.unwritten.lock().add(self.day, used, reserved)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if self.reserved > 0 {
            self.take(0);
        }
    }
}

/// What runs that were admitted on one day have changed.
#[derive(Clone, Copy, Debug)]
struct Change {
    number: u64,
    day: u64,
    used: u64,
    reserved: i64,
}

/// What this process has changed and not written, in the order of the numbers.
#[derive(Debug, Default)]
struct Unwritten {
    changes: VecDeque<Change>,
    /// The last number, and the last one that may be written.
    last: u64,
    sent: u64,
    /// The latest day seen.
    today: u64,
}

impl Unwritten {
    fn add(&mut self, day: u64, used: u64, reserved: i64) -> u64 {
        match self.changes.back_mut() {
            Some(change) if change.day == day && change.number > self.sent => {
                change.used = change.used.saturating_add(used);
                change.reserved = change.reserved.saturating_add(reserved);
            }
            _ => {
                self.last += 1;
                self.changes.push_back(Change {
                    number: self.last,
                    day,
                    used,
                    reserved,
                });
            }
        }
        self.last
    }
}

/// What is stored.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Counter {
    pools: Pools,
    /// By the id of a process, the last of its changes that is counted: none is counted twice.
    counted: VecDeque<(String, u64)>,
}

impl Counter {
    fn counted(&self, process: &str) -> u64 {
        let of_it = self.counted.iter().find(|(it, _)| it == process);
        of_it.map_or(0, |(_, number)| *number)
    }

    fn set_counted(&mut self, process: &str, number: u64) {
        self.counted.retain(|(it, _)| it != process);
        self.counted.push_back((process.to_owned(), number));
        let surplus = self.counted.len().saturating_sub(MAX_PROCESSES);
        self.counted.drain(..surplus);
    }

    /// Begins a new day. What was reserved on an earlier one is released.
    fn advance(&mut self, day: u64) {
        if day > self.pools.day {
            self.pools.advance(day);
            self.pools.monthly.reserved = 0;
        }
    }

    fn apply(&mut self, change: &Change) {
        self.advance(change.day);
        let Pools {
            day,
            daily,
            monthly,
        } = &mut self.pools;
        if *day == change.day {
            for pool in [daily, monthly] {
                pool.used = pool.used.saturating_add(change.used);
                pool.reserved = pool.reserved.saturating_add_signed(change.reserved);
            }
        } else if month_of(*day) == month_of(change.day) {
            monthly.take(change.used, 0);
        }
    }

    /// Takes over what is known to be used, if the store has lost it.
    fn restore(&mut self, mut known: Pools) {
        self.advance(known.day);
        known.advance(self.pools.day);
        let Pools { daily, monthly, .. } = &mut self.pools;
        daily.used = daily.used.max(known.daily.used);
        monthly.used = monthly.used.max(known.monthly.used);
    }
}

/// The counter as it was read or written last.
#[derive(Debug, Default)]
struct Stored {
    counter: Counter,
    /// 0 if there is none.
    revision: u64,
    was_read: bool,
    /// Whether it may still be what is stored.
    is_current: bool,
}

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
    config: GatewayStoreConfig,
    clock: fn() -> u64,
    unwritten: Arc<Mutex<Unwritten>>,
    /// Held by the one call that reads and writes.
    stored: tokio::sync::Mutex<Stored>,
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

    pub(super) const fn limits(&self) -> Budgets {
        self.config.budgets
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
            return Ok(self.hold(0));
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
        let mut stored = self.stored.lock().await;
        let mut is_fresh = false;
        loop {
            is_fresh |= self.read(&mut stored).await?;
            match self.total(&stored).check(self.config.budgets, estimate) {
                Ok(()) => {
                    let reservation = self.hold(estimate);
                    if !self.nodes.is_alone() {
                        self.write(&mut stored).await?;
                    }
                    return Ok(Ok(reservation));
                }
                Err(_) if !is_fresh => stored.is_current = false,
                Err(exceeded) => return Ok(Err(exceeded)),
            }
        }
    }

    fn hold(&self, tokens: u64) -> Reservation {
        let reserved = i64::try_from(tokens).unwrap_or(i64::MAX);
        let mut unwritten = self.unwritten.lock();
        let day = self.today(&mut unwritten);
        if reserved > 0 {
            unwritten.add(day, 0, reserved);
        }
        Reservation {
            unwritten: Arc::clone(&self.unwritten),
            day,
            reserved,
        }
    }

    fn today(&self, unwritten: &mut Unwritten) -> u64 {
        unwritten.today = unwritten.today.max(day_of((self.clock)()));
        unwritten.today
    }

    /// Settles a run with the budgets. Returns the number to [wait](Self::written) for.
    #[expect(clippy::unused_self, reason = "the reservation is one of this budget")]
    pub(super) fn settle(&self, mut reservation: Reservation, tokens: u64) -> u64 {
        reservation.take(tokens)
    }

    /// Waits until a change is written.
    pub(super) async fn written(&self, number: u64) -> Result<(), StoreError> {
        repeat(self.config.patience, || self.try_write(number)).await
    }

    async fn try_write(&self, number: u64) -> Result<(), StoreError> {
        let mut stored = self.stored.lock().await;
        self.read(&mut stored).await?;
        match stored.counter.counted(self.nodes.process()) >= number {
            true => Ok(()),
            false => self.write(&mut stored).await,
        }
    }

    /// Writes what is not written. Returns whether nothing is left.
    pub(super) async fn write_late(&self) -> bool {
        let last = {
            let unwritten = self.unwritten.lock();
            // A gateway alone need not write what is reserved.
            let is_news = |it: &Change| it.used > 0 || !self.nodes.is_alone();
            unwritten
                .changes
                .iter()
                .rev()
                .find(|it| is_news(it))
                .map(|it| it.number)
        };
        match last {
            Some(number) => self.try_write(number).await.is_ok(),
            None => true,
        }
    }

    /// Returns the tokens of the day and of the month, as all nodes have used them.
    pub(super) async fn used(&self) -> Result<(u64, u64), StoreError> {
        let total = repeat(self.config.patience, || async {
            let mut stored = self.stored.lock().await;
            stored.is_current &= self.nodes.is_alone();
            self.read(&mut stored).await?;
            Ok(self.total(&stored))
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
        match self
            .bucket
            .create(KEY, serde_json::to_vec(&counter)?.into())
            .await
        {
            Err(Failure::Conflict) => Ok(()),
            created => Ok(created.map(drop)?),
        }
    }

    /// Returns the tokens of all nodes on this day.
    fn total(&self, stored: &Stored) -> Pools {
        let mut counter = stored.counter.clone();
        let mut unwritten = self.unwritten.lock();
        counter.advance(self.today(&mut unwritten));
        unwritten.changes.iter().for_each(|it| counter.apply(it));
        counter.pools
    }

    /// Reads the counter, if the last one is not current. Returns whether it did.
    async fn read(&self, stored: &mut Stored) -> Result<bool, StoreError> {
        if stored.is_current {
            return Ok(false);
        }
        let entry = self.bucket.get(KEY).await?;
        let revision = entry.as_ref().map_or(0, |entry| entry.revision);
        let mut counter: Counter = match &entry {
            Some(entry) => serde_json::from_slice(&entry.value)?,
            None => Counter::default(),
        };
        if !stored.was_read && self.nodes.is_alone() {
            // The runs that had reserved have ended.
            (counter.pools.daily.reserved, counter.pools.monthly.reserved) = (0, 0);
        }
        let mut unwritten = self.unwritten.lock();
        unwritten.today = unwritten.today.max(counter.pools.day);
        let counted = counter.counted(self.nodes.process());
        unwritten.changes.retain(|it| it.number > counted);
        if revision < stored.revision {
            counter.restore(stored.counter.pools);
            let today = unwritten.today;
            unwritten.add(today, 0, 0);
        }
        *stored = Stored {
            counter,
            revision,
            was_read: true,
            is_current: true,
        };
        Ok(true)
    }

    /// Writes all changes into the counter, which was read.
    async fn write(&self, stored: &mut Stored) -> Result<(), StoreError> {
        let mut counter = stored.counter.clone();
        let (last, sent) = {
            let mut unwritten = self.unwritten.lock();
            unwritten.changes.iter().for_each(|it| counter.apply(it));
            let last = unwritten.last;
            (last, std::mem::replace(&mut unwritten.sent, last))
        };
        counter.set_counted(self.nodes.process(), last);
        let text = serde_json::to_vec(&counter)?.into();
        // Until the answer is there.
        stored.is_current = false;
        let written = match stored.revision {
            0 => self.bucket.create(KEY, text).await,
            revision => self.bucket.update(KEY, text, revision).await,
        };
        let mut unwritten = self.unwritten.lock();
        match written {
            Ok(revision) => {
                unwritten.changes.retain(|it| it.number > last);
                (stored.counter, stored.revision) = (counter, revision);
                stored.is_current = true;
                Ok(())
            }
            Err(error) => {
                if matches!(error, Failure::Full { .. }) {
                    // It is not written.
                    unwritten.sent = sent;
                }
                Err(error.into())
            }
        }
    }
}
