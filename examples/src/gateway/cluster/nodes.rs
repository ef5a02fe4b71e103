//! [`Nodes`]: which nodes are alive. Each keeps a key of its own from expiring.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rpc_core::cluster::token;
use rpc_core::net::nats::{Bucket, BucketConfig, Nats, NatsError};
use tokio::time::sleep;

/// After how long without a sign of life a node counts as gone.
pub(super) const LEASE: Duration = Duration::from_secs(10);

/// The nodes of a cluster, seen from one of them.
///
/// A node that counted as gone may go on under its name: what it writes names the revision that it
/// replaces, so a turn that was given to another node stays with that one.
#[derive(Clone)]
pub(super) struct Nodes {
    bucket: Bucket,
    own: String,
    numbers: Arc<AtomicU64>,
}

impl fmt::Debug for Nodes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Nodes").field(&self.own).finish()
    }
}

impl Nodes {
    /// Enters this node.
    pub(super) async fn open(nats: &Nats, lease: Duration) -> Result<Self, NatsError> {
        let config = BucketConfig::default().with_max_age(lease);
        let nodes = Self {
            bucket: nats.bucket("gateway_nodes", config).await?,
            own: nats.node().to_string(),
            numbers: Arc::default(),
        };
        nodes.renew().await?;
        Ok(nodes)
    }

    /// Returns the name of this node.
    pub(super) fn own(&self) -> &str {
        &self.own
    }

    /// Returns a number that this node has not used.
    pub(super) fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns an id that no node has used.
    pub(super) fn id(&self) -> String {
        format!("{}-{:x}", self.own, self.number())
    }

    async fn renew(&self) -> Result<(), NatsError> {
        let renewed = self.bucket.put(&token(&self.own), Bytes::new()).await;
        renewed.map(drop)
    }

    /// Keeps this node alive.
    pub(super) async fn keep_alive(self, lease: Duration) -> Infallible {
        loop {
            sleep(lease / 3).await;
            while let Err(error) = self.renew().await {
                tracing::warn!(%error, "the other nodes may count this one as gone");
                sleep(lease / 12).await;
            }
        }
    }

    /// Takes this node out, so that nobody waits for it.
    pub(super) async fn leave(&self) {
        let _ = self.bucket.delete(&token(&self.own), None).await;
    }

    /// Returns those of these nodes that are gone.
    pub(super) async fn gone(&self, nodes: Vec<String>) -> Result<Vec<String>, NatsError> {
        let mut gone = Vec::new();
        for node in nodes {
            if self.bucket.get(&token(&node)).await?.is_none() {
                gone.push(node);
            }
        }
        Ok(gone)
    }
}
