//! [`MemoryStore`]: a [`LocalStore`] in memory, with faults on order.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;

use super::rows::bounds;
use super::{Changes, Engine, Faults, Link, LocalStore, REQUESTS, Row, Table, Which, serve};
use crate::store::StoreError;
use crate::sync::Mutex;

/// A [`Store`](crate::store::Store) in this process, for tests and for one node. This value is the connection of one
/// node; a clone is the same connection, and [`connect`](Self::connect) makes the connection of another node.
///
/// Its time is tokio's: a test that has paused tokio's clock lives through hours at once, and repeats itself.
/// The requests of a connection are done in order, each by a task of the connection, even if no caller waits
/// for the answer any more. A request without an answer fails after 5 s.
///
/// Faults of one connection: [`set_cut`](Self::set_cut), [`set_paused`](Self::set_paused),
/// [`set_delay`](Self::set_delay), [`set_denied`](Self::set_denied), [`lose_answers`](Self::lose_answers) and
/// [`set_queue`](Self::set_queue). Faults of the engine behind all of them: [`set_full`](Self::set_full),
/// [`restart`](Self::restart), [`restart_empty`](Self::restart_empty), [`restore`](Self::restore) and
/// [`delete_log`](Self::delete_log).
pub type MemoryStore = LocalStore<MemoryTable>;

/// The [`Table`] of a [`MemoryStore`].
#[derive(Debug, Default)]
pub struct MemoryTable(Mutex<BTreeMap<Vec<u8>, Bytes>>);

/// A copy of what all logs of a [`MemoryStore`] held at one time.
#[derive(Clone, Debug)]
pub struct MemorySnapshot(BTreeMap<Vec<u8>, Bytes>);

impl Table for MemoryTable {
    fn range(
        &self,
        keys: (&[u8], &[u8]),
        which: Which,
        max: usize,
    ) -> Result<Vec<Row>, StoreError> {
        let rows = self.0.lock();
        let rows = rows.range::<[u8], _>(bounds(keys));
        let row = |(key, value): (&Vec<u8>, &Bytes)| (key.clone(), Some(value.clone()));
        Ok(match which {
            Which::First => rows.take(max).map(row).collect(),
            Which::Last => rows.rev().take(max).map(row).collect(),
        })
    }

    fn write(&self, changes: &Changes) -> Result<(), StoreError> {
        let mut rows = self.0.lock();
        for (key, value) in changes {
            match value {
                Some(value) => rows.insert(key.clone(), value.clone()),
                None => rows.remove(key),
            };
        }
        Ok(())
    }
}

impl MemoryStore {
    /// Creates an empty store, and connects a node to it.
    ///
    /// # Panics
    /// Outside a tokio runtime with its timer enabled.
    #[must_use]
    pub fn new() -> Self {
        let table = Arc::new(MemoryTable::default());
        let engine = Engine::new(Arc::clone(&table) as Arc<dyn Table>, true);
        Self::on(table, Arc::new(engine))
    }

    /// Connects another node to the same data.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn connect(&self) -> Self {
        Self::on(Arc::clone(&self.table), Arc::clone(&self.node.engine))
    }

    fn on(table: Arc<MemoryTable>, engine: Arc<Engine>) -> Self {
        let link = Link::new();
        let (sender, received) = mpsc::channel(REQUESTS);
        tokio::spawn(serve(Arc::clone(&engine), Arc::clone(&link), received));
        Self::connected(table, engine, link, sender, None)
    }

    /// Cuts this connection, or restores it. Meanwhile nothing is delivered, which is a gap, and watches end;
    /// requests wait, and are done when it is mended.
    pub fn set_cut(&self, is_cut: bool) {
        self.change(|faults| faults.is_cut = is_cut);
        if !is_cut {
            self.node.link.gap();
        }
    }

    /// Stops this connection, or lets it go on. It counts as connected; meanwhile requests wait, and what
    /// would be delivered waits in the [queue](Self::set_queue).
    pub fn set_paused(&self, is_paused: bool) {
        self.change(|faults| faults.is_paused = is_paused);
    }

    /// Sets how long a request of this connection takes to arrive, and a message to be delivered. A request that
    /// takes longer than the timeout has no answer, and is done all the same.
    pub fn set_delay(&self, delay: Duration) {
        self.change(|faults| faults.delay = delay);
    }

    /// Forbids this connection to use logs, or allows it again.
    pub fn set_denied(&self, is_denied: bool) {
        self.change(|faults| faults.is_denied = is_denied);
    }

    /// Loses the answers to the next `count` writes of this connection: they are done, and the caller
    /// learns nothing.
    pub fn lose_answers(&self, count: u64) {
        self.change(|faults| faults.lost_answers = count);
    }

    /// Sets how many messages wait for a subscriber of this connection that does not read, for subscriptions
    /// from now on; at least 1. Further ones are lost, which is a gap. Default 4,096.
    pub fn set_queue(&self, len: usize) {
        self.change(|faults| faults.queue = len.max(1));
    }

    /// Takes all room from the engine, or gives it back: without room all appends fail with
    /// [`StoreError::Full`].
    pub fn set_full(&self, is_full: bool) {
        self.node.engine.logs.lock().is_full = is_full;
    }

    /// Restarts the engine with its data: a gap for all nodes, and the end of all watches.
    pub fn restart(&self) {
        self.node.engine.hub.lock().restart();
    }

    /// Restarts the engine without its data.
    pub fn restart_empty(&self) {
        self.restore(&MemorySnapshot(BTreeMap::new()));
    }

    /// Returns a copy of all logs.
    #[must_use]
    pub fn snapshot(&self) -> MemorySnapshot {
        MemorySnapshot(self.table.0.lock().clone())
    }

    /// Restarts the engine with a copy of its data from before.
    pub fn restore(&self, snapshot: &MemorySnapshot) {
        let mut logs = self.node.engine.logs.lock();
        self.table.0.lock().clone_from(&snapshot.0);
        logs.reset();
        self.restart();
    }

    /// Deletes the log with this name; who uses it finds out at the next request.
    pub fn delete_log(&self, name: &str) {
        let mut logs = self.node.engine.logs.lock();
        logs.delete(name);
        let _ = logs.commit();
        drop(logs);
        self.node.engine.hub.lock().changed.send_replace(());
    }

    fn change(&self, change: impl FnOnce(&mut Faults)) {
        self.node.link.faults.send_modify(change);
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}
