//! [`Node`]: one life of a host as a part of a cluster: its lease, its claims and its relays.

use std::sync::Arc;

use rpc_core::Str;
use rpc_core::cluster::{ClaimConfig, LeaseConfig};
use rpc_core::net::nats::{Claims, Nats, NatsError, NodeLease, Renewal};
use tokio::sync::watch;

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
        nats: &Nats,
        lease: LeaseConfig,
        relays: Relays,
    ) -> Result<(Self, Renewal), NatsError> {
        let (lease, renewal) = nats.lease(lease).await?;
        let claims = nats
            .claims(super::OWNERS, &lease, ClaimConfig::default())
            .await?;
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
