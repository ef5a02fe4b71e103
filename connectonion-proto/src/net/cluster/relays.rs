//! [`Relays`]: the relayed connections of one node, by id, and what arrives for them.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use http::request::Parts;
use rpc_core::net::{Transport, entropy};
use rpc_core::store::{AskError, Messages, Store, StoreError, token};
use rpc_core::sync::Mutex;
use rpc_core::{CloseFrame, Str};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::relay::{Arrived, Kind, NO, Packet, Peer, RelayLimits, YES, relay};
use super::{ClusterOptions, Origin};
use crate::auth::unix_seconds;

/// How long a node may take for an answer.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What the node that accepted a client sends the one that serves it.
#[derive(Serialize, Deserialize)]
struct Head {
    node: String,
    /// Its time, in seconds since 1970.
    time: f64,
    peer: Option<IpAddr>,
    method: String,
    uri: String,
    headers: Vec<(String, String)>,
}

/// The relayed connections of one node.
pub(super) struct Relays {
    store: Arc<dyn Store>,
    /// This one.
    node: Str,
    limits: RelayLimits,
    /// How many connections may be open: none when the node's life is over.
    max: AtomicUsize,
    open: Mutex<HashMap<u64, Open>>,
}

/// An open connection.
struct Open {
    packets: mpsc::Sender<Arrived>,
    /// The node at its other end.
    node: String,
}

/// One end of a relayed connection. Dropping it forgets it.
pub(super) struct Relayed {
    packets: Option<mpsc::Receiver<Arrived>>,
    peer: Peer,
    relays: Arc<Relays>,
}

/// A connection that another node wants this one to serve.
pub(super) struct Opening {
    pub(super) relayed: Relayed,
    pub(super) peer: Option<IpAddr>,
    pub(super) head: Option<Parts>,
    /// The time there, in seconds since 1970.
    pub(super) time: f64,
}

/// What arrives, besides frames.
pub(super) enum Request {
    /// A connection to serve.
    Open(Box<Opening>),
    /// A question, and where its answer is awaited.
    Question(Bytes, Str),
}

/// Why another node does not serve a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpenError {
    /// It gave no answer: it may be dead.
    NoAnswer,
    /// It has no room.
    Refused,
}

impl Relays {
    pub(super) fn new(store: Arc<dyn Store>, node: Str, options: &ClusterOptions) -> Self {
        let (max, window) = (options.max_frame_bytes, options.relay_window);
        Self {
            limits: RelayLimits::new(max, window, store.max_payload()),
            store,
            node,
            max: options.max_relayed.into(),
            open: Mutex::default(),
        }
    }

    fn peer(&self, id: u64, node: &str) -> Peer {
        Peer {
            store: Arc::clone(&self.store),
            subject: subject(node),
            id,
            limits: self.limits,
        }
    }

    /// Subscribes to what arrives for this node.
    pub(super) async fn subscribe(&self) -> Result<Messages, StoreError> {
        self.store.subscribe(&subject(&self.node)).await
    }

    /// Passes frames on, until there is something else, or the connection to the store is closed.
    pub(super) async fn next(self: &Arc<Self>, from: &mut Messages) -> Option<Request> {
        loop {
            let message = from.next().await?;
            let Some(packet) = Packet::decode(message.payload) else {
                continue;
            };
            match (packet.kind, message.reply_to) {
                (Kind::Question, Some(reply_to)) => {
                    return Some(Request::Question(packet.bytes, reply_to));
                }
                (Kind::Open, Some(reply_to)) => {
                    let opening = self.accept(&packet);
                    let answer = opening.as_ref().map_or(NO, |_| YES);
                    self.answer(&reply_to, Bytes::from_static(answer));
                    if let Some(opening) = opening {
                        return Some(Request::Open(Box::new(opening)));
                    }
                }
                (Kind::End, _) => drop(self.open.lock().remove(&packet.id)),
                (_, reply_to) => self.pass(packet, reply_to),
            }
        }
    }

    /// Passes a packet on to its connection.
    fn pass(&self, packet: Packet, reply_to: Option<Str>) {
        let (id, mut open) = (packet.id, self.open.lock());
        match (open.get(&id), reply_to) {
            (Some(connection), reply_to) => {
                // Within the window there is room: who sends more loses the connection.
                if connection.packets.try_send((packet, reply_to)).is_err() {
                    open.remove(&id);
                }
            }
            (None, Some(reply_to)) => self.answer(&reply_to, Bytes::from_static(NO)),
            (None, None) => {}
        }
    }

    /// Returns the nodes at the other ends.
    pub(super) fn nodes(&self) -> HashSet<String> {
        let open = self.open.lock();
        open.values().map(|it| it.node.clone()).collect()
    }

