//! [`Shared`]: the node under its lock, and where its outputs go.

use std::collections::HashMap;
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use bytes::Bytes;
use rpc_core::Instant;
use rpc_core::net::{entropy, time};
use rpc_core::store::{AskError, StoreError};
use rpc_core::sync::Mutex;
use tokio::sync::{Notify, oneshot, watch};

use super::records::{Records, of_user};
use crate::cluster::{Membership, Node, NodeConfig, NodeEvent, SendError, SendId};
use crate::hub::ConnId;
use crate::net::Peer;

/// How long the nodes have to say that a user is there.
const PRESENCE_TIMEOUT: Duration = Duration::from_secs(1);

/// What the connections of a node and its runner share.
pub(super) struct Shared {
    pub(super) records: Arc<Records>,
    pub(super) config: NodeConfig,
    state: Mutex<State>,
    /// Notified when there are requests, or an earlier deadline.
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
    /// How many nodes have ended here before.
    pub(super) life: u64,
    /// Whether the node has given up.
    pub(super) is_lost: bool,
    /// When the runner looks after the node by itself.
    pub(super) alarm: Instant,
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

/// Creates a node with a new id.
pub(super) fn node(config: NodeConfig) -> Node {
    let id = format!("{:016x}", entropy());
    Node::new(&id, config, time::now())
}

impl Shared {
    pub(super) fn new(records: Arc<Records>, config: NodeConfig) -> Self {
        let state = State {
            node: node(config),
            peers: HashMap::new(),
            logins: HashMap::new(),
            ready: HashMap::new(),
            sends: HashMap::new(),
            life: 0,
            is_lost: false,
            alarm: time::now(),
        };
        Self {
            records,
            config,
            state: Mutex::new(state),
            changed: Notify::new(),
            phase: watch::Sender::new(Phase::Starting),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// Changes the state, hands on what comes of it, and wakes the runner if it has to do something.
    pub(super) fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let (result, has_work) = self.change(|state| {
            let result = change(state);
            (result, state.node.has_work(state.alarm))
        });
        if has_work {
            self.changed.notify_one();
        }
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

    /// Returns why the node does not serve, if it does not.
    pub(super) fn ready(&self) -> Result<(), &'static str> {
        match *self.phase.borrow() {
            Phase::Starting => return Err("the node is joining the cluster"),
            Phase::Lost => return Err("the node has lost its cluster"),
            Phase::Serving => {}
        }
        if !self.records.store.is_connected() {
            return Err("the node has no connection to the store");
        }
        let node = &self.lock().node;
        if node.is_silent(time::now()) {
            return Err("the store does not answer");
        }
        if !node.is_current() {
            return Err("messages may be missing: the node compares what it has with the store");
        }
        Ok(())
    }

    pub(super) async fn is_online(&self, username: &str) -> Result<bool, StoreError> {
        if self.lock().node.is_online(username) {
            return Ok(true);
        }
        let store = &self.records.store;
        if !store.is_connected() {
            return Err(StoreError::unavailable("no connection"));
        }
        let subject = of_user(username);
        match store.ask(&subject, Bytes::new(), PRESENCE_TIMEOUT).await {
            Ok(_) => Ok(true),
            Err(AskError::Store(error)) => Err(error),
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
                        // A connection that has gone needs no events.
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

rpc_core::debug_fields!([] Shared, this => { phase: *this.phase.borrow() });
