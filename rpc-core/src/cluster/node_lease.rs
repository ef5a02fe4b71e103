//! [`NodeLease`]: this node's lease, kept on a bucket.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use crate::net::{entropy, time};
use crate::store::{Bucket, BucketConfig, Entry, Store, StoreError, name_of, token};
use crate::timers::later;
use crate::{Instant, Str};

/// The bucket with a key for each node that is alive.
const NODES: &str = "nodes";

crate::config! {
    /// How long a node counts as alive, and how it stays so. All nodes of a cluster have the same.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct LeaseConfig {
        /// After how long without renewal the store removes the node's key. Default 10 s. It is renewed
        /// every third of it, so that two renewals may fail.
        pub lease: Duration = Duration::from_secs(10),
        /// How much earlier than the store this node gives up, in case that clocks run at different
        /// speeds. Default 1 s. A lease is never valid if this is not shorter than it.
        pub margin: Duration = Duration::from_secs(1),
        /// How long to wait for the store's answer before asking again, at most a fifth of the lease.
        /// Default 2 s.
        pub answer_timeout: Duration = Duration::from_secs(2),
    }
}

/// Why a [`NodeLease`] has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseLost {
    /// It was not renewed in time: the store was out of reach, or this process was paused.
    #[error("the node's lease was not renewed in time")]
    Expired,
    /// The store no longer has the key, so that other nodes may have taken over.
    #[error("the node's key is gone")]
    Removed,
    /// Another node has the key: node ids must be unique.
    #[error("another node has this node's id")]
    Taken,
    /// This node gave it back.
    #[error("the node has released its lease")]
    Released,
}

/// The clock of a node, of which a simulation gives each node another.
pub trait Clock: fmt::Debug + Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Instant;
    /// Waits until this time.
    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()>;
}

#[derive(Debug)]
struct TokioClock;

impl Clock for TokioClock {
    fn now(&self) -> Instant {
        time::now()
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        Box::pin(time::sleep_until(at))
    }
}

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
}

struct Shared {
    nodes: Bucket,
    node: Str,
    clock: Arc<dyn Clock>,
    state: watch::Sender<State>,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Waiting,
    ValidUntil(Instant),
    Lost(LeaseLost),
}

impl Shared {
    /// Changes the state, unless the lease is lost.
    fn set(&self, new: impl FnOnce(State) -> Option<State>) {
        self.state.send_if_modified(|state| match *state {
            State::Lost(_) => false,
            known => new(known).map(|new| *state = new).is_some(),
        });
    }

