//! [`Hub`]: the users, channels and memberships of a chat server, and the routing of its frames.
//!
//! A hub does no IO and reads no clock. It serves many connections, so it is not a
//! [`Machine`](rpc_core::Machine), but works like one: after each call, take the frames to send
//! with [`poll_transmit`](Hub::poll_transmit).
//!
//! ```
//! use snek_proto::frame::{Channel, Final, User};
//! use snek_proto::hub::{ConnId, Hub, HubConfig};
//!
//! let mut hub = Hub::new(HubConfig::default());
//! hub.add_user(User::new("ann", "Ann"))?;
//! hub.add_channel(Channel::new("ch1", "general", None))?;
//! hub.join("ann", "ch1")?;
//! hub.connect(ConnId(1), "ann")?;
//! assert_eq!(hub.send_message("ann", "ch1", "hi", Final::Yes)?, 1);
//! let (to, text) = hub.poll_transmit().unwrap();
//! assert_eq!(to, ConnId(1));
//! assert!(text.as_str().starts_with(r#"{"event":"message","message":"hi""#));
//! # Ok::<(), snek_proto::error::RpcError>(())
//! ```

mod answer;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

use rpc_core::{Json, Str, Text};
use serde::Serialize;

use crate::codec;
use crate::error::RpcError;
use crate::frame::{Channel, Event, Final, Joined, Message, Typing, User};
use crate::id::{ChannelUid, is_channel_uid};
use crate::limits::DM_TAG;

#[cfg(feature = "cluster")]
pub(crate) use answer::Data;
pub use answer::HubAnswer;

/// The number of a connection, chosen by the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConnId(pub u64);

/// Most users.
const MAX_USERS: usize = 100_000;
/// Most channels, including those for direct messages.
const MAX_CHANNELS: usize = 100_000;

rpc_core::config! {
    /// The limits of a hub.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct HubConfig {
        /// Most frames waiting to be taken. Default 1,000,000 (frames share their bytes).
        pub max_queued: usize = 1_000_000,
        /// Whether complete messages are sent as on the platform's own pages, for bots in the shape of
        /// its sample: as `new_message` in place of `message`. Clients of this crate read both. Partial
        /// messages stay what they are, because such bots would answer each of them. Default no.
        pub new_message: bool = false,
    }
}

// Why a change is refused.

pub(crate) const NO_SUCH_USER: RpcError = RpcError::fixed("no such user");
pub(crate) const NO_SUCH_CHANNEL: RpcError = RpcError::fixed("no such channel");
pub(crate) const NOT_A_MEMBER: RpcError = RpcError::fixed("not a member of this channel");
pub(crate) const NOT_LOGGED_IN: RpcError = RpcError::fixed("not logged in");
pub(crate) const INVALID_UID: RpcError = RpcError::fixed("invalid channel uid");
/// Too many frames are waiting. Retry after taking some.
pub(crate) const BUSY: RpcError = RpcError::fixed("the server is busy");

/// The error for a user, channel or connection that exists already.
pub(crate) fn exists(what: &str) -> RpcError {
    RpcError::new(format!("the {what} exists already"))
}

fn full(what: &str) -> RpcError {
    RpcError::new(format!("there is no room for another {what}"))
}

struct Member {
    user: User,
    conns: Vec<ConnId>,
    /// In the order of joining.
    channels: Vec<ChannelUid>,
}

struct Room {
    channel: Channel,
    members: BTreeSet<Str>,
}

/// The users, channels and memberships of a server, and the frames to send to its connections.
pub struct Hub {
    limits: HubConfig,
    users: HashMap<Str, Member>,
    rooms: HashMap<ChannelUid, Room>,
    conns: HashMap<ConnId, Str>,
    /// Direct message channels by their two users, sorted.
    directs: HashMap<(Str, Str), ChannelUid>,
    next_direct: u64,
    out: VecDeque<(ConnId, Text)>,
    /// The generator of message uids.
    uids: AtomicU64,
    keys: RandomState,
}

#[derive(Serialize)]
struct NewMessage<'a> {
    event: &'static str,
    channel_uid: &'a str,
    data: NewMessageData<'a>,
}

#[derive(Serialize)]
struct NewMessageData<'a> {
    uid: String,
    message: &'a str,
    user_uid: &'a str,
    username: &'a str,
    user_nick: &'a str,
}

impl Hub {
    /// Creates an empty hub.
    #[must_use]
    pub fn new(limits: HubConfig) -> Self {
        Self {
            limits,
            users: HashMap::new(),
            rooms: HashMap::new(),
            conns: HashMap::new(),
            directs: HashMap::new(),
            next_direct: 1,
            out: VecDeque::new(),
            uids: AtomicU64::new(0),
            keys: RandomState::new(),
        }
    }

