//! [`Claims`]: which node owns which name, on a bucket.

use std::collections::HashSet;
use std::sync::Arc;

use super::claim::{Claim, ClaimEvent};
use super::key::Operation;
use super::node_lease::{node_in, perform, read, reply_of};
use super::{ClaimConfig, NodeLease};
use crate::Str;
use crate::net::time;
use crate::store::{
    Bucket, BucketConfig, NameTooLong, Store, StoreError, name_of, token, try_token,
};

/// The owners of names, in a bucket of their own. Cheap to clone.
///
/// A name belongs to one node as long as that node's [`NodeLease`] is valid, and its owner writes behind a
/// [`Fence`](super::Fence). A node that is alive keeps all its names without a message; one whose node is gone
/// is taken over by its revision, so that one of several nodes wins.
#[derive(Clone)]
pub struct Claims {
    shared: Arc<Shared>,
}

struct Shared {
    names: Bucket,
    lease: NodeLease,
    config: ClaimConfig,
}

/// The outcome of [`Claims::claim`].
///
/// Exhaustive on purpose: a name is owned here or elsewhere.
#[derive(Debug)]
pub enum Claimed {
    /// This node owns the name.
    Owned(Ownership),
    /// Another node owns it, and is alive.
    Held {
        /// The id of that node.
        node: Str,
    },
}

/// Why a name is not claimed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ClaimError {
    /// This node's lease is not valid: it owns nothing. Retrying helps only with a new node id.
    #[error("this node does not count as alive")]
    NotAlive,
    /// The store did not answer in time. The name may be this node's: claim it again to know.
    #[error("the store did not say in time who owns the name")]
    Unavailable,
    /// The name is too long. Retrying never helps.
    #[error(transparent)]
    Name(#[from] NameTooLong),
}

impl Claims {
    /// Opens the bucket with this name in which nodes say what they own, for the node with this lease.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn open(
        store: &Arc<dyn Store>,
        bucket: &str,
        lease: &NodeLease,
        config: ClaimConfig,
    ) -> Result<Self, StoreError> {
        let shared = Shared {
            names: Bucket::open(store, bucket, BucketConfig::default()).await?,
            lease: lease.clone(),
            config,
        };
        Ok(Self {
            shared: Arc::new(shared),
        })
    }

    /// Claims a name for this node, or finds who owns it. Do not claim one name twice at a time: the later
    /// claim makes the earlier ownership invalid.
    ///
    /// # Errors
    /// [`ClaimError`].
    ///
    /// # Cancel safety
    /// If the future is dropped, the name may be this node's: claim it again to know.
    pub async fn claim(&self, name: &str) -> Result<Claimed, ClaimError> {
        let key = try_token(name)?;
        if !self.shared.lease.is_valid() {
            return Err(ClaimError::NotAlive);
        }
        let mut claim = Claim::new(
            self.shared.lease.node().clone(),
            self.shared.config,
            time::now(),
        );
        match self.run(&mut claim, &key).await {
            ClaimEvent::Owned { fence, taken_from } if self.shared.lease.is_valid() => {
                Ok(Claimed::Owned(Ownership {
                    claims: self.clone(),
                    key,
                    claim: Box::new(claim),
                    fence,
                    taken_from,
                }))
            }
            ClaimEvent::Owned { .. } => Err(ClaimError::NotAlive),
            ClaimEvent::Held { node } => Ok(Claimed::Held { node }),
            ClaimEvent::Unavailable | ClaimEvent::Released => Err(ClaimError::Unavailable),
        }
    }

    /// Returns the node that owns a name and counts as alive, this one included; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe. A name that is too long has no owner.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn holder(&self, name: &str) -> Result<Option<Str>, StoreError> {
        let Ok(key) = try_token(name) else {
            return Ok(None);
        };
        let Some((node, _)) = read(&self.shared.names, &key).await? else {
            return Ok(None);
        };
        let alive = if node == *self.shared.lease.node() {
            self.shared.lease.is_valid()
        } else {
            self.shared.lease.is_alive(&node).await?
        };
        Ok(Some(node).filter(|_| alive))
    }

    /// Returns the names whose owners do not count as alive, in no particular order.
    /// [Claim](Self::claim) one to take it over: other nodes may do the same.
    ///
    /// It reads all names: ask when a node is gone, not all the time.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn orphans(&self) -> Result<Vec<String>, StoreError> {
        // Names first: who owns one of them and is alive is among the nodes that are read then.
        let names = self.shared.names.entries("*").await?;
        let nodes = self.shared.lease.nodes().await?;
        let alive: HashSet<Str> = nodes.into_iter().collect();
        let orphans = names.iter().filter(|name| !alive.contains(&node_in(name)));
        Ok(orphans.filter_map(|name| name_of(&name.key)).collect())
    }

    /// Runs a claim until it says something.
    async fn run(&self, claim: &mut Claim, key: &str) -> ClaimEvent {
        let mut told = None;
        loop {
            if let Some(event) = claim.poll_event() {
                return event;
            }
            let timeout = claim.poll_timeout().unwrap_or_else(time::now);
            let Some(request) = claim.poll_request() else {
                time::sleep_until(timeout).await;
                claim.handle_timeout(time::now());
                continue;
            };
            let node = self.shared.lease.node();
            let doing = async {
                match &request.operation {
                    Operation::ReadNode { node: other } => {
                        let key = token(other);
                        perform(self.shared.lease.bucket(), &key, node, Operation::Read).await
                    }
                    operation => perform(&self.shared.names, key, node, operation.clone()).await,
                }
            };
            let left = timeout.saturating_duration_since(time::now());
            match time::timeout(left, doing).await {
                Ok(done) => {
                    claim.handle_reply(request.number, reply_of(done, &mut told), time::now());
                }
                Err(_) => claim.handle_timeout(time::now()),
            }
        }
    }
}

crate::debug::debug_fields!([] Claims, this => { names: this.shared.names });

/// A name that this node owns while its lease is valid. Dropping it changes nothing: the name stays this
/// node's.
#[derive(Debug)]
pub struct Ownership {
    claims: Claims,
    key: String,
    claim: Box<Claim>,
    fence: u64,
    taken_from: Option<Str>,
}

impl Ownership {
    /// Returns the number of this ownership, for a [`Fence`](super::Fence). Later owners have greater
    /// ones.
    #[must_use]
    pub const fn fence(&self) -> u64 {
        self.fence
    }

    /// Returns the owner before this one, if that one died and it is known.
    #[must_use]
    pub const fn taken_from(&self) -> Option<&Str> {
        self.taken_from.as_ref()
    }

    /// Returns whether the node's lease is valid. Whether another one has taken over anyway, only the store
    /// knows: see [`Fence`](super::Fence).
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.claims.shared.lease.is_valid()
    }

    /// Gives the name back. Stop writing for it first. If the store does not answer, it stays this node's.
    ///
    /// # Cancel safety
    /// If the future is dropped, the name may be given back or not.
    pub async fn release(mut self) {
        self.claim.release(time::now());
        self.claims.run(&mut self.claim, &self.key).await;
    }
}
