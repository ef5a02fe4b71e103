//! [`Node`]: one of several servers that are one chat platform.
//!
//! All nodes share a store: a stream that keeps the final messages of each channel in one order and
//! publishes each of them, once stored, to the subscribers of the channel; and the records
//! of users and channels. A node knows the users who are connected to it and the channels that they
//! are in, no others.
//!
//! A node does no IO and reads no clock. After each input, take what
//! [`poll_request`](Node::poll_request), [`poll_event`](Node::poll_event) and
//! [`poll_transmit`](Node::poll_transmit) return until they return `None`, then read
//! [`poll_timeout`](Node::poll_timeout). `ClusterBackend` runs it on any `rpc_core::store::Store`.
//!
//! - **One order per channel**, the stream's, for all members on all nodes, the sender included.
//!   What a feed loses is read from the stream, before what comes after it.
//! - **A sender is answered when the message is stored.** Each has a key, which the stream stores once, however
//!   often it is sent.
//! - Partial messages and typing indicators are not stored. They keep their place among the final
//!   messages of their sender, and are dropped from a gap of the channel on until a final message has come
//!   after it.

mod compare;
mod deadlines;
mod feed;
mod io;
mod sends;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use rpc_core::store::Fill;
use rpc_core::timers::later;
use rpc_core::{Instant, Str, Text};

use crate::error::RpcError;
use crate::frame::{Call, Channel, Final};
use crate::hub::{ConnId, Data, Hub, HubAnswer, HubConfig, NOT_LOGGED_IN, exists};
use crate::id::ChannelUid;

use deadlines::{Deadlines, set};
use feed::Feed;
use sends::{Fleeting, Sends};

use io::Output;

pub(crate) use feed::{Heads, History, Live, Seen, Stored};
pub(crate) use io::{Handled, Membership, NodeEvent, Publish, Request};
pub(crate) use sends::{SendError, SendId};

/// Most bytes of messages whose outcome is open.
const MAX_SEND_BYTES: usize = 64 << 20;

/// The limits of a node.
#[derive(Clone, Copy)]
pub(crate) struct NodeConfig {
    /// The limits of its users, channels and frames.
    pub(crate) hub: HubConfig,
    /// How long a message is tried to be stored.
    pub(crate) send_timeout: Duration,
    /// How long the stream may be silent before the node gives up, so that its clients go to
    /// another one.
    pub(crate) max_outage: Duration,
    /// Most messages whose outcome is open. Others are refused as [`BUSY`](crate::hub::BUSY).
    pub(crate) max_sends: usize,
}

/// A user with connections to this node.
struct Member {
    channels: Vec<Channel>,
    revision: u64,
    /// All connections, with those that wait for feeds.
    conns: Vec<ConnId>,
    waiting: Vec<ConnId>,
}

/// One of several servers that are one chat platform.
pub(crate) struct Node {
    config: NodeConfig,
    hub: Hub,
    members: HashMap<Str, Member>,
    conns: HashMap<ConnId, Str>,
    /// The public channels, in the order of their creation.
    public: BTreeMap<u64, Channel>,
    feeds: HashMap<ChannelUid, Feed>,
    deadlines: Deadlines<ChannelUid>,
    tickets: u64,
    sends: Sends,
    /// The last time at which something was asked that the stream has answered.
    seen_at: Instant,
    probe_at: Instant,
    /// Comparisons that were asked for before do not count: the feeds may have lost something since.
    gap_at: Instant,
    /// Whether the last comparison has succeeded.
    is_compared: bool,
    /// When the stream was made and its last number, if nothing differed at the last look.
    compared: Option<(u128, u64)>,
    /// No message that was there at the last look was stored later.
    newest: u64,
    is_lost: bool,
    out: Output,
}