    /// Adds a user without channels.
    ///
    /// # Errors
    /// [`RpcError`] if the user exists already, or there is no room for another.
    pub fn add_user(&mut self, user: User) -> Result<(), RpcError> {
        if self.users.contains_key(&user.username) {
            return Err(exists("user"));
        }
        if self.users.len() >= MAX_USERS {
            return Err(full("user"));
        }
        let name = user.username.clone();
        let member = Member {
            user,
            conns: Vec::new(),
            channels: Vec::new(),
        };
        self.users.insert(name, member);
        Ok(())
    }

    /// Adds a channel without members.
    ///
    /// # Errors
    /// [`RpcError`] if its uid is invalid, it exists already, or there is no room for another.
    pub fn add_channel(&mut self, channel: Channel) -> Result<(), RpcError> {
        if !is_channel_uid(channel.uid.as_str()) {
            return Err(INVALID_UID);
        }
        if self.rooms.contains_key(&channel.uid) {
            return Err(exists("channel"));
        }
        if self.rooms.len() >= MAX_CHANNELS {
            return Err(full("channel"));
        }
        let members = BTreeSet::new();
        let uid = channel.uid.clone();
        self.rooms.insert(uid, Room { channel, members });
        Ok(())
    }

    /// Removes a user with all memberships and connections, without an event. Returns `false` if the
    /// user is not known.
    #[cfg(any(feature = "cluster", test))]
    pub(crate) fn remove_user(&mut self, username: &str) -> bool {
        let Some(member) = self.users.remove(username) else {
            return false;
        };
        for uid in &member.channels {
            if let Some(room) = self.rooms.get_mut(uid) {
                room.members.remove(username);
            }
        }
        for conn in &member.conns {
            self.conns.remove(conn);
        }
        self.directs
            .retain(|(one, other), _| &**one != username && &**other != username);
        true
    }

    /// Removes a channel with its memberships, without an event. Returns `false` if the channel is
    /// not known.
    #[cfg(any(feature = "cluster", test))]
    pub(crate) fn remove_channel(&mut self, channel: &str) -> bool {
        let Some(room) = self.rooms.remove(channel) else {
            return false;
        };
        for username in &room.members {
            if let Some(member) = self.users.get_mut(username) {
                member.channels.retain(|uid| uid.as_str() != channel);
            }
        }
        self.directs.retain(|_, uid| uid.as_str() != channel);
        true
    }

    /// Puts a user into a channel and informs the user's connections with a `join` event. Returns
    /// `false` if the user is in it already.
    ///
    /// # Errors
    /// [`RpcError`] if there is no such user or channel, or too many frames wait.
    pub fn join(&mut self, username: &str, channel: &str) -> Result<bool, RpcError> {
        self.set_membership(username, channel, true)
    }

    /// Takes a user out of a channel and informs the user's connections with a `leave` event. Returns
    /// `false` if the user is not in it.
    ///
    /// # Errors
    /// [`RpcError`] if there is no such user or channel, or too many frames wait.
    pub fn leave(&mut self, username: &str, channel: &str) -> Result<bool, RpcError> {
        self.set_membership(username, channel, false)
    }

    fn set_membership(&mut self, user: &str, channel: &str, is_in: bool) -> Result<bool, RpcError> {
        let conns = self.users.get(user).map_or(0, |member| member.conns.len());
        let has_room = self.check_room(conns);
        let member = self.users.get_mut(user).ok_or(NO_SUCH_USER)?;
        let room = self.rooms.get_mut(channel).ok_or(NO_SUCH_CHANNEL)?;
        if room.members.contains(user) == is_in {
            return Ok(false);
        }
        has_room?;
        let channel_uid = room.channel.uid.clone();
        let data = Joined { channel_uid };
        let event = if is_in {
            room.members.insert(member.user.username.clone());
            member.channels.push(data.channel_uid.clone());
            Event::Join { data }
        } else {
            room.members.remove(user);
            member.channels.retain(|uid| *uid != data.channel_uid);
            Event::Leave { data }
        };
        self.send_to(user, &event);
        Ok(true)
    }

