//! [`Nodes`]: this gateway as a node of the cluster, one life after the other, and which nodes are alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rpc_core::Str;
use rpc_core::cluster::{LeaseConfig, LeaseLost, Membership, NodeLease, Renewal};
use rpc_core::net::entropy;
use rpc_core::store::{Store, StoreError as Failure};
use tokio::time::timeout;

use super::unavailable;
use crate::gateway::store::StoreError;

/// This gateway in its cluster. Cheap to clone.
///
/// A gateway that loses its lease comes back as another node. Its turns that run on stay in their queues as
/// those of the node that is gone: the first one that waits for such a turn ends it, and its write is refused.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    /// The id of this process.
    process: Str,
    pub(super) member: Membership,
    numbers: Arc<AtomicU64>,
}

impl Nodes {
    pub(super) fn new() -> Self {
        Self {
            process: format!("{:016x}", entropy()).into(),
            member: Membership::new(),
            numbers: Arc::default(),
        }
    }

    /// Returns the id of this process, which no other process has.
    pub(super) fn process(&self) -> &str {
        &self.process
    }

    /// Returns a number that this process has not used.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns an id that no process has used.
    pub(super) fn id(&self) -> String {
        format!("{}-{:x}", self.process, self.number())
    }

    /// Waits until this gateway is a node, but not for ever.
    pub(super) async fn joined(&self, patience: Duration) -> Result<Arc<NodeLease>, StoreError> {
        let joined = timeout(patience, self.member.joined()).await;
        joined.map_err(|_| unavailable(patience))
    }

    /// Lives this life and, after the loss of its lease, further ones.
    pub(super) async fn keep_alive(
        self,
        store: Arc<dyn Store>,
        config: LeaseConfig,
        (mut lease, mut renewal): (NodeLease, Renewal),
    ) {
        loop {
            let work = std::future::pending();
            let why = self.member.live(Arc::new(lease), renewal, work).await;
            if why == LeaseLost::Released {
                return;
            }
            tracing::warn!(%why, "the other nodes may count this one as gone; it comes back as a new one");
            let open = || NodeLease::open(&store, config);
            (lease, renewal) = self.member.open(open).await;
        }
    }

    /// Takes this node out, so that no other waits for it.
    pub(super) async fn leave(&self, patience: Duration) {
        if let Some(lease) = self.member.current() {
            lease.release();
            let _ = timeout(patience, self.member.left()).await;
        }
    }

    /// Returns those of these nodes that are gone, as long as this one is not.
    pub(super) async fn gone(&self, nodes: Vec<String>) -> Result<Vec<String>, Failure> {
        let Some(lease) = self.member.current() else {
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
