//! [`Node`]: one life of a host as a part of a cluster: its lease, its claims and its relays.

use std::sync::Arc;

use rpc_core::Str;
use rpc_core::cluster::{ClaimConfig, Claims, NodeLease, Renewal, Store, StoreError};
use tokio::sync::watch;

use super::ClusterOptions;
use super::relays::Relays;

/// One life of a host in a cluster. After its lease is lost, the host comes back as another node.
pub(super) struct Node {
    pub(super) lease: NodeLease,
    /// The owners of sessions.
    pub(super) claims: Claims,
    pub(super) relays: Arc<Relays>,
}

/// The current life of a host; `None` between two.
#[derive(Clone, Debug)]
pub(super) struct Current(Arc<watch::Sender<Option<Arc<Node>>>>);

impl Node {
    /// Creates a node. It is alive while its renewal runs.
    pub(super) async fn open(
        store: &Arc<dyn Store>,
        options: &ClusterOptions,
    ) -> Result<(Self, Renewal), StoreError> {
        let (lease, renewal) = NodeLease::open(store, options.lease).await?;
        let claims = Claims::open(store, super::OWNERS, &lease, ClaimConfig::default()).await?;
        let relays = Relays::new(Arc::clone(store), lease.node().clone(), options);
        let node = Self {
            lease,
            claims,
            relays: Arc::new(relays),
        };
        Ok((node, renewal))
    }

    pub(super) fn id(&self) -> &Str {
        self.lease.node()
    }

    /// Returns whether this node may serve and write at the moment.
    pub(super) fn is_valid(&self) -> bool {
        self.lease.is_valid()
    }

    /// Returns whether the store says that this node owns a session.
    pub(super) async fn owns(&self, session_id: &str) -> bool {
        let holder = self.claims.holder(session_id).await;
        holder.is_ok_and(|holder| holder.as_ref() == Some(self.id()))
    }
}

impl Default for Current {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(None)))
    }
}

impl Current {
    /// Returns the current node, if its lease is valid.
    pub(super) fn get(&self) -> Option<Arc<Node>> {
        self.0.borrow().clone().filter(|node| node.is_valid())
    }

    pub(super) fn set(&self, node: Option<Arc<Node>>) {
        self.0.send_replace(node);
    }

    /// Waits for a node whose lease is valid.
    pub(super) async fn joined(&self) -> Arc<Node> {
        let mut changes = self.0.subscribe();
        loop {
            if let Some(node) = self.get() {
                return node;
            }
            // The sender is here.
            let _ = changes.changed().await;
        }
    }

    /// Waits until there is no node.
    pub(super) async fn left(&self) {
        let mut changes = self.0.subscribe();
        // The sender is here.
        let _ = changes.wait_for(Option::is_none).await;
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Node").field(self.id()).finish()
    }
}
