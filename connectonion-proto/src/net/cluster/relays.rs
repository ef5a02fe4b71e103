//! [`Relays`]: the relayed connections of one node, by id, and what arrives for them.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use bytes::{BufMut, Bytes, BytesMut};
use futures_util::StreamExt;
use http::request::Parts;
use rpc_core::Str;
use rpc_core::cluster::{AskError, Message, Messages, Store, StoreError, token};
use rpc_core::net::{entropy, time};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use super::ClusterOptions;
use super::packet::{OVERHEAD, Packet, cost};
use super::pump::Peer;
use super::relay::{Relay, RelayConfig};
use crate::auth::unix_seconds;

/// The first byte of a message that opens a connection.
const OPEN: u8 = 0xff;
/// The answers to it.
const ACCEPTED: &[u8] = b"1";
/// How long a node may take for the answer.
const OPEN_TIMEOUT: Duration = Duration::from_secs(2);

/// Which end of a connection this node is.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Side {
    Opened,
    Accepted,
}

/// What the node that accepted a client tells the one that serves it.
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
    config: RelayConfig,
    max: usize,
    open: Mutex<HashMap<(Side, u64), Open>>,
}

/// An open connection.
struct Open {
    packets: mpsc::Sender<Packet>,
    /// The node at its other end.
    node: String,
}

/// A relayed connection: what [`pump`](super::pump::pump) needs. Dropping it forgets it.
pub(super) struct Relayed {
    pub(super) relay: Relay,
    pub(super) packets: mpsc::Receiver<Packet>,
    pub(super) peer: Peer,
    pub(super) registered: Registered,
}

/// Forgets a connection when it is dropped.
pub(super) struct Registered {
    relays: Arc<Relays>,
    side: Side,
    id: u64,
}

/// A connection that another node wants this one to serve.
pub(super) struct Opening {
    id: u64,
    node: String,
    pub(super) peer: Option<IpAddr>,
    pub(super) head: Option<Parts>,
    /// How many seconds its clock is ahead of this one.
    pub(super) clock_ahead: f64,
    reply: Option<Str>,
}

