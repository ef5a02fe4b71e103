//! Several nodes on one store, under virtual time.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use rpc_core::{Instant, Str, Text};

use crate::cluster::{
    Handled, Heads, History, Live, Membership, Node, NodeConfig, NodeEvent, Publish, Request, Seen,
    SendError, SendId, Stored,
};
use crate::error::RpcError;
use crate::frame::{Call, Channel, User};
use crate::hub::{ConnId, HubConfig};
use crate::id::ChannelUid;

/// After which time a message is sent again.
const AGAIN: Duration = Duration::from_secs(1);

/// What the nodes share, and what goes wrong with it.
#[derive(Default)]
pub(super) struct Store {
    /// Channel, key, event and time; the sequence number is the index plus one.
    pub(super) stream: Vec<(ChannelUid, Str, Text, u64)>,
    /// How many messages were ever stored.
    time: u64,
    pub(super) public: Vec<Channel>,
    pub(super) records: HashMap<Str, Membership>,
}

impl Store {
    pub(super) fn publish(&mut self, channel: &ChannelUid, key: &Str, event: &Text) -> (u64, bool) {
        let known = self.stream.iter().position(|(_, other, ..)| other == key);
        let at = known.unwrap_or_else(|| {
            self.time += 1;
            let message = (channel.clone(), key.clone(), event.clone(), self.time);
            self.stream.push(message);
            self.stream.len() - 1
        });
        (at as u64 + 1, known.is_none())
    }

    pub(super) fn of(&self, channel: &ChannelUid) -> impl Iterator<Item = (u64, Stored)> {
        let all = (1..).zip(&self.stream);
        all.filter(move |(_, (other, ..))| other == channel).map(
            |(sequence, (_, key, event, _))| {
                let (key, event) = (key.clone(), event.clone());
                (sequence, Stored { key, event })
            },
        )
    }

    fn last(&self, channel: &ChannelUid) -> Option<(Seen, u64)> {
        let last = self.of(channel).last();
        last.map(|(sequence, it)| ((sequence, it.key), self.time_of(sequence)))
    }

    fn time_of(&self, sequence: u64) -> u64 {
        self.stream[usize::try_from(sequence).unwrap() - 1].3
    }

    /// Whether this was read of the stream: otherwise after which message to go on.
    fn replaced(&self, channel: &ChannelUid, history: &History) -> Option<Option<Seen>> {
        let is_there = |seen: &&Seen| self.of(channel).any(|(at, it)| (at, it.key) == **seen);
        let common = history.seen.iter().take_while(is_there).last().cloned();
        let from = common.as_ref().map_or(0, |(sequence, _)| *sequence);
        let next = self.of(channel).find(|(sequence, _)| *sequence > from);
        let is_old = next.is_some_and(|(sequence, _)| self.time_of(sequence) < history.newest);
        let last = history.seen.back().filter(|last| !is_there(last));
        last.map(|_| match is_old {
            true => self.last(channel).map(|(last, _)| last),
            false => common,
        })
    }

    fn heads(&self) -> Heads {
        let channels = self.stream.iter().map(|(channel, ..)| channel);
        let channels: HashSet<&ChannelUid> = channels.collect();
        let head = |channel: &ChannelUid| Some((channel.clone(), self.last(channel)?.0));
        Heads {
            first: 1,
            last: self.stream.len() as u64,
            newest: self.stream.iter().map(|it| it.3).max().unwrap_or(0),
            channels: Some(channels.into_iter().filter_map(head).collect()),
            ..Heads::default()
        }
    }

    pub(super) fn live(&self, sequence: u64) -> (ChannelUid, Live) {
        let (channel, key, event, _) = &self.stream[usize::try_from(sequence).unwrap() - 1];
        let before = self.of(channel).map(|(other, _)| other);
        let previous = before.take_while(|other| *other < sequence).last();
        let live = Live::Stored {
            sequence,
            previous: previous.unwrap_or(0),
            message: Stored {
                key: key.clone(),
                event: event.clone(),
            },
        };
        (channel.clone(), live)
    }
}

