//! [`MemoryBackend`]: users, channels and messages in memory. The test server.

use std::collections::HashMap;
use std::sync::Arc;

use rpc_core::sync::Mutex;
use rpc_core::{Secret, Str, constant_time_eq};

use super::{Backend, CallReply, Peer, Replied};
use crate::error::RpcError;
use crate::frame::{Call, Channel, Final, User};
use crate::hub::{ConnId, Hub, HubConfig};
use crate::id::{ChannelUid, is_username};

/// A whole platform in memory, for tests of bots, demonstrations and small teams.
///
/// Every user is a member of every channel that was [added](Self::with_channel). Nothing is stored.
///
/// ```
/// use snek_proto::net::MemoryBackend;
///
/// let backend = MemoryBackend::new()
///     .with_channel("general", "General")
///     .with_user("alice", "wonderland", "Alice")
///     .with_user("mybot", "mypassword", "MyBot");
/// backend.direct("alice", "mybot").unwrap();
/// ```
#[derive(Debug)]
pub struct MemoryBackend {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    hub: Hub,
    passwords: HashMap<Str, Secret>,
    peers: HashMap<ConnId, Arc<Peer>>,
    channels: Vec<ChannelUid>,
    open: bool,
}

impl Default for MemoryBackend {
    fn default() -> Self {
        Self::new()
    }
}

impl MemoryBackend {
    /// Creates a backend without users and channels.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limits(HubConfig::default())
    }

    /// Creates a backend without users and channels, and with these limits. For bots in the shape of the
    /// platform's own sample: [`HubConfig::new_message`].
    #[must_use]
    pub fn with_limits(limits: HubConfig) -> Self {
        let state = State {
            hub: Hub::new(limits),
            passwords: HashMap::new(),
            peers: HashMap::new(),
            channels: Vec::new(),
            open: false,
        };
        Self {
            state: Mutex::new(state),
        }
    }

    /// Adds a public channel with all users in it. Logs and skips an invalid or existing uid.
    #[must_use]
    pub fn with_channel(self, uid: &str, name: &str) -> Self {
        if let Err(error) = self.add_channel(uid, name) {
            tracing::warn!(uid, %error, "channel left out");
        }
        self
    }

    /// Adds a user to all channels. Logs and skips a name that exists.
    #[must_use]
    pub fn with_user(self, username: &str, password: &str, nick: &str) -> Self {
        if let Err(error) = self.add_user(User::new(username, nick), password) {
            tracing::warn!(username, %error, "user left out");
        }
        self
    }

    /// Accepts everyone: a login with an unknown name creates a user with that password, unless the
    /// name is blank or has control characters or marks of direction.
    #[must_use]
    pub fn open(self) -> Self {
        self.state.lock().open = true;
        self
    }

    /// Adds a public channel with all users in it.
    ///
    /// # Errors
    /// [`RpcError`] if the uid is invalid, exists already, or there is no room for another channel.
    pub fn add_channel(&self, uid: &str, name: &str) -> Result<(), RpcError> {
        let mut state = self.state.lock();
        let channel = Channel::new(uid, name, Some("public"));
        state.hub.add_channel(channel)?;
        state.channels.push(ChannelUid::new(uid));
        let users: Vec<Str> = state.passwords.keys().cloned().collect();
        for username in users {
            state.hub.join(&username, uid)?;
        }
        state.flush();
        Ok(())
    }

    /// Adds a user to all channels.
    ///
    /// # Errors
    /// [`RpcError`] if the name is invalid, exists already, or there is no room for another user.
    pub fn add_user(&self, user: User, password: &str) -> Result<(), RpcError> {
        self.state.lock().add_user(user, password)
    }

    /// Returns the channel for direct messages between two users.
    ///
    /// # Errors
    /// [`RpcError`] if one of them does not exist, or there is no room for another channel.
    pub fn direct(&self, one: &str, other: &str) -> Result<ChannelUid, RpcError> {
        let mut state = self.state.lock();
        let uid = state.hub.direct(one, other);
        state.flush();
        uid
    }

    /// Posts a message in a user's name, as if the user had sent it. Returns how many connections
    /// get it.
    ///
    /// # Errors
    /// [`RpcError`], the answer that the user would get: the channel does not exist, or is not the user's.
    pub fn post(
        &self,
        username: &str,
        channel: &str,
        text: &str,
        is_final: Final,
    ) -> Result<usize, RpcError> {
        let mut state = self.state.lock();
        let sent = state.hub.send_message(username, channel, text, is_final);
        state.flush();
        sent
    }

    /// Returns whether a user has a connection that is logged in.
    #[must_use]
    pub fn is_online(&self, username: &str) -> bool {
        !self.state.lock().peers_of(username).is_empty()
    }

    /// Drops every connection of a user without a closing handshake, to test whether a bot
    /// reconnects. Returns how many there were.
    pub fn cut(&self, username: &str) -> usize {
        let peers = self.state.lock().peers_of(username);
        peers.iter().for_each(|peer| peer.cut());
        peers.len()
    }

    /// Changes the hub and sends the resulting frames.
    pub fn with_hub<R>(&self, change: impl FnOnce(&mut Hub) -> R) -> R {
        let mut state = self.state.lock();
        let result = change(&mut state.hub);
        state.flush();
        result
    }
}

