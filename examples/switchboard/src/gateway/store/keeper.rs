//! [`Keeper`]: a [`Store`] for async code. One thread writes, a bounded number reads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::{io, thread};

use async_trait::async_trait;
use rpc_core::sync::Mutex;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::backlog::Backlog;
use super::{Commit, Forget, SessionInfo, Store, StoreError, Totals};
use crate::gateway::cluster::SharedTurn;
use crate::gateway::engine::Records;
use crate::gateway::memory::Turn;
use crate::gateway::usage::UsageEntry;

/// Most orders that wait for the writer. Later callers wait for a place.
const MAX_WAITING: usize = 256;
/// Most runs in one transaction: they share the wait for the disk.
const MAX_TOGETHER: usize = 64;
/// Most reads at once. Each occupies a thread.
const MAX_READS: usize = 8;

/// A handle that writes and reads a store without blocking an async worker.
pub struct Keeper {
    store: Arc<dyn Store>,
    orders: Mutex<Option<mpsc::Sender<Order>>>,
    backlog: Arc<Mutex<Backlog>>,
    reads: Arc<Semaphore>,
    /// Closed when the writer has ended.
    writer: watch::Receiver<()>,
}

rpc_core::debug_fields!([] Keeper, this => { store: this.store });

enum Order {
    Commit(Box<Commit>, oneshot::Sender<Result<(), StoreError>>),
    Forget(String, Forget, oneshot::Sender<Result<bool, StoreError>>),
}

impl Keeper {
    /// Starts the writer's thread. It ends after the keeper is dropped or closed, when all its
    /// orders are written.
    ///
    /// # Errors
    /// The system cannot start a thread.
    pub fn start(store: Arc<dyn Store>) -> io::Result<Self> {
        let (sender, orders) = mpsc::channel(MAX_WAITING);
        let (ended, writer) = watch::channel(());
        let target = Arc::clone(&store);
        let backlog = Arc::new(Mutex::default());
        let late = Arc::clone(&backlog);
        let name = "gateway-store".to_owned();
        thread::Builder::new().name(name).spawn(move || {
            write_all(&*target, &late, orders);
            drop(target);
            drop(ended);
        })?;
        Ok(Self {
            store,
            orders: Mutex::new(Some(sender)),
            backlog,
            reads: Arc::new(Semaphore::new(MAX_READS)),
            writer,
        })
    }

    async fn order(&self, order: Order) -> Result<(), StoreError> {
        let sender = {
            let orders = self.orders.lock();
            orders.clone().ok_or(StoreError::Closed)?
        };
        let sent = sender.send(order).await;
        sent.map_err(|_| StoreError::Closed)
    }

    async fn read<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let place = Arc::clone(&self.reads).acquire_owned().await;
        let store = Arc::clone(&self.store);
        let done = tokio::task::spawn_blocking(move || {
            let _place = place;
            work(&*store)
        });
        match done.await {
            Ok(outcome) => outcome,
            Err(error) if error.is_panic() => Err(panicked()),
            // The runtime ends.
            Err(_) => Err(StoreError::Closed),
        }
    }
}

#[async_trait]
impl Records for Keeper {
    /// A run is written even if the future is dropped, once there was a place for it: with more than 256 orders
    /// before it, it waits for one first. After [`StoreError::Io`] it may have been written.
    async fn commit(
        &self,
        commit: Commit,
        _: Option<&mut SharedTurn>,
        _: Option<u64>,
    ) -> Result<(), StoreError> {
        let (reply, written) = oneshot::channel();
        self.order(Order::Commit(Box::new(commit), reply)).await?;
        written.await.unwrap_or(Err(StoreError::Closed))
    }

    async fn recall(
        &self,
        session: &str,
        _: Option<&SharedTurn>,
        turns: usize,
    ) -> Result<Vec<Turn>, StoreError> {
        let session = session.to_owned();
        self.read(move |store| store.recall(&session, turns)).await
    }

    async fn sessions(&self, max: usize) -> Result<Vec<SessionInfo>, StoreError> {
        self.read(move |store| store.sessions(max)).await
    }

    async fn session_count(&self, since: u64) -> Result<u64, StoreError> {
        self.read(move |store| store.session_count(since)).await
    }

    async fn usage(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError> {
        let mut entries = self.backlog.lock().last(max);
        let rest = max.saturating_sub(entries.len());
        entries.extend(self.read(move |store| store.usage(rest)).await?);
        Ok(entries)
    }

    async fn totals(&self) -> Result<Totals, StoreError> {
        self.read(|store| store.totals()).await
    }

    async fn forget(&self, session: &str, what: Forget) -> Result<bool, StoreError> {
        let (reply, written) = oneshot::channel();
        let order = Order::Forget(session.to_owned(), what, reply);
        self.order(order).await?;
        written.await.unwrap_or(Err(StoreError::Closed))
    }

    async fn close(&self) {
        drop(self.orders.lock().take());
        let mut writer = self.writer.clone();
        // Nothing is ever sent: this is the end of the writer.
        let _ = writer.changed().await;
    }
}

/// Runs the writer's thread.
fn write_all(store: &dyn Store, backlog: &Mutex<Backlog>, mut orders: mpsc::Receiver<Order>) {
    let mut next = orders.blocking_recv();
    while let Some(order) = next.take() {
        match order {
            Order::Forget(session, what, reply) => {
                let _ = reply.send(guarded(|| store.forget(&session, what)));
            }
            Order::Commit(first, reply) => {
                let (mut commits, mut replies) = (vec![*first], vec![reply]);
                while commits.len() < MAX_TOGETHER {
                    match orders.try_recv() {
                        Ok(Order::Commit(commit, reply)) => {
                            commits.push(*commit);
                            replies.push(reply);
                        }
                        Ok(other) => {
                            next = Some(other);
                            break;
                        }
                        Err(_) => break,
                    }
                }
                let outcome = write(store, backlog, commits);
                for reply in replies {
                    let _ = reply.send(outcome.clone());
                }
            }
        }
        if next.is_none() {
            next = orders.blocking_recv();
        }
    }
    if let Err(error) = write(store, backlog, Vec::new()) {
        let tokens = backlog.lock().tokens();
        tracing::error!(%error, tokens, "the usage of these tokens was not written down");
    }
}

/// Writes runs, and before them the usage that could not be written earlier.
fn write(
    store: &dyn Store,
    backlog: &Mutex<Backlog>,
    commits: Vec<Commit>,
) -> Result<(), StoreError> {
    let mut all = backlog.lock().commits();
    let late = all.len();
    all.extend(commits);
    if all.is_empty() {
        return Ok(());
    }
    let mut outcome = guarded(|| store.commit(&all));
    let new = all.split_off(late);
    match &outcome {
        Ok(()) => backlog.lock().clear(),
        Err(StoreError::Io { .. }) => {}
        // Perhaps it is an old one that cannot be written; it must not hold up all others.
        Err(_) if late > 0 => outcome = guarded(|| store.commit(&new)),
        Err(_) => {}
    }
    if outcome.is_err() {
        backlog.lock().keep(&new);
    }
    outcome
}

/// Runs work and turns a panic into an error, so that a store that panics does not end the writer.
fn guarded<T>(work: impl FnOnce() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let outcome = catch_unwind(AssertUnwindSafe(work));
    outcome.unwrap_or_else(|_| Err(panicked()))
}

fn panicked() -> StoreError {
    StoreError::damaged("the store", "it has panicked")
}
