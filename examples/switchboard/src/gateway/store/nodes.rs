//! [`Nodes`]: this gateway as a node of its cluster, one life after the other, and which nodes are alive.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rpc_core::Str;
use rpc_core::cluster::{LeaseConfig, LeaseLost, Membership, NodeLease, Renewal};
use rpc_core::net::entropy;
use rpc_core::store::{Store, StoreError as Failure};
use tokio::time::timeout;

use super::StoreError;
use super::attempts::unavailable;

/// This gateway in its cluster, or alone. Cheap to clone.
///
/// A gateway that loses its lease comes back as another node. Its turns that run on stay in their queues as
/// those of the node that is gone: the first one that waits for such a turn ends it, and its write is refused.
#[derive(Clone, Debug)]
pub(super) struct Nodes {
    /// The id of this process.
    process: Str,
    /// `None` if this gateway is alone.
    pub(super) member: Option<Membership>,
    numbers: Arc<AtomicU64>,
}

impl Nodes {
    pub(super) fn new(member: Option<Membership>) -> Self {
        Self {
            process: format!("{:016x}", entropy()).into(),
            member,
            numbers: Arc::default(),
        }
    }

    /// Returns whether no other gateway uses the store.
    pub(super) const fn is_alone(&self) -> bool {
        self.member.is_none()
    }

    /// Returns a number that this process has not used.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns an id that no process has used.
    pub(super) fn id(&self) -> String {
        format!("{}-{:x}", self.process, self.number())
    }

    /// Waits until this gateway is a node, but not for ever. Returns its lease; `None` if it is alone.
    pub(super) async fn joined(
        &self,
        patience: Duration,
    ) -> Result<Option<Arc<NodeLease>>, StoreError> {
        let Some(member) = &self.member else {
            return Ok(None);
        };
        let joined = timeout(patience, member.joined()).await;
        joined.map(Some).map_err(|_| unavailable(patience))
    }

    /// Returns whether turns can begin.
    pub(super) fn is_joined(&self) -> bool {
        let member = self.member.as_ref();
        member.is_none_or(|member| member.current().is_some())
    }

    /// Waits until this gateway cannot come back by itself.
    pub(super) async fn failed(&self) -> Failure {
        match &self.member {
            Some(member) => member.failed().await,
            None => std::future::pending().await,
        }
    }

    /// Takes this node out, so that no other waits for it.
    pub(super) async fn leave(&self, patience: Duration) {
        if let Some(member) = &self.member
            && let Some(lease) = member.current()
        {
            lease.release();
            let _ = timeout(patience, member.left()).await;
        }
    }

    /// Returns those of these nodes that are gone, as long as this one is not.
    pub(super) async fn gone(&self, mut nodes: Vec<String>) -> Result<Vec<String>, Failure> {
        let Some(member) = &self.member else {
            // There are no others.
            return Ok(nodes);
        };
        let Some(lease) = member.current() else {
            return Err(Failure::unavailable("this node does not count as alive"));
        };
        let mut gone = Vec::new();
        for node in nodes.drain(..) {
            if !lease.is_alive(&node).await? {
                gone.push(node);
            }
        }
        Ok(gone)
    }
}

/// Lives this life and, after the loss of its lease, further ones.
pub(super) async fn keep_alive(
    member: Membership,
    store: Arc<dyn Store>,
    config: LeaseConfig,
    (mut lease, mut renewal): (NodeLease, Renewal),
) {
    loop {
        let work = std::future::pending();
        let why = member.live(Arc::new(lease), renewal, work).await;
        if why == LeaseLost::Released {
            return;
        }
        tracing::warn!(%why, "the other nodes may count this one as gone; it comes back as a new one");
        let open = || NodeLease::open(&store, config);
        (lease, renewal) = member.open(open).await;
    }
}
