//! [`Claims`]: which node owns which name, on a bucket.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_core::stream::BoxStream;
use futures_util::StreamExt as _;

use super::NodeLease;
use super::node_lease::{log_once, named, node_in, read};
use crate::Str;
use crate::store::{
    Bucket, BucketConfig, Change, NameTooLong, Store, StoreError, name_of, try_token,
};
use crate::timers::later;

/// How long to wait for an answer of the store before asking again.
const ANSWER: Duration = Duration::from_secs(2);
/// How long to wait before asking again after an error.
const PAUSE: Duration = Duration::from_millis(200);
/// After how long a claim fails.
const DEADLINE: Duration = Duration::from_secs(10);

/// The owners of names, in a bucket of their own. Cheap to clone.
///
/// A name belongs to one node as long as that node's [`NodeLease`] is valid, and each write of its owner names
/// the record before it, so that the log refuses those of a past one. A node that is alive keeps all its names without a message; one whose node is gone
/// is taken over by its revision, so that one of several nodes wins.
#[derive(Clone)]
pub struct Claims {
    names: Bucket,
    lease: NodeLease,
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
    ) -> Result<Self, StoreError> {
        Ok(Self {
            names: Bucket::open(store, bucket, BucketConfig::default()).await?,
            lease: lease.clone(),
        })
    }

    /// Claims a name for this node, or finds who owns it. Do not claim one name twice at a time: the later
    /// claim makes the earlier ownership invalid.
    ///
    /// # Errors
    /// [`ClaimError`], whose variants say whether to try again: after [`Unavailable`](ClaimError::Unavailable) it is
    /// safe and tells whose the name is.
    ///
    /// # Cancel safety
    /// If the future is dropped, the name may be this node's: claim it again to know.
    pub async fn claim(&self, name: &str) -> Result<Claimed, ClaimError> {
        let key = try_token(name)?;
        if !self.lease.is_valid() {
            return Err(ClaimError::NotAlive);
        }
        let claimed = self.lease.within(DEADLINE, self.until_known(key)).await;
        let claimed = claimed.map_err(|_| ClaimError::Unavailable)?;
        match claimed {
            Claimed::Owned(_) if !self.lease.is_valid() => Err(ClaimError::NotAlive),
            claimed => Ok(claimed),
        }
    }

    async fn until_known(&self, key: String) -> Result<Claimed, StoreError> {
        let (mut taken_from, mut logged) = (None, None);
        loop {
            match self.attempt(&key, &mut taken_from).await {
                Ok(Err(node)) => return Ok(Claimed::Held { node }),
                Ok(Ok(fence)) => {
                    return Ok(Claimed::Owned(Ownership {
                        claims: self.clone(),
                        key,
                        fence,
                        taken_from,
                    }));
                }
                // Someone was faster: see who.
                Err(StoreError::Conflict) => {}
                Err(error) => {
                    log_once(error, &mut logged);
                    self.pause().await;
                }
            }
        }
    }

    /// Returns the number of this node's ownership, or the owner.
    async fn attempt(
        &self,
        key: &str,
        taken_from: &mut Option<Str>,
    ) -> Result<Result<u64, Str>, StoreError> {
        let (lease, own) = (&self.lease, named(self.lease.node()));
        let Some((node, revision)) = lease.within(ANSWER, read(&self.names, key)).await? else {
            *taken_from = None;
            let creating = self.names.create(key, own);
            return lease.within(ANSWER, creating).await.map(Ok);
        };
        if node != *lease.node() {
            if lease.within(ANSWER, lease.is_alive(&node)).await? {
                return Ok(Err(node));
            }
            *taken_from = Some(node);
        }
        let updating = self.names.update(key, own, revision);
        lease.within(ANSWER, updating).await.map(Ok)
    }

    async fn pause(&self) {
        let clock = self.lease.clock();
        clock.sleep_until(later(clock.now(), PAUSE)).await;
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
        let Some((node, _)) = read(&self.names, &key).await? else {
            return Ok(None);
        };
        let alive = if node == *self.lease.node() {
            self.lease.is_valid()
        } else {
            self.lease.is_alive(&node).await?
        };
        Ok(Some(node).filter(|_| alive))
    }

    /// Gives back a name that is still this node's in the store, if `is_unused`: one whose claim was dropped, or whose
    /// [release](Ownership::release) the store did not answer. One that is claimed meanwhile stays. Returns whether it
    /// is unused.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// If the future is dropped, the name may be given back or not.
    pub async fn release_if(
        &self,
        name: &str,
        is_unused: impl FnOnce() -> bool,
    ) -> Result<bool, StoreError> {
        let Ok(key) = try_token(name) else {
            return Ok(is_unused());
        };
        // Before the question: what is claimed after it has another revision.
        let known = read(&self.names, &key).await?;
        let is_unused = is_unused();
        let own = known.filter(|(node, _)| is_unused && node == self.lease.node());
        if let Some((_, revision)) = own
            && let Err(error) = self.names.remove(&key, revision).await
            && error != StoreError::Conflict
        {
            return Err(error);
        }
        Ok(is_unused)
    }

    /// Watches which names are claimed: all that are, and then each that is, claimed again or taken over. Names
    /// that are given back are not reported. It ends with an error where something may be missing: watch again.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn watch(
        &self,
    ) -> Result<BoxStream<'static, Result<String, StoreError>>, StoreError> {
        let changes = self.names.watch("*").await?;
        let names = changes.filter_map(async |change| match change {
            Ok(Change::Put(entry)) => name_of(&entry.key).map(Ok),
            Ok(Change::Deleted { .. } | Change::Current) => None,
            Err(error) => Some(Err(error)),
        });
        Ok(names.boxed())
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
        let names = self.names.entries("*").await?;
        let nodes = self.lease.nodes().await?;
        let alive: HashSet<Str> = nodes.into_iter().collect();
        let orphans = names.iter().filter(|name| !alive.contains(&node_in(name)));
        Ok(orphans.filter_map(|name| name_of(&name.key)).collect())
    }
}

crate::debug::debug_fields!([] Claims, this => { names: this.names });

/// A name that this node owns while its lease is valid. Dropping it changes nothing: the name stays this
/// node's.
#[derive(Debug)]
pub struct Ownership {
    claims: Claims,
    key: String,
    fence: u64,
    taken_from: Option<Str>,
}

impl Ownership {
    /// Returns the number of this ownership. Later owners have greater ones.
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
    /// knows.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.claims.lease.is_valid()
    }

    /// Gives the name back. Stop writing for it first. If the store does not answer, it stays this node's.
    ///
    /// # Cancel safety
    /// If the future is dropped, the name may be given back or not.
    pub async fn release(self) {
        let Claims { names, lease } = &self.claims;
        let releasing = async {
            loop {
                let removing = names.remove(&self.key, self.fence);
                match lease.within(ANSWER, removing).await {
                    Err(error) if error.is_retryable() => self.claims.pause().await,
                    done => return done,
                }
            }
        };
        // Then it stays this node's.
        let _ = lease.within(DEADLINE, releasing).await;
    }
}
