//! [`Shared`]: the node under its lock, and where its outputs go.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::RequestErrorKind;
use async_nats::connection::State as Line;
use bytes::Bytes;
use rpc_core::net::nats::NatsError;
use rpc_core::net::{entropy, time};
use tokio::sync::{Notify, oneshot, watch};

use super::store::{ClusterError, Store};
use crate::cluster::{Membership, Node, NodeConfig, NodeEvent, SendError, SendId};
use crate::hub::ConnId;
use crate::net::Peer;

/// How long the nodes have to say that a user is there.
const PRESENCE_TIMEOUT: Duration = Duration::from_secs(1);

/// What the connections of a node and its runner share.
pub(super) struct Shared {
    pub(super) store: Store,
    state: Mutex<State>,
    /// Notified after each change: there may be requests, or an earlier deadline.
    pub(super) changed: Notify,
    pub(super) phase: watch::Sender<Phase>,
}

pub(super) struct State {
    pub(super) node: Node,
    pub(super) peers: HashMap<ConnId, Arc<Peer>>,
    /// The records of logins that are not answered yet.
    pub(super) logins: HashMap<ConnId, Membership>,
    pub(super) ready: HashMap<ConnId, oneshot::Sender<()>>,
    pub(super) sends: HashMap<SendId, oneshot::Sender<Result<(), SendError>>>,
    /// Whether the node has given up.
    pub(super) is_lost: bool,
}

/// Whether a node lets anybody log in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// It will, when it knows the public channels.
    Starting,
    Serving,
    /// It has lost its cluster.
    Lost,
}

/// Creates a node of this id.
pub(super) fn node(id: &str, config: NodeConfig) -> Node {
    Node::new(id, config, entropy(), time::now())
}

impl Shared {
    pub(super) fn new(store: Store, config: NodeConfig) -> Self {
        let state = State {
            node: node(store.nats.node(), config),
            peers: HashMap::new(),
            logins: HashMap::new(),
            ready: HashMap::new(),
            sends: HashMap::new(),
            is_lost: false,
        };
        Self {
            store,
            state: Mutex::new(state),
            changed: Notify::new(),
            phase: watch::Sender::new(Phase::Starting),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, hands on what comes of it, and wakes the runner.
    pub(super) fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let result = self.change(change);
        self.changed.notify_one();
        result
    }

    /// The same for the runner, which looks for requests by itself.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.lock();
        let result = change(&mut state);
        state.flush();
        result
    }

    /// Waits until the node has started. Returns whether it serves.
    pub(super) async fn is_serving(&self) -> bool {
        let mut phase = self.phase.subscribe();
        let phase = phase.wait_for(|phase| *phase != Phase::Starting).await;
        phase.is_ok_and(|phase| *phase == Phase::Serving)
    }

    pub(super) async fn is_online(&self, username: &str) -> Result<bool, ClusterError> {
        if self.lock().node.is_online(username) {
            return Ok(true);
        }
        let client = self.store.nats.client();
        let unavailable = |message: &str| NatsError::Unavailable {
            message: message.to_owned(),
        };
        if client.connection_state() != Line::Connected {
            return Err(unavailable("no connection").into());
        }
        let asked = client.request(self.store.of_user(username), Bytes::new());
        match tokio::time::timeout(PRESENCE_TIMEOUT, asked).await {
            Ok(Ok(_)) => Ok(true),
            Ok(Err(error)) => match error.kind() {
                RequestErrorKind::NoResponders | RequestErrorKind::TimedOut => Ok(false),
                _ => Err(unavailable(&error.to_string()).into()),
            },
            Err(_) => Ok(false),
        }
    }
}

impl State {
    /// Hands the node's frames and events on. Pushing does not wait, so it happens under the lock,
    /// which keeps the order.
    pub(super) fn flush(&mut self) {
        while let Some((conn, text)) = self.node.poll_transmit() {
            if let Some(peer) = self.peers.get(&conn) {
                peer.push(text);
            }
        }
        while let Some(event) = self.node.poll_event() {
            match event {
                NodeEvent::Ready { conn } => {
                    if let Some(ready) = self.ready.remove(&conn) {
                        // Whoever is gone needs no news.
                        let _ = ready.send(());
                    }
                }
                NodeEvent::Sent { id, result } => {
                    if let Some(sent) = self.sends.remove(&id) {
                        let _ = sent.send(result);
                    }
                }
                NodeEvent::Lost => self.is_lost = true,
            }
        }
    }
}