impl Node {
    /// Creates a node without users. `id` is unique among all nodes of all times.
    pub(crate) fn new(id: &str, config: NodeConfig, now: Instant) -> Self {
        let limits = (config.max_sends, MAX_SEND_BYTES);
        Self {
            config,
            hub: Hub::new(config.hub),
            members: HashMap::new(),
            conns: HashMap::new(),
            public: BTreeMap::new(),
            feeds: HashMap::new(),
            deadlines: Deadlines::new(usize::MAX, now),
            tickets: 0,
            sends: Sends::new(id.into(), config.send_timeout, limits),
            seen_at: now,
            probe_at: now,
            gap_at: now,
            is_compared: false,
            compared: None,
            newest: 0,
            is_lost: false,
            out: Output::default(),
        }
    }

    /// Adds a connection of a user. It gets events after [`NodeEvent::Ready`].
    ///
    /// # Errors
    /// [`RpcError::Exists`], [`RpcError::Full`].
    pub(crate) fn connect(
        &mut self,
        conn: ConnId,
        record: Membership,
        now: Instant,
    ) -> Result<(), RpcError> {
        if self.conns.contains_key(&conn) {
            return Err(exists("connection"));
        }
        let username = record.user.username.clone();
        if self.members.contains_key(&username) {
            self.handle_member(record, now);
        } else {
            self.hub.add_user(record.user)?;
            let member = Member {
                channels: record.channels,
                revision: record.revision,
                conns: Vec::new(),
                waiting: Vec::new(),
            };
            let own = member.channels.iter();
            let wanted: Vec<_> = self.public.values().chain(own).cloned().collect();
            self.members.insert(username.clone(), member);
            self.out.requests.push_back(Request::Watch {
                username: username.clone(),
            });
            for channel in &wanted {
                self.want(channel, &username, now);
            }
        }
        self.conns.insert(conn, username.clone());
        if let Some(member) = self.members.get_mut(&username) {
            member.conns.push(conn);
            member.waiting.push(conn);
        }
        self.settle(&username);
        Ok(())
    }

    /// Removes a connection. Returns `false` if it is not known.
    pub(crate) fn disconnect(&mut self, conn: ConnId) -> bool {
        let Some(username) = self.conns.remove(&conn) else {
            return false;
        };
        self.hub.disconnect(conn);
        let Some(member) = self.members.get_mut(&username) else {
            return true;
        };
        member.conns.retain(|other| *other != conn);
        member.waiting.retain(|other| *other != conn);
        if member.conns.is_empty() {
            let own = self.members.remove(&username);
            let own = own.into_iter().flat_map(|member| member.channels);
            let all: Vec<_> = self.public.values().cloned().chain(own).collect();
            self.hub.remove_user(&username);
            for channel in all {
                self.unwant(&channel.uid, &username);
            }
        }
        true
    }

    /// Carries out a call of a connection.
    ///
    /// # Errors
    /// [`RpcError`]; use its text as the error text of the answer.
    pub(crate) fn handle_call(
        &mut self,
        conn: ConnId,
        call: &Call,
        now: Instant,
    ) -> Result<Handled, RpcError> {
        let user = self.hub.user_of(conn).ok_or(NOT_LOGGED_IN)?;
        let own = user.username.clone();
        match call {
            Call::GetUser { username: Some(it) } if self.hub.user(it).is_none() => {
                Ok(Handled::Lookup(it.clone()))
            }
            Call::GetChannels => {
                let channels = self.channels_of(&own);
                Ok(Handled::Answer(HubAnswer(Data::Channels(channels))))
            }
            Call::SendMessage {
                channel_uid,
                message,
                is_final,
            } => self.send(&own, &channel_uid.into(), message, *is_final, now),
            Call::SetTyping { channel_uid, color } => {
                let event = self.hub.encode_typing(&own, channel_uid, color)?;
                let line = (ChannelUid::new(channel_uid), own);
                Ok(self.cast(line, Fleeting::Typing, event))
            }
            call => self.hub.handle(conn, call).map(Handled::Answer),
        }
    }