/// What arrives, besides packets.
pub(super) enum Arrived {
    /// A connection to serve.
    Opening(Opening),
    /// A question.
    Question(Message),
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
        let mut config = options.relay;
        let piece = store.max_payload().saturating_sub(OVERHEAD);
        config.max_piece_bytes = config.max_piece_bytes.min(piece).max(1);
        Self {
            store,
            node,
            config,
            max: options.max_relayed,
            open: Mutex::default(),
        }
    }

    fn open(&self) -> MutexGuard<'_, HashMap<(Side, u64), Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the subject of packets to this end of connections, at this node.
    fn subject(to: Side, node: &str) -> String {
        match to {
            Side::Opened => format!("onion.{}.out", token(node)),
            Side::Accepted => format!("onion.{}.in", token(node)),
        }
    }

    fn questions(node: &str) -> String {
        format!("onion.{}.ask", token(node))
    }

    /// Subscribes to what arrives for this node.
    pub(super) async fn subscribe(&self) -> Result<Messages, StoreError> {
        let all = format!("onion.{}.*", token(&self.node));
        self.store.subscribe(&all).await
    }

    /// Passes packets on, until there is something else, or the connection to NATS is closed.
    pub(super) async fn next(&self, from: &mut Messages) -> Option<Arrived> {
        loop {
            let message = from.next().await?;
            let side = match message.subject.rsplit('.').next() {
                Some("out") => Side::Opened,
                Some("in") => Side::Accepted,
                _ => return Some(Arrived::Question(message)),
            };
            if side == Side::Accepted && message.payload.first() == Some(&OPEN) {
                if let Some(opening) = opening(&message) {
                    return Some(Arrived::Opening(opening));
                }
                continue;
            }
            let Some((id, packet)) = Packet::decode(message.payload) else {
                continue;
            };
            let mut open = self.open();
            let Some(relay) = open.get(&(side, id)) else {
                continue;
            };
            // Within the window there is room: who sends more loses the connection.
            if relay.packets.try_send(packet).is_err() {
                open.remove(&(side, id));
            }
        }
    }

    /// Returns the nodes at the other ends.
    pub(super) fn nodes(&self) -> HashSet<String> {
        self.open().values().map(|it| it.node.clone()).collect()
    }

    /// Ends the connections with a node that is gone.
    pub(super) fn end(&self, node: &str) {
        self.open().retain(|_, it| it.node != node);
    }

    /// Tells the other ends that this node ends its connections.
    pub(super) async fn give_up(&self) {
        let open: Vec<_> = self.open().drain().collect();
        for ((side, id), it) in open {
            let peer = self.peer(side, id, &it.node);
            if peer.send(&Packet::Gone).await.is_err() {
                return;
            }
        }
    }

    fn peer(&self, side: Side, id: u64, node: &str) -> Peer {
        let to = match side {
            Side::Opened => Side::Accepted,
            Side::Accepted => Side::Opened,
        };
        Peer {
            store: Arc::clone(&self.store),
            subject: Self::subject(to, node),
            id,
        }
    }

    /// Asks another node. `None` if it gives no answer.
    pub(super) async fn ask(&self, node: &str, question: Bytes) -> Option<Bytes> {
        let subject = Self::questions(node);
        self.store.ask(&subject, question, OPEN_TIMEOUT).await.ok()
    }

    /// Answers a question of another node.
    pub(super) fn answer(&self, question: &Message, answer: Bytes) {
        if let Some(reply) = &question.reply_to {
            self.store.answer(reply, answer);
        }
    }

    fn register(self: &Arc<Self>, side: Side, id: u64, node: &str) -> Option<Relayed> {
        let packets = usize::try_from(self.config.window / cost(0)).unwrap_or(usize::MAX);
        let (sender, receiver) = mpsc::channel(packets.saturating_add(16).min(1 << 16));
        let mut open = self.open();
        if open.len() >= self.max || open.contains_key(&(side, id)) {
            return None;
        }
        let entry = Open {
            packets: sender,
            node: node.to_owned(),
        };
        open.insert((side, id), entry);
        drop(open);
        Some(Relayed {
            relay: Relay::new(self.config, time::now()),
            packets: receiver,
            peer: self.peer(side, id, node),
            registered: Registered {
                relays: Arc::clone(self),
                side,
                id,
            },
        })
    }

    /// Opens a connection to another node.
    pub(super) async fn connect(
        self: &Arc<Self>,
        node: &str,
        peer: Option<IpAddr>,
        head: Option<&Parts>,
    ) -> Result<Relayed, OpenError> {
        let id = entropy();
        // Before the other node may send anything.
        let relayed = self.register(Side::Opened, id, node);
        let relayed = relayed.ok_or(OpenError::Refused)?;
        let head = Head::new(&self.node, peer, head);
        let mut payload = BytesMut::new();
        payload.put_u8(OPEN);
        payload.put_u64(id);
        payload.extend_from_slice(&serde_json::to_vec(&head).unwrap_or_default());
        let subject = Self::subject(Side::Accepted, node);
        let asked = self.store.ask(&subject, payload.freeze(), OPEN_TIMEOUT);
        match asked.await {
            Ok(answer) if &*answer == ACCEPTED => Ok(relayed),
            Ok(_) | Err(AskError::Store(StoreError::TooLarge)) => Err(OpenError::Refused),
            Err(_) => Err(OpenError::NoAnswer),
        }
    }

    /// Accepts a connection of another node, or refuses it.
    pub(super) fn accept(self: &Arc<Self>, opening: &Opening) -> Option<Relayed> {
        let relayed = self.register(Side::Accepted, opening.id, &opening.node);
        let answer = match relayed {
            Some(_) => Bytes::from_static(ACCEPTED),
            None => Bytes::from_static(b"0"),
        };
        if let Some(reply) = &opening.reply {
            self.store.answer(reply, answer);
        }
        relayed
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.relays.open().remove(&(self.side, self.id));
    }
}

impl Head {
    fn new(node: &str, peer: Option<IpAddr>, head: Option<&Parts>) -> Self {
        let mut it = Self {
            node: node.to_owned(),
            time: unix_seconds(SystemTime::now()),
            peer,
            method: String::new(),
            uri: String::new(),
            headers: Vec::new(),
        };
        if let Some(head) = head {
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

fn opening(message: &Message) -> Option<Opening> {
    let (id, head) = message.payload.get(1..)?.split_first_chunk::<8>()?;
    let head: Head = serde_json::from_slice(head).ok()?;
    Some(Opening {
        id: u64::from_be_bytes(*id),
        peer: head.peer,
        head: head.parts(),
        clock_ahead: head.time - unix_seconds(SystemTime::now()),
        node: head.node,
        reply: message.reply_to.clone(),
    })
}