    /// Ends the connections with a node that is gone.
    pub(super) fn end(&self, node: &str) {
        self.open.lock().retain(|_, it| it.node != node);
    }

    /// Ends all connections, and opens no more.
    pub(super) fn close(&self) {
        let mut open = self.open.lock();
        self.max.store(0, Ordering::Relaxed);
        open.clear();
    }

    /// Tells the other ends that this node ends its connections.
    pub(super) async fn give_up(&self) {
        let open: Vec<_> = self.open.lock().drain().collect();
        for (id, it) in open {
            let peer = self.peer(id, &it.node);
            if peer.send(Kind::End, 0, Bytes::new()).await.is_err() {
                return;
            }
        }
    }

    /// Asks another node.
    pub(super) async fn ask(
        &self,
        node: &str,
        kind: Kind,
        id: u64,
        bytes: Bytes,
    ) -> Result<Bytes, AskError> {
        let number = 0;
        let packet = Packet {
            kind,
            id,
            number,
            bytes,
        };
        let subject = subject(node);
        self.store.ask(&subject, packet.encode(), TIMEOUT).await
    }

    /// Answers a question of another node.
    pub(super) fn answer(&self, reply_to: &str, answer: Bytes) {
        self.store.answer(reply_to, answer);
    }

    fn register(self: &Arc<Self>, id: u64, node: &str) -> Option<Relayed> {
        let (sender, packets) = mpsc::channel(self.limits.max_packets());
        let mut open = self.open.lock();
        if open.len() >= self.max.load(Ordering::Relaxed) || open.contains_key(&id) {
            return None;
        }
        let connection = Open {
            packets: sender,
            node: node.to_owned(),
        };
        open.insert(id, connection);
        Some(Relayed {
            packets: Some(packets),
            peer: self.peer(id, node),
            relays: Arc::clone(self),
        })
    }

    /// Opens a connection to another node.
    pub(super) async fn connect(
        self: &Arc<Self>,
        node: &str,
        origin: &Origin,
    ) -> Result<Relayed, OpenError> {
        let id = entropy();
        // Before the other node may send anything.
        let relayed = self.register(id, node).ok_or(OpenError::Refused)?;
        let head = Head::new(&self.node, origin);
        let head = serde_json::to_vec(&head).unwrap_or_default();
        match self.ask(node, Kind::Open, id, head.into()).await {
            Ok(answer) if &*answer == YES => Ok(relayed),
            Ok(_) | Err(AskError::Store(StoreError::TooLarge)) => Err(OpenError::Refused),
            Err(_) => Err(OpenError::NoAnswer),
        }
    }

    /// Accepts a connection of another node, if there is room.
    fn accept(self: &Arc<Self>, packet: &Packet) -> Option<Opening> {
        let head: Head = serde_json::from_slice(&packet.bytes).ok()?;
        Some(Opening {
            relayed: self.register(packet.id, &head.node)?,
            peer: head.peer,
            head: head.parts(),
            time: head.time,
        })
    }
}

/// The subject of packets to a node.
fn subject(node: &str) -> String {
    format!("onion.{}.relay", token(node))
}

impl Relayed {
    /// Carries frames between the connection and this transport: see [`relay`].
    pub(super) async fn run(
        mut self,
        transport: impl Transport,
        ended: impl Future<Output = CloseFrame>,
    ) {
        if let Some(packets) = self.packets.take() {
            relay(transport, packets, &self.peer, ended).await;
        }
    }
}

impl Drop for Relayed {
    fn drop(&mut self) {
        self.relays.open.lock().remove(&self.peer.id);
    }
}

impl Head {
    fn new(node: &str, origin: &Origin) -> Self {
        let mut it = Self {
            node: node.to_owned(),
            time: unix_seconds((origin.clock)()),
            peer: origin.peer,
            method: String::new(),
            uri: String::new(),
            headers: Vec::new(),
        };
        if let Some(head) = &origin.head {
            it.method = head.method.to_string();
            it.uri = head.uri.to_string();
            let headers = head.headers.iter();
            let texts = headers.filter_map(|(name, value)| {
                Some((name.to_string(), value.to_str().ok()?.to_owned()))
            });
            it.headers = texts.collect();
        }
        it
    }

    fn parts(&self) -> Option<Parts> {
        let request = http::Request::builder()
            .method(self.method.as_str())
            .uri(self.uri.as_str());
        let headers = self.headers.iter();
        let request = headers.fold(request, |it, (name, value)| it.header(name, value));
        Some(request.body(()).ok()?.into_parts().0)
    }
}