    fn send(
        &mut self,
        own: &Str,
        channel: &Str,
        text: &Str,
        is_final: Final,
        now: Instant,
    ) -> Result<Handled, RpcError> {
        let hub = &self.hub;
        let event = hub.encode_message(own, channel, text.clone(), is_final)?;
        let line = (ChannelUid::new(channel), own.clone());
        match is_final {
            Final::Yes => {
                let id = self.sends.send(&line, event, now, &mut self.out)?;
                Ok(Handled::Sending(id))
            }
            Final::No => Ok(self.cast(line, Fleeting::Partial, event)),
        }
    }

    fn cast(&mut self, line: sends::SendKey, what: Fleeting, event: Text) -> Handled {
        let channel_uid = line.0.clone();
        self.sends.cast(line, what, event, &mut self.out);
        Handled::Answer(HubAnswer(Data::Sent { channel_uid }))
    }

    /// Returns whether a user has a connection to this node.
    pub(crate) fn is_online(&self, username: &str) -> bool {
        self.members.contains_key(username)
    }

    /// Returns the channels that a user with connections is in: the public ones first.
    fn channels_of(&self, username: &str) -> Vec<Channel> {
        let Some(member) = self.members.get(username) else {
            return Vec::new();
        };
        let all = self.public.values().chain(&member.channels);
        all.cloned().collect()
    }

    /// Takes note of a public channel. Channels are in the order of `revision`, the number of the
    /// record's last change.
    pub(crate) fn handle_public(&mut self, channel: &Channel, revision: u64, now: Instant) {
        if self.public.values().any(|other| other.uid == channel.uid) {
            return;
        }
        self.public.insert(revision, channel.clone());
        let usernames: Vec<Str> = self.members.keys().cloned().collect();
        for username in usernames {
            self.want(channel, &username, now);
            self.settle(&username);
        }
    }

    /// Takes the record of a user. One that is not newer than what is known, or of a user without
    /// connections, is ignored.
    pub(crate) fn handle_member(&mut self, record: Membership, now: Instant) {
        let username = record.user.username;
        let Some(member) = self.members.get_mut(&username) else {
            return;
        };
        if record.revision <= member.revision {
            return;
        }
        member.revision = record.revision;
        let before = std::mem::replace(&mut member.channels, record.channels.clone());
        let is_in =
            |all: &[Channel], uid: &ChannelUid| all.iter().any(|channel| channel.uid == *uid);
        for channel in &record.channels {
            if !is_in(&before, &channel.uid) {
                self.want(channel, &username, now);
            }
        }
        for channel in before {
            if !is_in(&record.channels, &channel.uid) {
                self.leave(&channel.uid, &username);
            }
        }
        self.settle(&username);
    }

    /// Takes note that a public channel is removed: its members leave it, unless their records put them in.
    pub(crate) fn remove_public(&mut self, uid: &ChannelUid) {
        self.public.retain(|_, channel| channel.uid != *uid);
        let is_in = |member: &Member| member.channels.iter().any(|channel| channel.uid == *uid);
        let members = self.members.iter().filter(|(_, member)| !is_in(member));
        let usernames: Vec<Str> = members.map(|(username, _)| username.clone()).collect();
        for username in usernames {
            self.leave(uid, &username);
            self.settle(&username);
        }
    }

    /// Takes note that a user is removed. Returns the user's connections, which have to be closed.
    pub(crate) fn remove_member(&mut self, username: &str) -> Vec<ConnId> {
        let member = self.members.get(username);
        let conns = member.map_or_else(Vec::new, |member| member.conns.clone());
        for conn in &conns {
            self.disconnect(*conn);
        }
        conns
    }

    /// Takes the answer to [`Request::Open`]: the channel's last message, and when it was stored.
    pub(crate) fn handle_open(
        &mut self,
        channel: &ChannelUid,
        ticket: u64,
        last: Option<(Seen, u64)>,
        now: Instant,
    ) {
        let Some(feed) = self.feeds.get_mut(channel) else {
            return;
        };
        let time = last.as_ref().map_or(0, |(_, time)| *time);
        let history = History {
            newest: self.newest.max(time),
            seen: last.into_iter().map(|(last, _)| last).collect(),
        };
        if !feed.opened(ticket, history, now) {
            return;
        }
        let usernames: Vec<Str> = feed.users.iter().cloned().collect();
        for username in usernames {
            self.settle(&username);
        }
        self.drive(channel);
    }