/// Nodes, the store, and a line between them that loses what `lose` says.
pub(super) struct World {
    pub(super) now: Instant,
    pub(super) store: Store,
    pub(super) nodes: Vec<Node>,
    pub(super) subscribed: Vec<HashSet<ChannelUid>>,
    pub(super) ready: Vec<HashSet<ConnId>>,
    pub(super) gone: HashSet<usize>,
    pub(super) sent: HashMap<(usize, SendId), Result<(), SendError>>,
    pub(super) received: HashMap<(usize, ConnId), Vec<String>>,
    /// Who may have missed something.
    pub(super) leaving: HashSet<ConnId>,
    /// The messages that are to be sent again, and when.
    publishing: Vec<(Instant, usize, Publish)>,
    /// Whether the store is out of reach.
    pub(super) is_down: bool,
    pub(super) lose: Box<dyn FnMut(Lost) -> bool>,
}

/// What can get lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lost {
    /// A live message to this node.
    Live(usize),
    /// An attempt to store.
    Attempt,
    Answer,
    /// The answer to a fill.
    Fill,
    /// The answer to an opening.
    Open,
    /// The last messages of all channels.
    Probe,
}

pub(super) fn config() -> NodeConfig {
    NodeConfig {
        hub: HubConfig::default(),
        send_timeout: Duration::from_secs(20),
        max_outage: Duration::from_secs(30),
        max_sends: 10_000,
    }
}

pub(super) fn world(nodes: usize) -> World {
    let now = Instant::now();
    let node = |at: usize| Node::new(&format!("n{at}"), config(), now);
    let mut world = World {
        now,
        store: Store::default(),
        nodes: (0..nodes).map(node).collect(),
        subscribed: vec![HashSet::new(); nodes],
        ready: vec![HashSet::new(); nodes],
        gone: HashSet::new(),
        sent: HashMap::new(),
        received: HashMap::new(),
        leaving: HashSet::new(),
        publishing: Vec::new(),
        is_down: false,
        lose: Box::new(|_| false),
    };
    world.public("general");
    world
}

pub(super) fn record(name: &str, channels: &[&str], revision: u64) -> Membership {
    let channels = channels.iter().map(|uid| Channel::new(*uid, "", None));
    Membership {
        user: User::new(name, ""),
        channels: channels.collect(),
        revision,
    }
}

impl World {
    pub(super) fn public(&mut self, uid: &str) {
        let channel = Channel::new(uid, uid, None);
        self.store.public.push(channel.clone());
        let revision = self.store.public.len() as u64;
        for at in 0..self.nodes.len() {
            self.nodes[at].handle_public(&channel, revision, self.now);
        }
        self.run();
    }

    pub(super) fn connect(&mut self, at: usize, conn: u64, name: &str) {
        let known = self.store.records.entry(name.into());
        let record = known.or_insert_with(|| record(name, &[], 1)).clone();
        self.nodes[at]
            .connect(ConnId(conn), record, self.now)
            .unwrap();
        self.run();
    }

    pub(super) fn call(&mut self, at: usize, conn: u64, call: &Call) -> Result<Handled, RpcError> {
        let handled = self.nodes[at].handle_call(ConnId(conn), call, self.now);
        self.run();
        handled
    }

    pub(super) fn post(
        &mut self,
        at: usize,
        conn: u64,
        channel: &str,
        text: &str,
        is_final: bool,
    ) -> Handled {
        let call = Call::SendMessage {
            channel_uid: channel.into(),
            message: text.into(),
            is_final: is_final.into(),
        };
        self.call(at, conn, &call).unwrap()
    }

