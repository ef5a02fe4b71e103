//! [`Node`]: one life of a host as a part of a cluster: its lease, and the sessions that it claims.

use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use rpc_core::Str;
use rpc_core::cluster::{
    Claim, ClaimConfig, ClaimEvent, Lease, LeaseConfig, LeaseEvent, LeaseLost, Operation, Reply,
    token,
};
use rpc_core::net::clock;
use rpc_core::net::nats::{Bucket, Nats, NatsError};
use tokio::sync::watch;
use tokio::time::{sleep, sleep_until};

use super::relays::Relays;

/// One life of a host in a cluster. After its lease is lost, the host comes back as another node.
pub(super) struct Node {
    nats: Nats,
    buckets: Buckets,
    lease: Mutex<Lease>,
    pub(super) relays: Arc<Relays>,
}

/// Where the nodes of a cluster meet.
#[derive(Clone)]
pub(super) struct Buckets {
    /// The nodes that are alive; a key vanishes with its lease.
    pub(super) nodes: Bucket,
    /// The node that owns each session.
    pub(super) owners: Bucket,
}

/// The current life of a host; `None` between two.
#[derive(Clone, Debug)]
pub(super) struct Current(Arc<watch::Sender<Option<Arc<Node>>>>);

/// Who owns a session, after this node has claimed it. Exhaustive: there is no other case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claimed {
    /// This node.
    Owned {
        /// The number of the ownership.
        fence: u64,
        /// Whether it was taken from a node that is gone.
        is_taken: bool,
    },
    /// Another node, which is alive.
    Held,
}

impl Node {
    pub(super) fn new(nats: &Nats, buckets: Buckets, lease: LeaseConfig, relays: Relays) -> Self {
        Self {
            lease: Mutex::new(Lease::new(nats.node().clone(), lease, clock())),
            nats: nats.clone(),
            buckets,
            relays: Arc::new(relays),
        }
    }

    pub(super) const fn id(&self) -> &Str {
        self.nats.node()
    }

    fn lease(&self) -> MutexGuard<'_, Lease> {
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether this node may serve and write at the moment.
    pub(super) fn is_valid(&self) -> bool {
        self.lease().is_valid(clock())
    }

    /// Keeps the lease until it is lost. Calls `acquired` once it is there.
    pub(super) async fn keep(&self, acquired: impl FnOnce()) -> LeaseLost {
        let mut acquired = Some(acquired);
        loop {
            let (request, event, deadline) = {
                let mut lease = self.lease();
                lease.handle_timeout(clock());
                let request = lease.poll_request();
                (request, lease.poll_event(), lease.poll_timeout())
            };
            match event {
                Some(LeaseEvent::Acquired) => {
                    if let Some(acquired) = acquired.take() {
                        acquired();
                    }
                }
                Some(LeaseEvent::Lost(why)) => return why,
                _ => {}
            }
            if let Some(request) = request {
                let key = token(self.id());
                let doing = self.carry_out(&self.buckets.nodes, &key, request.operation);
                // The lease ends in time, whatever the server does.
                let until = deadline.unwrap_or_else(clock);
                tokio::select! {
                    reply = doing => self.lease().handle_reply(request.number, reply, clock()),
                    () = sleep_until(until.into()) => {}
                }
                continue;
            }
            sleep_until(deadline.unwrap_or_else(clock).into()).await;
        }
    }

    /// Gives the lease back, so that other nodes need not wait for its end.
    pub(super) async fn leave(&self) {
        let request = {
            let mut lease = self.lease();
            lease.release(clock());
            lease.poll_request()
        };
        if let Some(request) = request {
            let key = token(self.id());
            self.carry_out(&self.buckets.nodes, &key, request.operation)
                .await;
        }
        self.relays.give_up().await;
    }

    /// Claims a session.
    pub(super) async fn claim(&self, session_id: &str) -> Result<Claimed, NatsError> {
        let key = token(session_id);
        let mut claim = Claim::new(self.id().clone(), ClaimConfig::default(), clock());
        loop {
            if let Some(event) = claim.poll_event() {
                return match event {
                    ClaimEvent::Owned { fence, taken_from } => Ok(Claimed::Owned {
                        fence,
                        is_taken: taken_from.is_some(),
                    }),
                    ClaimEvent::Held { .. } => Ok(Claimed::Held),
                    _ => Err(no_answer()),
                };
            }
            if !self.is_valid() {
                return Err(no_answer());
            }
            if let Some(request) = claim.poll_request() {
                let operation = request.operation;
                let reply = self.carry_out(&self.buckets.owners, &key, operation).await;
                claim.handle_reply(request.number, reply, clock());
                continue;
            }
            let deadline: Option<Instant> = claim.poll_timeout();
            sleep_until(deadline.unwrap_or_else(clock).into()).await;
            claim.handle_timeout(clock());
        }
    }

    /// Gives a session back that this node owns.
    pub(super) async fn release(&self, session_id: &str, fence: u64) -> Result<(), NatsError> {
        let key = token(session_id);
        self.buckets.owners.delete(&key, Some(fence)).await
    }

    /// Returns the owner of a session; `None` if there is none that is alive, except this node.
    pub(super) async fn owner(&self, session_id: &str) -> Result<Option<Str>, NatsError> {
        let Some(owner) = self.buckets.owners.get(&token(session_id)).await? else {
            return Ok(None);
        };
        let owner = Str::from(&*String::from_utf8_lossy(&owner.value));
        if owner == *self.id() {
            return Ok(Some(owner));
        }
        let alive = self.buckets.nodes.get(&token(&owner)).await?;
        Ok(alive.map(|_| owner))
    }

    /// Ends the connections with nodes that are gone, until it is dropped.
    pub(super) async fn watch_peers(&self, every: Duration) -> Infallible {
        loop {
            sleep(every).await;
            for node in self.relays.nodes() {
                if let Ok(None) = self.buckets.nodes.get(&token(&node)).await {
                    self.relays.end(&node);
                }
            }
        }
    }

    async fn carry_out(&self, bucket: &Bucket, key: &str, operation: Operation) -> Reply {
        let value = || Bytes::copy_from_slice(self.id().as_bytes());
        let stored = |revision| Reply::Stored { revision };
        let outcome = match operation {
            Operation::Read => bucket.get(key).await.map(found),
            Operation::ReadNode { node } => self.buckets.nodes.get(&token(&node)).await.map(found),
            Operation::Create => bucket.create(key, value()).await.map(stored),
            Operation::Update { revision } => {
                bucket.update(key, value(), revision).await.map(stored)
            }
            Operation::Delete { revision } => {
                let deleted = bucket.delete(key, Some(revision)).await;
                deleted.map(|()| stored(revision))
            }
        };
        outcome.unwrap_or_else(|error| match error {
            NatsError::Conflict => Reply::Conflict,
            NatsError::Unavailable { .. } => Reply::Unknown,
            error => {
                tracing::warn!(%error, "the cluster is not written");
                Reply::Refused
            }
        })
    }
}

fn found(entry: Option<rpc_core::net::nats::Entry>) -> Reply {
    match entry {
        Some(entry) => Reply::Found {
            node: Str::from(&*String::from_utf8_lossy(&entry.value)),
            revision: entry.revision,
        },
        None => Reply::Missing,
    }
}

fn no_answer() -> NatsError {
    NatsError::Unavailable {
        message: "the session was not claimed in time".to_owned(),
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
}

impl std::fmt::Debug for Node {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Node").field(self.id()).finish()
    }
}