    /// Takes what the live feed of a channel brings.
    pub(crate) fn handle_live(&mut self, channel: &ChannelUid, live: Live, now: Instant) {
        let Some(feed) = self.feeds.get_mut(channel) else {
            return;
        };
        if let Some(event) = feed.handle_live(live, self.is_compared, now) {
            // With a full queue it is dropped.
            let _ = self.hub.send_encoded(channel.as_str(), &event);
        }
        self.drive(channel);
    }

    /// Takes the answer to [`Request::Fill`]: see
    /// [`Sequencer::handle_fill`](rpc_core::store::Sequencer::handle_fill).
    pub(crate) fn handle_fill(
        &mut self,
        channel: &ChannelUid,
        fill: Fill,
        messages: Vec<(u64, Stored)>,
        through: u64,
        now: Instant,
    ) {
        if let Some(feed) = self.feeds.get_mut(channel) {
            feed.handle_fill(fill, messages, through, now);
            self.drive(channel);
        }
    }

    /// Takes note that another stream has taken the place of the first one: emptied, or an older copy. What
    /// follows `after` in it is delivered; all of it if that is `None`. The live feed must bring nothing of the
    /// first one any more. Returns the connections of the channel's users, who may have missed something.
    pub(crate) fn handle_replaced(
        &mut self,
        channel: &ChannelUid,
        after: Option<Seen>,
        now: Instant,
    ) -> Vec<ConnId> {
        let Some(feed) = self.feeds.get_mut(channel) else {
            return Vec::new();
        };
        feed.replaced(after, now);
        let members = feed.users.iter().filter_map(|it| self.members.get(it));
        let conns = members.flat_map(|it| it.conns.iter().copied()).collect();
        self.drive(channel);
        conns
    }

    /// Takes the answer to [`Request::Publish`].
    pub(crate) fn handle_stored(
        &mut self,
        id: SendId,
        result: Result<(), SendError>,
        now: Instant,
    ) {
        self.sends.handle_stored(id, result, now, &mut self.out);
    }

    /// Takes note that nobody carries out a [`Request::Publish`] any more: it comes again, unless it was answered.
    pub(crate) fn store_again(&mut self, id: SendId) {
        self.sends.store_again(id, &mut self.out);
    }

    /// Ends the node: nothing is sent again, and no connection gets anything. Returns the
    /// connections, which have to be closed.
    pub(crate) fn end(&mut self) -> Vec<ConnId> {
        self.is_lost = true;
        self.out.requests.clear();
        self.sends.end(&mut self.out);
        for username in self.members.keys() {
            self.hub.remove_user(username);
        }
        self.members.clear();
        self.feeds.clear();
        while self.deadlines.pop_any().is_some() {}
        self.conns.drain().map(|(conn, _)| conn).collect()
    }