    /// Returns the state now.
    fn check(&self) -> State {
        let now = self.clock.now();
        self.set(|state| match state {
            State::ValidUntil(until) if until <= now => Some(State::Lost(LeaseLost::Expired)),
            _ => None,
        });
        *self.state.borrow()
    }
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
        Self::open_by(store, config, Arc::new(TokioClock)).await
    }

    /// The same, by another clock.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    #[doc(hidden)]
    pub async fn open_by(
        store: &Arc<dyn Store>,
        config: LeaseConfig,
        clock: Arc<dyn Clock>,
    ) -> Result<(Self, Renewal), StoreError> {
        // Who joins may find the store without its data.
        store.ensure().await?;
        let age = BucketConfig {
            max_age: Some(config.lease),
            ..BucketConfig::default()
        };
        let shared = Arc::new(Shared {
            nodes: Bucket::open(store, NODES, age).await?,
            node: Str::from(format!("{:016x}", entropy())),
            clock,
            state: watch::Sender::new(State::Waiting),
        });
        let lease = Self { shared };
        let renewal = Renewal {
            lease: lease.clone(),
            config,
        };
        Ok((lease, renewal))
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
        matches!(self.shared.check(), State::ValidUntil(_))
    }

    /// Waits until the node counts as alive.
    ///
    /// # Errors
    /// [`LeaseLost`]: it does no longer.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn acquired(&self) -> Result<(), LeaseLost> {
        let mut state = self.shared.state.subscribe();
        // The sender is here.
        let _ = state.wait_for(|it| !matches!(it, State::Waiting)).await;
        match self.shared.check() {
            State::Lost(lost) => Err(lost),
            State::Waiting | State::ValidUntil(_) => Ok(()),
        }
    }

    /// Waits until the node no longer counts as alive. Returns in time even if the [`Renewal`] does not run.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn lost(&self) -> LeaseLost {
        let mut changes = self.shared.state.subscribe();
        loop {
            let until = match self.shared.check() {
                State::Lost(lost) => return lost,
                State::ValidUntil(until) => Some(until),
                State::Waiting => None,
            };
            let over = async {
                match until {
                    Some(until) => self.shared.clock.sleep_until(until).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over => {}
                // The sender is here.
                _ = changes.changed() => {}
            }
        }
    }

    /// Gives the lease back: it is invalid at once, and other nodes need not wait for its end. The
    /// [`Renewal`] returns when the key is removed.
    pub fn release(&self) {
        self.shared.set(|_| Some(State::Lost(LeaseLost::Released)));
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

    /// Removes the key of a lease that is over.
    pub(super) async fn remove(&self) -> Result<(), StoreError> {
        let Shared { nodes, node, .. } = &*self.shared;
        let key = token(node);
        match read(nodes, &key).await? {
            Some((owner, revision)) if owner == *node => match nodes.remove(&key, revision).await {
                Err(StoreError::Conflict) => Ok(()),
                removed => removed,
            },
            _ => Ok(()),
        }
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.shared.clock
    }

    /// Waits for an answer of the store, for this time.
    pub(super) async fn within<T>(
        &self,
        time: Duration,
        asking: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let clock = self.clock();
        tokio::select! {
            biased;
            answer = asking => answer,
            () = clock.sleep_until(later(clock.now(), time)) => Err(StoreError::unavailable("no answer in time")),
        }
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
    lease: NodeLease,
    config: LeaseConfig,
}

impl Renewal {
    /// Acquires the lease and renews it, until it is lost. Returns why. Calls `denied` when the store denies this
    /// node its key for lack of permission: without a change of the permissions it will not count as alive
    /// again.
    ///
    /// # Cancel safety
    /// If the future is dropped, the lease ends when its time is over.
    pub async fn run(self, denied: impl Fn(StoreError)) -> LeaseLost {
        let node = self.lease.node();
        let key = token(node);
        let lost = tokio::select! {
            biased;
            lost = self.lease.lost() => lost,
            lost = self.renew(&key, denied) => lost,
        };
        self.lease.shared.set(|_| Some(State::Lost(lost)));
        tracing::warn!(%node, why = %lost, "the node's lease is over");
        if lost == LeaseLost::Released {
            let _ = self.lease.remove().await;
        }
        lost
    }

    async fn renew(&self, key: &str, denied: impl Fn(StoreError)) -> LeaseLost {
        let (lease, config) = (&self.lease, &self.config);
        let Shared { nodes, node, .. } = &*lease.shared;
        let patience = config.answer_timeout.min(config.lease / 5);
        // The revision of the key; 0 if there is none.
        let mut known = 0;
        let mut logged = None;
        loop {
            let sent = lease.clock().now();
            let renewing = nodes.update(key, named(node), known);
            let refused = match lease.within(patience, renewing).await {
                Ok(revision) => {
                    known = revision;
                    let valid = config.lease.saturating_sub(config.margin);
                    let until = State::ValidUntil(later(sent, valid));
                    lease.shared.set(|_| Some(until));
                    let next = later(sent, config.lease / 3);
                    lease.clock().sleep_until(next).await;
                    continue;
                }
                // An answer was lost, or the key is.
                Err(StoreError::Conflict) => match lease.within(patience, read(nodes, key)).await {
                    Ok(Some((other, revision))) if other == *node => {
                        known = revision;
                        continue;
                    }
                    Ok(Some(_)) => return LeaseLost::Taken,
                    // Only a new node may come.
                    Ok(None) if lease.is_valid() => return LeaseLost::Removed,
                    Ok(None) => {
                        known = 0;
                        continue;
                    }
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if matches!(refused, StoreError::Denied { .. }) {
                denied(refused.clone());
            }
            log_once(refused, &mut logged);
            let pause = (config.lease / 12).max(Duration::from_millis(1));
            let next = later(lease.clock().now(), pause);
            lease.clock().sleep_until(next).await;
        }
    }
}

impl Drop for Renewal {
    fn drop(&mut self) {
        // It will never be acquired.
        self.lease.shared.set(|state| match state {
            State::Waiting => Some(State::Lost(LeaseLost::Expired)),
            _ => None,
        });
    }
}

crate::debug::debug_fields!([] Renewal, this => { node: this.lease.shared.node });

/// Logs what the store refuses, once; a refusal for lack of permission is logged by the store.
pub(super) fn log_once(error: StoreError, logged: &mut Option<StoreError>) {
    use StoreError::{Conflict, Denied, Failed, Unavailable};
    let is_expected = matches!(
        error,
        Conflict | Denied { .. } | Failed { .. } | Unavailable { .. }
    );
    if !is_expected && logged.as_ref() != Some(&error) {
        tracing::warn!(%error, "the store refuses a lease or a claim");
    }
    *logged = Some(error);
}

/// The value of a key that names this node.
pub(super) fn named(node: &Str) -> Bytes {
    let named = serde_json::to_vec(&Named { node: node.clone() });
    named.map(Bytes::from).unwrap_or_default()
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
