//! [`Nodes`]: this gateway as a node of the cluster, one life after the other, and which nodes are alive.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rpc_core::Str;
use rpc_core::cluster::{LeaseConfig, LeaseLost, NodeLease, Renewal, Store, StoreError as Failure};
use rpc_core::net::entropy;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use super::{LATER, unavailable};
use crate::gateway::store::StoreError;

/// This gateway in its cluster. Cheap to clone.
///
/// A gateway that loses its lease comes back as another node. Its turns that run on stay in their queues as
/// those of the node that is gone: the first one that waits for such a turn ends it, and its write is refused.
#[derive(Clone)]
pub(super) struct Nodes {
    /// The id of this process.
    process: Str,
    /// The lease of this life; `None` between two.
    current: Arc<watch::Sender<Option<NodeLease>>>,
    /// Why this gateway cannot come back.
    failed: Arc<watch::Sender<Option<Failure>>>,
    numbers: Arc<AtomicU64>,
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Nodes")
            .field(&*self.current.borrow())
            .finish()
    }
}

impl Nodes {
    pub(super) fn new() -> Self {
        Self {
            process: format!("{:016x}", entropy()).into(),
            current: Arc::new(watch::Sender::new(None)),
            failed: Arc::new(watch::Sender::new(None)),
            numbers: Arc::default(),
        }
    }

    /// Returns a number that this process has not used.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns an id that no process has used.
    pub(super) fn id(&self) -> String {
        format!("{}-{:x}", self.process, self.number())
    }

    /// Returns this node's lease, if it counts as alive.
    pub(super) fn alive(&self) -> Option<NodeLease> {
        self.current.borrow().clone().filter(NodeLease::is_valid)
    }

    /// Waits until this gateway is a node, but not for ever.
    pub(super) async fn joined(&self, patience: Duration) -> Result<NodeLease, StoreError> {
        let mut changes = self.current.subscribe();
        let joined = async {
            loop {
                if let Some(lease) = self.alive() {
                    return lease;
                }
                // The sender is here.
                let _ = changes.changed().await;
            }
        };
        let joined = timeout(patience, joined).await;
        joined.map_err(|_| unavailable(patience))
    }

    /// Waits until this gateway cannot come back by itself.
    pub(super) async fn failed(&self) -> Failure {
        let mut failed = self.failed.subscribe();
        loop {
            if let Some(error) = &*failed.borrow_and_update() {
                return error.clone();
            }
            // The sender is here.
            let _ = failed.changed().await;
        }
    }

    /// Lives this life and, after the loss of its lease, further ones. `joined` learns the id of each as
    /// soon as it counts as alive.
    pub(super) async fn keep_alive(
        self,
        store: Arc<dyn Store>,
        config: LeaseConfig,
        (mut lease, mut renewal): (NodeLease, Renewal),
        joined: impl Fn(&Str) + Send + Sync,
    ) {
        loop {
            let joining = async {
                if lease.acquired().await.is_ok() {
                    joined(lease.node());
                    self.current.send_replace(Some(lease.clone()));
                }
                let denied = lease.denied().await;
                self.failed.send_replace(Some(denied));
                std::future::pending().await
            };
            let why = tokio::select! {
                why = renewal.run() => why,
                why = joining => why,
            };
            self.current.send_replace(None);
            if why == LeaseLost::Released {
                return;
            }
            tracing::warn!(%why, "the other nodes may count this one as gone; it comes back as a new one");
            (lease, renewal) = loop {
                match NodeLease::open(&store, config).await {
                    Ok(life) => break life,
                    Err(error) => {
                        tracing::warn!(%error, "this gateway is not in the cluster");
                        if error.is_permanent() {
                            self.failed.send_replace(Some(error));
                        }
                    }
                }
                sleep(LATER).await;
            };
        }
    }

    /// Takes this node out, so that nobody waits for it.
    pub(super) async fn leave(&self, patience: Duration) {
        if let Some(lease) = self.alive() {
            lease.release();
            let mut changes = self.current.subscribe();
            let _ = timeout(patience, changes.wait_for(Option::is_none)).await;
        }
    }

    /// Returns those of these nodes that are gone, as long as this one is not.
    pub(super) async fn gone(&self, nodes: Vec<String>) -> Result<Vec<String>, Failure> {
        let Some(lease) = self.alive() else {
            return Err(Failure::unavailable("this node does not count as alive"));
        };
        let mut gone = Vec::new();
        for node in nodes {
            if !lease.is_alive(&node).await? {
                gone.push(node);
            }
        }
        Ok(gone)
    }
}
