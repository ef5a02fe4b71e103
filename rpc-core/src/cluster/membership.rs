//! [`Membership`]: a process as a node of its cluster, one lease after the other.

use std::future::{Future, pending};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::{LeaseLost, NodeLease, Renewal};
use crate::net::time::sleep;
use crate::store::StoreError;
use crate::sync::Mutex;

/// How long to wait before the store is asked again.
const REJOIN: Duration = Duration::from_secs(1);

/// A process as a node of its cluster. Cheap to clone; all clones are the same.
///
/// A process that loses its lease comes back as another node. `N` is what it needs for each: its
/// [`NodeLease`] and what hangs on that.
pub struct Membership<N = NodeLease> {
    current: Arc<watch::Sender<Option<Arc<N>>>>,
    failed: Arc<watch::Sender<Option<StoreError>>>,
    /// The leases that were lost, whose keys may be there still.
    past: Arc<Mutex<Vec<NodeLease>>>,
}

impl<N: AsRef<NodeLease>> Membership<N> {
    /// Creates one that is not a node yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            current: Arc::new(watch::Sender::new(None)),
            failed: Arc::new(watch::Sender::new(None)),
            past: Arc::default(),
        }
    }

    /// Returns the node that this process is, if it counts as alive.
    #[must_use]
    pub fn current(&self) -> Option<Arc<N>> {
        let node = self.current.borrow().clone();
        node.filter(|node| (**node).as_ref().is_valid())
    }

    /// Waits until this process is a node.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn joined(&self) -> Arc<N> {
        let mut changes = self.current.subscribe();
        loop {
            if let Some(node) = self.current() {
                return node;
            }
            // The sender is here.
            let _ = changes.changed().await;
        }
    }

    /// Waits until this process is not a node.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn left(&self) {
        // The sender is here.
        let _ = self.current.subscribe().wait_for(Option::is_none).await;
    }

    /// Waits until this process cannot come back by itself: the store denies it what it needs, or is
    /// configured for something else. Returns why. Waits for ever while that does not happen.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn failed(&self) -> StoreError {
        let mut failed = self.failed.subscribe();
        loop {
            if let Some(error) = &*failed.borrow_and_update() {
                return error.clone();
            }
            // The sender is here.
            let _ = failed.changed().await;
        }
    }

    /// Opens a node with `open`, trying again every second as long as that fails.
    ///
    /// # Cancel safety
    /// Cancel-safe if `open` is.
    pub async fn open<T, F>(&self, open: impl Fn() -> F) -> T
    where
        F: Future<Output = Result<T, StoreError>>,
    {
        loop {
            match open().await {
                Ok(opened) => return opened,
                Err(error) => {
                    tracing::warn!(%error, "this process cannot join its cluster");
                    if error.is_permanent() {
                        self.failed.send_replace(Some(error));
                    }
                }
            }
            sleep(REJOIN).await;
        }
    }

    /// Is this node until its lease is lost, or `work` ends, which begins when the node counts as alive.
    /// Returns why the lease was lost.
    ///
    /// It removes the keys of its earlier leases first: a renewal that the store carries out late, after a pause,
    /// lets such a key live for a whole lease more, and what its node owned is out of reach as long.
    ///
    /// # Cancel safety
    /// If the future is dropped, the lease ends when its time is over.
    pub async fn live(
        &self,
        node: Arc<N>,
        renewal: Renewal,
        work: impl Future<Output = ()>,
    ) -> LeaseLost {
        let lease = (*node).as_ref();
        let working = async {
            if lease.acquired().await.is_err() {
                return pending().await;
            }
            let past = std::mem::take(&mut *self.past.lock());
            for lease in past {
                if lease.remove().await.is_err() {
                    self.past.lock().push(lease);
                }
            }
            self.current.send_replace(Some(Arc::clone(&node)));
            work.await;
        };
        let denied = |error| drop(self.failed.send_replace(Some(error)));
        let why = tokio::select! {
            why = renewal.run(denied) => why,
            () = working => LeaseLost::Expired,
        };
        self.current.send_replace(None);
        if why != LeaseLost::Released {
            self.past.lock().push(lease.clone());
        }
        why
    }
}

impl<N: AsRef<NodeLease>> Default for Membership<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<N> Clone for Membership<N> {
    fn clone(&self) -> Self {
        Self {
            current: Arc::clone(&self.current),
            failed: Arc::clone(&self.failed),
            past: Arc::clone(&self.past),
        }
    }
}

crate::debug::debug_fields!([N] Membership<N>, this => { is_joined: this.current.borrow().is_some() });
