//! [`NodeLease`]: this node's lease, kept on a bucket.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::key::{Operation, Reply};
use super::lease::{Lease, LeaseEvent};
use super::{LeaseConfig, LeaseLost};
use crate::Str;
use crate::net::{entropy, time};
use crate::store::{Bucket, BucketConfig, Entry, Store, StoreError, name_of, token};
use crate::sync::Mutex;

/// The bucket with a key for each node that is alive.
const NODES: &str = "nodes";

/// What a key of a node or of a name says.
#[derive(Serialize, Deserialize)]
struct Named {
    node: Str,
}

/// Whether this node counts as alive in its cluster. Cheap to clone; all clones are the same lease.
///
/// [`open`](Self::open) starts it, with a [`Renewal`] that you spawn. A node that loses its lease ends its
/// work, and comes back with a new lease, whose id is new.
///
/// The node's key is in a bucket whose entries expire after [`LeaseConfig::lease`]. Only this node writes
/// it, and only over its own last revision: a key that has expired does not come back. The lease is valid
/// until [`lease`](LeaseConfig::lease) less [`margin`](LeaseConfig::margin) after the *sending* of the last
/// renewal that succeeded, so that it ends here before it ends in the store.
#[derive(Clone)]
pub struct NodeLease {
    shared: Arc<Shared>,
    changed: watch::Receiver<()>,
}

struct Shared {
    lease: Mutex<Lease>,
    nodes: Bucket,
    node: Str,
    /// Wakes the renewal.
    released: tokio::sync::Notify,
    /// Why the store denies this node its key.
    denied: watch::Sender<Option<StoreError>>,
}

impl NodeLease {
    /// Starts to keep the lease of a node with a new id, 16 hex digits; spawn [`Renewal::run`]. All nodes of
    /// a cluster have the same `config`: the first one decides when keys expire.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn open(
        store: &Arc<dyn Store>,
        config: LeaseConfig,
    ) -> Result<(Self, Renewal), StoreError> {
        // Who joins may find the store without its data.
        store.ensure().await?;
        let age = BucketConfig {
            max_age: Some(config.lease),
            ..BucketConfig::default()
        };
        let nodes = Bucket::open(store, NODES, age).await?;
        let node = Str::from(format!("{:016x}", entropy()));
        let shared = Arc::new(Shared {
            nodes,
            lease: Mutex::new(Lease::new(node.clone(), config, time::now())),
            node,
            released: tokio::sync::Notify::new(),
            denied: watch::Sender::new(None),
        });
        let (changes, changed) = watch::channel(());
        let lease = Self {
            shared: Arc::clone(&shared),
            changed,
        };
        Ok((lease, Renewal { shared, changes }))
    }

    /// Returns the node's id.
    #[must_use]
    pub fn node(&self) -> &Str {
        &self.shared.node
    }

    /// Returns whether the node counts as alive now. Look again after every await, right before what needs
    /// it.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.shared.lease.lock().is_valid(time::now())
    }

    /// Waits until the node counts as alive.
    ///
    /// # Errors
    /// [`LeaseLost`]: it does no longer.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn acquired(&self) -> Result<(), LeaseLost> {
        let mut changed = self.changed.clone();
        loop {
            changed.mark_unchanged();
            if self.is_valid() {
                return Ok(());
            }
            if let Some(lost) = self.shared.lease.lock().lost() {
                return Err(lost);
            }
            if changed.changed().await.is_err() {
                return Err(self.lost().await);
            }
        }
    }

    /// Waits until the node no longer counts as alive. Returns in time even if the [`Renewal`] does not run.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn lost(&self) -> LeaseLost {
        let mut changed = self.changed.clone();
        let mut kept = true;
        loop {
            changed.mark_unchanged();
            let until = {
                let mut lease = self.shared.lease.lock();
                if lease
                    .valid_until()
                    .is_some_and(|until| until <= time::now())
                {
                    lease.handle_timeout(time::now());
                }
                if let Some(lost) = lease.lost() {
                    return lost;
                }
                lease.valid_until()
            };
            match until {
                Some(until) => {
                    tokio::select! {
                        () = time::sleep_until(until) => {}
                        alive = changed.changed(), if kept => kept = alive.is_ok(),
                    }
                }
                None if kept => kept = changed.changed().await.is_ok(),
                // It was never acquired, and will not be.
                None => return LeaseLost::Expired,
            }
        }
    }

    /// Waits until the store denies this node its key, for lack of permission: without a change of the
    /// permissions it will not count as alive again. Waits for ever if that does not happen.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn denied(&self) -> StoreError {
        let mut denied = self.shared.denied.subscribe();
        loop {
            if let Some(error) = &*denied.borrow_and_update() {
                return error.clone();
            }
            // The sender is here.
            let _ = denied.changed().await;
        }
    }

    /// Gives the lease back: it is invalid at once, and other nodes need not wait for its end. The
    /// [`Renewal`] returns when the key is removed.
    pub fn release(&self) {
        self.shared.lease.lock().release(time::now());
        self.shared.released.notify_one();
    }

    /// Returns whether another node counts as alive. `true` may be late by the lease.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn is_alive(&self, node: &str) -> Result<bool, StoreError> {
        Ok(self.shared.nodes.get(&token(node)).await?.is_some())
    }

    /// Returns the ids of all nodes that count as alive, in no particular order.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn nodes(&self) -> Result<Vec<Str>, StoreError> {
        let keys = self.shared.nodes.keys("*").await?;
        let nodes = keys.iter().filter_map(|key| name_of(key));
        Ok(nodes.map(Str::from).collect())
    }

    pub(super) fn bucket(&self) -> &Bucket {
        &self.shared.nodes
    }
}

