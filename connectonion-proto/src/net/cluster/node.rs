//! [`Node`]: one life of a host as a part of a cluster: its lease, its claims, and what it passes on.

use std::sync::Arc;
use std::time::Duration;

use rpc_core::Str;
use rpc_core::cluster::{Claims, Membership, NodeLease, Renewal};
use rpc_core::store::{AskError, Messages, Store, StoreError, token};

use super::ClusterOptions;
use super::forward::Forwards;
use super::peers::{Question, Replied};

/// How long a node may take for an answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// A host as a node of its cluster.
pub(in crate::net) type Member = Membership<Node>;

/// One life of a host in a cluster. After its lease is lost, the host comes back as another node.
pub(in crate::net) struct Node {
    pub(in crate::net) lease: NodeLease,
    /// The owners of sessions.
    pub(in crate::net) claims: Claims,
    pub(super) forwards: Arc<Forwards>,
    store: Arc<dyn Store>,
}

impl Node {
    /// Creates a node, which hears other hosts from now on. It is alive while its renewal runs.
    pub(super) async fn open(
        store: &Arc<dyn Store>,
        options: &ClusterOptions,
    ) -> Result<(Arc<Self>, Renewal, Messages), StoreError> {
        let (lease, renewal) = NodeLease::open(store, options.lease).await?;
        let claims = Claims::open(store, super::OWNERS, &lease).await?;
        let messages = store.subscribe(&subject(lease.node())).await?;
        let node = Self {
            lease,
            claims,
            forwards: Arc::new(Forwards::new()),
            store: Arc::clone(store),
        };
        Ok((Arc::new(node), renewal, messages))
    }

    pub(super) fn id(&self) -> &Str {
        self.lease.node()
    }

    /// Asks another node.
    pub(super) async fn ask(&self, node: &str, question: &Question) -> Result<Replied, AskError> {
        let question = serde_json::to_vec(question).unwrap_or_default();
        let subject = subject(node);
        let asked = self.store.ask(&subject, question.into(), TIMEOUT);
        let answer = serde_json::from_slice(&asked.await?);
        answer.map_err(|error| AskError::Store(StoreError::unavailable(error)))
    }

    /// Returns whether the store says that this node owns a session.
    pub(in crate::net) async fn owns(&self, session_id: &str) -> bool {
        let holder = self.claims.holder(session_id).await;
        holder.is_ok_and(|holder| holder.as_ref() == Some(self.id()))
    }
}

/// The subject of questions to a node.
fn subject(node: &str) -> String {
    format!("onion.{}.ask", token(node))
}

impl AsRef<NodeLease> for Node {
    fn as_ref(&self) -> &NodeLease {
        &self.lease
    }
}

rpc_core::debug_fields!([] Node, this => { id: this.id() });