    /// Returns the channel for direct messages between two users, and creates it if necessary.
    ///
    /// # Errors
    /// [`RpcError`] if there is no such user, no room for another channel, or too many frames wait.
    pub fn direct(&mut self, one: &str, other: &str) -> Result<ChannelUid, RpcError> {
        let name = |user: &str| {
            let member = self.users.get(user).ok_or(NO_SUCH_USER)?;
            Ok((member.user.username.clone(), member.conns.len()))
        };
        let ((one, conns), (other, more)) = (name(one)?, name(other)?);
        let pair = if one <= other {
            (one, other)
        } else {
            (other, one)
        };
        if let Some(uid) = self.directs.get(&pair) {
            return Ok(uid.clone());
        }
        self.check_room(conns + more)?;
        let uid = self.free_direct_uid();
        self.add_channel(Channel::new(uid.clone(), "", Some(DM_TAG)))?;
        self.join(&pair.0, uid.as_str())?;
        self.join(&pair.1, uid.as_str())?;
        self.directs.insert(pair, uid.clone());
        Ok(uid)
    }

    /// Adds a connection of a user, who may have several.
    ///
    /// # Errors
    /// [`RpcError`] if there is no such user, or the connection exists already.
    pub fn connect(&mut self, conn: ConnId, username: &str) -> Result<(), RpcError> {
        if self.conns.contains_key(&conn) {
            return Err(exists("connection"));
        }
        let (name, _) = self.users.get_key_value(username).ok_or(NO_SUCH_USER)?;
        self.conns.insert(conn, name.clone());
        if let Some(member) = self.users.get_mut(username) {
            member.conns.push(conn);
        }
        Ok(())
    }

    /// Removes a connection. Returns `false` if it is not known.
    /// [`poll_transmit`](Self::poll_transmit) still returns the frames that wait for it; drop them.
    pub fn disconnect(&mut self, conn: ConnId) -> bool {
        let Some(username) = self.conns.remove(&conn) else {
            return false;
        };
        if let Some(member) = self.users.get_mut(&username) {
            member.conns.retain(|other| *other != conn);
        }
        true
    }

    /// Returns a user's record.
    #[must_use]
    pub fn user(&self, username: &str) -> Option<&User> {
        self.users.get(username).map(|member| &member.user)
    }

    /// Returns the user of a connection.
    #[must_use]
    pub fn user_of(&self, conn: ConnId) -> Option<&User> {
        self.user(self.conns.get(&conn)?)
    }

    /// Returns the channels that a user is in, in the order of joining. A channel for direct
    /// messages has the name of the other user.
    pub(crate) fn channels_of(&self, username: &str) -> Vec<Channel> {
        let Some(member) = self.users.get(username) else {
            return Vec::new();
        };
        let rooms = member.channels.iter().filter_map(|uid| self.rooms.get(uid));
        rooms.map(|room| self.seen_by(room, username)).collect()
    }

    /// Returns whether a user is in a channel.
    #[cfg(any(feature = "cluster", test))]
    pub(crate) fn is_member(&self, username: &str, channel: &str) -> bool {
        let room = self.rooms.get(channel);
        room.is_some_and(|room| room.members.contains(username))
    }

    /// Returns the members of a channel, sorted by login name.
    pub fn members(&self, channel: &str) -> impl Iterator<Item = &str> {
        let room = self.rooms.get(channel).into_iter();
        room.flat_map(|room| room.members.iter().map(|name| &**name))
    }

    /// Sends a message, partial or final, to every connection of every member, including those of
    /// the sender. The message is encoded once. Returns how many connections get it.
    ///
    /// # Errors
    /// [`RpcError`] if there is no such user or channel, the user is not in it, or too many frames wait.
    pub fn send_message(
        &mut self,
        username: &str,
        channel: &str,
        text: impl Into<Str>,
        is_final: Final,
    ) -> Result<usize, RpcError> {
        let event = self.encode_message(username, channel, text, is_final)?;
        self.send_encoded(channel, &event)
    }

    /// Returns the encoded event of a message that a user sends, partial or final, and sends
    /// nothing.
    ///
    /// # Errors
    /// As for [`send_message`](Self::send_message), but never busy.
    pub(crate) fn encode_message(
        &self,
        username: &str,
        channel: &str,
        text: impl Into<Str>,
        is_final: Final,
    ) -> Result<Text, RpcError> {
        let sender = self.sender(username, channel)?;
        let text = text.into();
        if self.limits.new_message && is_final == Final::Yes {
            return Ok(self.new_message(sender, channel, &text));
        }
        let mut message = Message::new(channel, &sender.username, &sender.nick, text);
        message.is_final = is_final;
        Ok(encoded(&Event::Message(message)))
    }

    fn new_message(&self, sender: &User, channel: &str, text: &str) -> Text {
        let uid = self.uids.fetch_add(1, Ordering::Relaxed);
        let event = NewMessage {
            event: "new_message",
            channel_uid: channel,
            data: NewMessageData {
                // Nodes of a cluster must not give the same.
                uid: format!("{:016x}", self.keys.hash_one(uid)),
                message: text,
                user_uid: &sender.username,
                username: &sender.username,
                user_nick: &sender.nick,
            },
        };
        codec::encode(&event).unwrap_or_default()
    }

