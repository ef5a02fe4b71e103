//! [`Node`]: one life of a host as a part of a cluster: its lease, its claims and its relays.

use std::sync::Arc;

use rpc_core::Str;
use rpc_core::cluster::{Claims, Membership, NodeLease, Renewal};
use rpc_core::store::{Messages, Store, StoreError};

use super::ClusterOptions;
use super::relays::Relays;

/// A host as a node of its cluster.
pub(in crate::net) type Member = Membership<Node>;

/// One life of a host in a cluster. After its lease is lost, the host comes back as another node.
pub(in crate::net) struct Node {
    pub(super) lease: NodeLease,
    /// The owners of sessions.
    pub(in crate::net) claims: Claims,
    pub(super) relays: Arc<Relays>,
}

impl Node {
    /// Creates a node, which hears other hosts from now on. It is alive while its renewal runs.
    pub(super) async fn open(
        store: &Arc<dyn Store>,
        options: &ClusterOptions,
    ) -> Result<(Arc<Self>, Renewal, Messages), StoreError> {
        let (lease, renewal) = NodeLease::open(store, options.lease).await?;
        let claims = Claims::open(store, super::OWNERS, &lease).await?;
        let relays = Relays::new(Arc::clone(store), lease.node().clone(), options);
        let messages = relays.subscribe().await?;
        let node = Self {
            lease,
            claims,
            relays: Arc::new(relays),
        };
        Ok((Arc::new(node), renewal, messages))
    }

    pub(super) fn id(&self) -> &Str {
        self.lease.node()
    }

    /// Returns whether this node may serve and write at the moment.
    pub(in crate::net) fn is_valid(&self) -> bool {
        self.lease.is_valid()
    }

    /// Returns whether the store says that this node owns a session.
    pub(in crate::net) async fn owns(&self, session_id: &str) -> bool {
        let holder = self.claims.holder(session_id).await;
        holder.is_ok_and(|holder| holder.as_ref() == Some(self.id()))
    }
}

impl AsRef<NodeLease> for Node {
    fn as_ref(&self) -> &NodeLease {
        &self.lease
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Node").field(self.id()).finish()
    }
}