    /// Lets the node act on deadlines at or before `now`. An early call is a no-op.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if !self.is_lost && later(self.seen_at, self.config.max_outage) <= now {
            self.is_lost = true;
            self.out.events.push_back(NodeEvent::Lost);
        }
        if self.probe_at <= now {
            self.probe(now);
        }
        while let Some((channel, ())) = self.deadlines.pop_expired(now) {
            let ticket = self.tickets + 1;
            let feed = self.feeds.get_mut(&channel);
            if feed.is_some_and(|feed| feed.handle_timeout(ticket, now)) {
                self.tickets = ticket;
                let channel = channel.clone();
                self.out
                    .requests
                    .push_back(Request::Open { channel, ticket });
            }
            self.drive(&channel);
        }
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) has to be called next; `None` once the
    /// node has ended.
    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        if self.is_lost {
            return None;
        }
        let lost_at = later(self.seen_at, self.config.max_outage);
        let own = Some(self.probe_at.min(lost_at));
        let feeds = self.deadlines.poll_timeout();
        [own, feeds].into_iter().flatten().min()
    }

    /// Returns what has to be done next.
    pub(crate) fn poll_request(&mut self) -> Option<Request> {
        self.out.requests.pop_front()
    }

    /// Returns the request to store a message, if nothing else has to be done before it.
    pub(crate) fn take_publish(&mut self, message: SendId) -> Option<Publish> {
        let publish = match self.out.requests.front()? {
            Request::Publish(it) if it.id == message => it.clone(),
            _ => return None,
        };
        if self.out.requests.len() > 1 {
            return None;
        }
        self.out.requests.clear();
        Some(publish)
    }

    /// Returns whether there is something to do, now or before this time.
    pub(crate) fn has_work(&self, before: Instant) -> bool {
        !self.out.requests.is_empty() || self.poll_timeout().is_some_and(|at| at < before)
    }

    /// Returns what has happened.
    pub(crate) fn poll_event(&mut self) -> Option<NodeEvent> {
        self.out.events.pop_front()
    }

    /// Returns the next frame and the connection that it goes to.
    pub(crate) fn poll_transmit(&mut self) -> Option<(ConnId, Text)> {
        self.hub.poll_transmit()
    }

    /// Takes note that a user of this node is in a channel.
    fn want(&mut self, channel: &Channel, username: &Str, now: Instant) {
        let uid = &channel.uid;
        let feed = self.feeds.entry(uid.clone()).or_insert_with(|| {
            self.tickets += 1;
            let ticket = self.tickets;
            // An invalid uid has no messages, and a full hub no room for it.
            let _ = self.hub.add_channel(channel.clone());
            self.out.requests.push_back(Request::Open {
                channel: uid.clone(),
                ticket,
            });
            Feed::new(ticket, now)
        });
        feed.users.insert(username.clone());
        set(&mut self.deadlines, uid, feed.poll_timeout());
    }

    /// Takes a user of this node out of a channel, and informs the user's connections.
    fn leave(&mut self, channel: &ChannelUid, username: &Str) {
        // With a full queue there is no event; the user has left it all the same.
        let _ = self.hub.leave(username, channel.as_str());
        self.unwant(channel, username);
    }

    /// Takes note that a user of this node is no longer in a channel.
    fn unwant(&mut self, channel: &ChannelUid, username: &Str) {
        let Some(feed) = self.feeds.get_mut(channel) else {
            return;
        };
        feed.users.remove(username);
        if feed.users.is_empty() {
            self.feeds.remove(channel);
            set(&mut self.deadlines, channel, None);
            self.hub.remove_channel(channel.as_str());
            let channel = channel.clone();
            self.out.requests.push_back(Request::Close { channel });
        }
    }

    /// Joins a user to the channels whose feeds are open, and connects those that wait if all are.
    fn settle(&mut self, username: &Str) {
        let mut all_open = true;
        for channel in self.channels_of(username) {
            let uid = channel.uid.as_str();
            if !self.feeds.get(uid).is_some_and(Feed::is_open) {
                all_open = false;
            } else if !self.hub.is_member(username, uid) {
                // Fails if the queue is full or the hub has no room for the channel.
                let _ = self.hub.join(username, uid);
            }
        }
        let Some(member) = self.members.get_mut(username).filter(|_| all_open) else {
            return;
        };
        for conn in std::mem::take(&mut member.waiting) {
            if self.hub.connect(conn, username).is_ok() {
                self.out.events.push_back(NodeEvent::Ready { conn });
            }
        }
    }

    /// Delivers what a feed has in order, and passes on what it asks for.
    fn drive(&mut self, channel: &ChannelUid) {
        let Some(feed) = self.feeds.get_mut(channel) else {
            return;
        };
        while let Some(event) = feed.poll_event() {
            // The queue is emptied after each input, so that it is not full here.
            let _ = self.hub.send_encoded(channel.as_str(), &event);
        }
        if let Some((fill, history)) = feed.poll_request() {
            let channel = channel.clone();
            self.out.requests.push_back(Request::Fill {
                channel,
                fill,
                history,
            });
        }
        set(&mut self.deadlines, channel, feed.poll_timeout());
    }
}