    /// Sends an encoded event to every connection of every member of a channel. Returns how many
    /// connections get it; none if the channel is not known.
    ///
    /// # Errors
    /// [`BUSY`].
    pub(crate) fn send_encoded(&mut self, channel: &str, event: &Text) -> Result<usize, RpcError> {
        let conns: Vec<ConnId> = self.conns_in(channel).collect();
        self.check_room(conns.len())?;
        let receivers = conns.len();
        self.out
            .extend(conns.into_iter().map(|conn| (conn, event.clone())));
        Ok(receivers)
    }

    /// Shows a typing indicator to every connection of every member, including those of the sender.
    /// Returns how many connections get it.
    ///
    /// # Errors
    /// As for [`send_message`](Self::send_message).
    pub fn set_typing(
        &mut self,
        username: &str,
        channel: &str,
        color: &str,
    ) -> Result<usize, RpcError> {
        let event = self.encode_typing(username, channel, color)?;
        self.send_encoded(channel, &event)
    }

    /// Returns the encoded event of a user's typing indicator, and sends nothing.
    ///
    /// # Errors
    /// As for [`encode_message`](Self::encode_message).
    pub(crate) fn encode_typing(
        &self,
        username: &str,
        channel: &str,
        color: &str,
    ) -> Result<Text, RpcError> {
        let sender = self.sender(username, channel)?;
        let data = Typing {
            channel_uid: Some(channel.into()),
            username: Some(sender.username.clone()),
            user_nick: Some(sender.nick.clone()),
            color: Some(color.into()),
            data: Json::NULL,
        };
        Ok(encoded(&Event::SetTyping { data }))
    }

    /// Returns the next frame and the connection that it goes to. The frames of one connection are
    /// in order.
    #[must_use]
    pub fn poll_transmit(&mut self) -> Option<(ConnId, Text)> {
        self.out.pop_front()
    }

    /// Returns the user, who is in the channel.
    fn sender(&self, username: &str, channel: &str) -> Result<&User, RpcError> {
        let member = self.users.get(username).ok_or(NO_SUCH_USER)?;
        let room = self.rooms.get(channel).ok_or(NO_SUCH_CHANNEL)?;
        if !room.members.contains(username) {
            return Err(NOT_A_MEMBER);
        }
        Ok(&member.user)
    }

    /// Returns the connections of a channel's members.
    fn conns_in(&self, channel: &str) -> impl Iterator<Item = ConnId> {
        let members = self.rooms.get(channel).map(|room| &room.members);
        let members = members.into_iter().flatten();
        let members = members.filter_map(|name| self.users.get(name));
        members.flat_map(|member| member.conns.iter().copied())
    }

    fn check_room(&self, frames: usize) -> Result<(), RpcError> {
        let has_room = self.out.len() + frames <= self.limits.max_queued;
        has_room.then_some(()).ok_or(BUSY)
    }

    /// Sends an event to every connection of one user.
    fn send_to(&mut self, username: &str, event: &Event) {
        let Some(member) = self.users.get(username) else {
            return;
        };
        let text = encoded(event);
        self.out
            .extend(member.conns.iter().map(|conn| (*conn, text.clone())));
    }

    fn free_direct_uid(&mut self) -> ChannelUid {
        loop {
            let uid = ChannelUid::from(format!("dm-{}", self.next_direct));
            self.next_direct += 1;
            if !self.rooms.contains_key(&uid) {
                return uid;
            }
        }
    }

    fn seen_by(&self, room: &Room, username: &str) -> Channel {
        let mut channel = room.channel.clone();
        if channel.is_dm() && channel.name.is_empty() {
            let other = room.members.iter().find(|name| &***name != username);
            let name = other.map_or(username, |name| name);
            channel.name = self.user(name).map(display_name).unwrap_or_default();
        }
        channel
    }
}

pub(crate) fn display_name(user: &User) -> Str {
    if user.nick.is_empty() {
        user.username.clone()
    } else {
        user.nick.clone()
    }
}

/// Our own events are always JSON, so the fallback is never taken.
fn encoded(event: &Event) -> Text {
    codec::encode(event).unwrap_or_default()
}

// Prints only counts.
rpc_core::debug_fields!([] Hub, this => {
    users: this.users.len(),
    channels: this.rooms.len(),
    connections: this.conns.len(),
    queued: this.out.len(),
});