impl State {
    fn add_user(&mut self, user: User, password: &str) -> Result<(), RpcError> {
        let username = user.username.clone();
        self.hub.add_user(user)?;
        for channel in &self.channels {
            self.hub.join(&username, channel.as_str())?;
        }
        self.passwords.insert(username, Secret::from(password));
        self.flush();
        Ok(())
    }

    fn peers_of(&self, username: &str) -> Vec<Arc<Peer>> {
        let of_user = |peer: &&Arc<Peer>| {
            let user = self.hub.user_of(peer.id());
            user.is_some_and(|user| user.username == username)
        };
        self.peers.values().filter(of_user).cloned().collect()
    }

    /// Hands the hub's frames to the connections. Pushing does not wait, so it happens under the
    /// lock, which keeps the order.
    fn flush(&mut self) {
        while let Some((conn, text)) = self.hub.poll_transmit() {
            if let Some(peer) = self.peers.get(&conn) {
                peer.push(text);
            }
        }
    }
}

impl Backend for MemoryBackend {
    async fn login(
        &self,
        _: &Arc<Peer>,
        username: &str,
        password: &Secret<Str>,
    ) -> Result<User, RpcError> {
        let mut state = self.state.lock();
        let right = match state.passwords.get(username) {
            Some(known) => {
                constant_time_eq(known.expose().as_bytes(), password.expose().as_bytes())
            }
            None if state.open && is_username(username) => {
                let user = User::new(username, username);
                state.add_user(user, password.expose())?;
                true
            }
            None => false,
        };
        let user = state.hub.user(username).filter(|_| right);
        user.cloned()
            .ok_or_else(|| RpcError::new("invalid credentials"))
    }

    async fn logged_in(&self, peer: &Arc<Peer>, user: &User) {
        let mut state = self.state.lock();
        // A second login on one connection replaces the first.
        state.hub.disconnect(peer.id());
        if state.hub.connect(peer.id(), &user.username).is_ok() {
            state.peers.insert(peer.id(), Arc::clone(peer));
        }
    }

    async fn call(
        &self,
        peer: &Arc<Peer>,
        call: &Call,
        reply: CallReply<'_>,
    ) -> Result<Replied, RpcError> {
        let mut state = self.state.lock();
        let result = state.hub.handle(peer.id(), call);
        state.flush();
        drop(state);
        reply.send(&result?)
    }

    async fn disconnected(&self, peer: &Arc<Peer>) {
        let mut state = self.state.lock();
        state.hub.disconnect(peer.id());
        state.peers.remove(&peer.id());
    }
}