    pub(super) fn send(&mut self, at: usize, conn: u64, text: &str) -> SendId {
        match self.post(at, conn, "general", text, true) {
            Handled::Sending(id) => id,
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn lost(&mut self, what: Lost) -> bool {
        self.is_down || (self.lose)(what)
    }

    /// Passes everything on until nothing is left to do.
    pub(super) fn run(&mut self) {
        loop {
            let mut is_idle = true;
            for at in 0..self.nodes.len() {
                while let Some((conn, text)) = self.nodes[at].poll_transmit() {
                    let text = text.as_str().to_owned();
                    self.received.entry((at, conn)).or_default().push(text);
                }
                while let Some(event) = self.nodes[at].poll_event() {
                    match event {
                        NodeEvent::Ready { conn } => assert!(self.ready[at].insert(conn)),
                        NodeEvent::Lost => assert!(self.gone.insert(at)),
                        NodeEvent::Sent { id, result } => {
                            assert_eq!(self.sent.insert((at, id), result), None, "told twice");
                        }
                    }
                }
                if let Some(request) = self.nodes[at].poll_request() {
                    is_idle = false;
                    self.carry_out(at, request);
                }
            }
            if is_idle {
                return;
            }
        }
    }

    pub(super) fn carry_out(&mut self, at: usize, request: Request) {
        let now = self.now;
        match request {
            Request::Open { channel, ticket } => {
                self.subscribed[at].insert(channel.clone());
                if !self.lost(Lost::Open) {
                    let last = self.store.last(&channel);
                    self.nodes[at].handle_open(&channel, ticket, last, now);
                }
            }
            Request::Close { channel } => assert!(self.subscribed[at].remove(&channel)),
            Request::Watch { username } => {
                let record = self.store.records[&username].clone();
                self.nodes[at].handle_member(record, now);
            }
            Request::Probe { .. } => {
                let heads = (!self.lost(Lost::Probe)).then(|| self.store.heads());
                self.nodes[at].handle_probe(now, heads, now);
            }
            Request::Fill {
                channel,
                fill,
                history,
            } => {
                if self.lost(Lost::Fill) {
                    return;
                }
                let replaced = history.and_then(|it| self.store.replaced(&channel, &it));
                if let Some(after) = replaced {
                    let node = &mut self.nodes[at];
                    let leaving = node.handle_replaced(&channel, after, now);
                    self.leaving.extend(leaving);
                    return;
                }
                let until = fill.until.unwrap_or(u64::MAX);
                let all = self.store.of(&channel);
                let found = all.filter(|(it, _)| *it > fill.after && *it <= until);
                let found: Vec<_> = found.collect();
                let last = found.last().map_or(fill.after, |(it, _)| *it);
                let through = fill.until.unwrap_or(last);
                self.nodes[at].handle_fill(&channel, fill, found, through, now);
            }
            Request::Publish(it) => {
                if !self.lost(Lost::Attempt) {
                    let (sequence, is_new) = self.store.publish(&it.channel, &it.key, &it.event);
                    if is_new {
                        self.deliver(sequence);
                    }
                    if !self.lost(Lost::Answer) {
                        return self.nodes[at].handle_stored(it.id, Ok(()), now);
                    }
                }
                self.publishing.push((it.until.min(now + AGAIN), at, it));
            }
            Request::Cast { channel, event } => {
                for to in 0..self.nodes.len() {
                    if self.subscribed[to].contains(&channel) && !self.lost(Lost::Live(to)) {
                        let event = event.clone();
                        self.nodes[to].handle_live(&channel, Live::Fleeting { event }, now);
                    }
                }
            }
        }
    }

    pub(super) fn deliver(&mut self, sequence: u64) {
        let (channel, live) = self.store.live(sequence);
        for to in 0..self.nodes.len() {
            if self.subscribed[to].contains(&channel) && !self.lost(Lost::Live(to)) {
                self.nodes[to].handle_live(&channel, live.clone(), self.now);
            }
        }
    }

    /// Lets time pass, with all deadlines on the way.
    pub(super) fn pass(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let sends = self.publishing.iter().map(|(at, ..)| *at);
            let nodes = self.nodes.iter().filter_map(Node::poll_timeout);
            let next = nodes.chain(sends).min();
            let Some(at) = next.filter(|at| *at <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(at);
            for node in &mut self.nodes {
                node.handle_timeout(self.now);
            }
            let is_due = |it: &mut (Instant, usize, Publish)| it.0 <= self.now;
            for (_, at, it) in self.publishing.extract_if(.., is_due).collect::<Vec<_>>() {
                match it.until <= self.now {
                    true => self.nodes[at].handle_stored(it.id, Err(SendError::Unknown), self.now),
                    false => self.carry_out(at, Request::Publish(it)),
                }
            }
            self.run();
        }
    }

    /// The line is there again.
    pub(super) fn check(&mut self) {
        for node in &mut self.nodes {
            node.check(self.now);
        }
        self.run();
    }

    /// The texts of the messages that a connection has heard.
    pub(super) fn texts(&self, at: usize, conn: u64) -> Vec<String> {
        let received = self.received.get(&(at, ConnId(conn)));
        let received = received.into_iter().flatten();
        let text = |it: &String| {
            let frame: serde_json::Value = serde_json::from_str(it).unwrap();
            Some(frame["message"].as_str()?.to_owned())
        };
        received.filter_map(text).collect()
    }

    pub(super) fn is_ready(&self, at: usize, conn: u64) -> bool {
        self.ready[at].contains(&ConnId(conn))
    }
}