impl AsRef<Self> for NodeLease {
    fn as_ref(&self) -> &Self {
        self
    }
}

crate::debug::debug_fields!([] NodeLease, this => { node: this.shared.node });

/// Keeps a [`NodeLease`] until it is lost: [`run`](Self::run) it in a task.
#[must_use = "without `run` the lease is never acquired"]
pub struct Renewal {
    shared: Arc<Shared>,
    changes: watch::Sender<()>,
}

impl Renewal {
    /// Acquires the lease and renews it, until it is lost. Returns why.
    ///
    /// # Cancel safety
    /// If the future is dropped, the lease ends when its time is over.
    pub async fn run(self) -> LeaseLost {
        let shared = &*self.shared;
        let key = token(&shared.node);
        // The one that is in flight, and its number.
        let mut asking: Option<(u64, BoxFuture<'_, Result<Reply, StoreError>>)> = None;
        let mut told = None;
        loop {
            let (timeout, lost) = {
                let mut lease = shared.lease.lock();
                while let Some(request) = lease.poll_request() {
                    let doing = perform(&shared.nodes, &key, &shared.node, request.operation);
                    asking = Some((request.number, Box::pin(doing)));
                }
                while let Some(event) = lease.poll_event() {
                    if let LeaseEvent::Lost(why) = event {
                        tracing::warn!(node = %shared.node, %why, "the node's lease is over");
                    }
                    self.changes.send_replace(());
                }
                (lease.poll_timeout(), lease.lost())
            };
            let Some(timeout) = timeout else {
                if let Some((_, removal)) = asking.filter(|_| lost == Some(LeaseLost::Released)) {
                    let _ = removal.await;
                }
                return lost.unwrap_or(LeaseLost::Expired);
            };
            let answer = async {
                match &mut asking {
                    Some((number, reply)) => (*number, reply.await),
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                (number, reply) = answer => {
                    asking = None;
                    if let Err(error @ StoreError::Denied { .. }) = &reply {
                        shared.denied.send_replace(Some(error.clone()));
                    }
                    let reply = reply_of(reply, &mut told);
                    shared.lease.lock().handle_reply(number, reply, time::now());
                }
                () = time::sleep_until(timeout) => shared.lease.lock().handle_timeout(time::now()),
                () = shared.released.notified() => {}
            }
        }
    }
}

crate::debug::debug_fields!([] Renewal, this => { node: this.shared.node });

/// Does what a lease or a claim asks for, with a key of this bucket.
///
/// # Errors
/// What the store refuses.
pub(super) async fn perform(
    bucket: &Bucket,
    key: &str,
    node: &Str,
    operation: Operation,
) -> Result<Reply, StoreError> {
    let value = || {
        serde_json::to_vec(&Named { node: node.clone() })
            .map(Bytes::from)
            .unwrap_or_default()
    };
    let written = match operation {
        Operation::Read | Operation::ReadNode { .. } => {
            return match read(bucket, key).await {
                Ok(Some((node, revision))) => Ok(Reply::Found { node, revision }),
                Ok(None) => Ok(Reply::Missing),
                Err(error @ StoreError::Denied { .. }) => Err(error),
                Err(_) => Ok(Reply::Unknown),
            };
        }
        Operation::Create => bucket.create(key, value()).await,
        Operation::Update { revision } => bucket.update(key, value(), revision).await,
        Operation::Delete { revision } => bucket.remove(key, revision).await.map(|()| revision),
    };
    match written {
        Ok(revision) => Ok(Reply::Stored { revision }),
        Err(StoreError::Conflict) => Ok(Reply::Conflict),
        Err(StoreError::Unavailable { .. } | StoreError::Failed { .. }) => Ok(Reply::Unknown),
        Err(error) => Err(error),
    }
}

/// The store's answer to a lease or a claim. A refusal is logged once, and one for lack of permission by the store.
pub(super) fn reply_of(done: Result<Reply, StoreError>, told: &mut Option<StoreError>) -> Reply {
    let error = done.as_ref().err().cloned();
    if let Some(error) = &error
        && !matches!(error, StoreError::Denied { .. })
        && told.as_ref() != Some(error)
    {
        tracing::warn!(%error, "the store refuses a lease or a claim");
    }
    *told = error;
    done.unwrap_or(Reply::Refused)
}

/// The node that a key names, and the key's revision.
pub(super) async fn read(bucket: &Bucket, key: &str) -> Result<Option<(Str, u64)>, StoreError> {
    let entry = bucket.get(key).await?;
    Ok(entry.map(|entry| (node_in(&entry), entry.revision)))
}

/// The node that a value names. Another value names no node that could be alive.
pub(super) fn node_in(entry: &Entry) -> Str {
    let named = serde_json::from_slice(&entry.value);
    named.map_or(Str::EMPTY, |Named { node }| node)
}
