//! [`ClusterBackend`]: one chat platform on several servers, which share a [`Store`].

mod changes;
mod password;
mod records;
mod runner;
mod state;

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use rpc_core::net::time::{self, timeout};
use rpc_core::store::{Store, StoreError};
use rpc_core::{CloseFrame, Secret, Str};
use tokio::sync::oneshot;

use super::{Backend, CallReply, Peer, Replied};
use crate::cluster::{Handled, NodeConfig, Publish, SendError, SendId};
use crate::error::RpcError;
use crate::frame::{Call, User};
use crate::hub::{Data, HubAnswer, HubConfig, NO_SUCH_USER, NOT_LOGGED_IN, exists};
use crate::id::{ChannelUid, is_username};

use records::{Records, Saved};
use state::Shared;

pub use records::ClusterError;
pub use runner::ClusterRunner;

/// Most messages of this node whose outcome is open; others are refused.
const MAX_SENDS: usize = 10_000;

rpc_core::config! {
    /// The configuration of a [`ClusterBackend`]. All nodes have the same.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ClusterOptions {
        /// The limits of this node's frames.
        pub hub: HubConfig = HubConfig::default(),
        /// How long a message is tried to be stored, after which its sender learns that the outcome is unknown.
        /// Default 20 s. Keep it well below the 2 minutes for which the store remembers what it has.
        pub send_timeout: Duration = Duration::from_secs(20),
        /// How long the store may be silent before the node gives up and closes its connections, so that
        /// clients go to another one. Default 30 s.
        pub max_outage: Duration = Duration::from_secs(30),
        /// Accepts everyone: a login with an unknown name creates a user with that password. Default
        /// no.
        pub open: bool = false,
        /// How long a login or a look-up waits for the store. Default 10 s.
        pub timeout: Duration = Duration::from_secs(10),
        /// How long messages are kept to fill the gaps of nodes, from the first start of the
        /// cluster on. No client reads them. Default one day.
        pub max_age: Duration = Duration::from_secs(86_400),
        /// The bytes of all messages that are kept, beyond which further ones are refused, from the first
        /// start of the cluster on. Default `None`: what the store allows.
        pub max_bytes: Option<u64> = None,
        /// How many rounds of PBKDF2-HMAC-SHA256 a stored password has. Default 600,000, as OWASP
        /// recommends: some tenths of a second of a processor at the first login. Who was admitted is
        /// known to all nodes from then on, until they restart, also if the store loses the user. What was
        /// stored with fewer rounds is stored again at the next login.
        pub password_rounds: u32 = password::ROUNDS,
    }
}

/// One of several servers that are one chat platform, as [`MemoryBackend`](super::MemoryBackend) is
/// one alone.
///
/// Users, channels and memberships are kept in the store, passwords as salted hashes. Every user is a
/// member of every channel that was [added](Self::put_channel).
///
/// - Each channel has one order, for all members on all nodes, the sender included. A sender is
///   answered when its message is stored.
/// - Partial messages and typing indicators are not stored. They keep their place among the final
///   messages of their sender, and are dropped from a gap of the channel on until a final message has come
///   after it.
/// - While the store is gone, messages wait up to
///   [20 s](ClusterOptions::send_timeout), then fail with an answer that says whether
///   they may have been delivered. Clients that stay connected miss nothing. A login is refused by
///   closing the connection with 1013, so that a client tries again, perhaps at another node.
/// - A node that has not reached the store for
///   [30 s](ClusterOptions::max_outage) closes its connections with 1012. It comes
///   back, under a new id, when the store does.
/// - Every 5 s, and after each gap, the node compares the last message of every channel with what it has
///   delivered, and reads what differs. While that fails it is not [ready](Self::ready).
/// - The store may lose its data, or come back with an older copy of them. What is stored then reaches the clients
///   that are connected, each message once, and none from before. Within 5 s they are closed with 1012: some
///   messages may be missing, and the protocol has no event for that.
/// - Messages are as safe as the store keeps them: on NATS, see `NatsConfig::replicas`.
///
/// ```
/// use std::sync::Arc;
/// use snek_proto::net::{ClusterBackend, ClusterOptions, Server, ServerOptions};
/// use snek_proto::rpc_core::store::{MemoryStore, Store};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // With feature `nats`: nats::connect(NatsConfig::new("nats://127.0.0.1:4222")).await?
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// let options = ClusterOptions { open: true, ..ClusterOptions::default() };
/// for _node in 0..2 {
///     let (backend, runner) = ClusterBackend::open(Arc::clone(&store), options).await?;
///     tokio::spawn(runner.run());
///     backend.put_channel("general", "General").await?;
///     let server = Server::bind("127.0.0.1:0", backend, ServerOptions::default()).await?;
///     println!("a node listens on {}", server.url());
///     tokio::spawn(server.run());
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct ClusterBackend {
    shared: Arc<Shared>,
    options: ClusterOptions,
}

impl ClusterBackend {
    /// Opens the cluster, and creates what it keeps in the store at the first time.
    /// [Run](ClusterRunner::run) the runner: without it, no call ends.
    ///
    /// # Errors
    /// [`StoreError`]; see there whether retrying may help.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn open(
        store: Arc<dyn Store>,
        options: ClusterOptions,
    ) -> Result<(Self, ClusterRunner), StoreError> {
        let records = Arc::new(Records::open(store, &options).await?);
        let node = NodeConfig {
            hub: options.hub,
            send_timeout: options.send_timeout,
            max_outage: options.max_outage,
            max_sends: MAX_SENDS,
        };
        let shared = Arc::new(Shared::new(records, node));
        let runner = ClusterRunner::new(Arc::clone(&shared));
        Ok((Self { shared, options }, runner))
    }

    /// Returns whether this node serves; otherwise why not, in a few words. It joins again by itself: the
    /// process need not be restarted.
    ///
    /// # Errors
    /// The reason. New connections should go to another node.
    pub fn ready(&self) -> Result<(), &'static str> {
        self.shared.ready()
    }

    /// Returns whether a user has a connection to any node. A node that is dead or does not answer
    /// within a second has no users; so `false` can take this second.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]: this node has no connection to the store. Retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn is_online(&self, username: &str) -> Result<bool, ClusterError> {
        Ok(self.shared.is_online(username).await?)
    }

    /// Waits for the outcome of a message, and stores it, if that is to be done here, without a way through the
    /// runner.
    async fn outcome(
        &self,
        publish: Option<(u64, Publish)>,
        mut outcome: oneshot::Receiver<Result<(), SendError>>,
    ) -> Result<(), SendError> {
        let ended = tokio::select! {
            biased;
            ended = &mut outcome => ended,
            () = self.store(publish) => outcome.await,
        };
        ended.unwrap_or(Err(SendError::Unknown))
    }

    async fn store(&self, publish: Option<(u64, Publish)>) {
        if let Some((life, publish)) = publish {
            let (shared, id) = (&*self.shared, publish.id);
            let mut storing = Storing {
                shared,
                life,
                id,
                result: None,
            };
            storing.result = Some(shared.records.publish(&publish).await);
        }
    }

    /// Reads a user's record, in time.
    async fn look_up(&self, username: &str) -> Result<Option<Saved>, ClusterError> {
        self.in_time(self.shared.records.user(username)).await
    }

    async fn in_time<T>(
        &self,
        work: impl Future<Output = Result<T, ClusterError>>,
    ) -> Result<T, ClusterError> {
        let done = timeout(self.options.timeout, work).await;
        done.unwrap_or_else(|_| Err(StoreError::unavailable("no answer in time").into()))
    }

    async fn check(
        &self,
        username: &str,
        password: &Secret<Str>,
    ) -> Result<Option<Saved>, ClusterError> {
        let mut known = match self.look_up(username).await {
            // A name that is too long has no owner.
            Err(ClusterError::Name(_)) => return Ok(None),
            known => known?,
        };
        if known.is_none() && self.options.open && is_username(username) {
            let user = User::new(username, username);
            let added = self.in_time(self.shared.records.add_user(&user, password));
            match added.await {
                Ok(added) => return Ok(Some(added)),
                // On another node someone was faster.
                Err(ClusterError::Hub(error)) if error == exists("user") => {
                    known = self.look_up(username).await?;
                }
                Err(error) => return Err(error),
            }
        }
        let Some(known) = known else {
            return Ok(None);
        };
        let fits = known.fits(&self.shared.records, password).await;
        Ok(fits.then_some(known))
    }
}

/// A message that is stored for its sender; by the runner, if the sender leaves before.
struct Storing<'a> {
    shared: &'a Shared,
    life: u64,
    id: SendId,
    result: Option<Result<(), SendError>>,
}

impl Drop for Storing<'_> {
    fn drop(&mut self) {
        self.shared.with(|state| {
            let (node, id) = (&mut state.node, self.id);
            match self.result.take() {
                // Numbers of messages begin again with each node.
                _ if state.life != self.life => {}
                Some(result) => node.handle_stored(id, result, time::now()),
                None => node.store_again(id),
            }
        });
    }
}

/// Sends a client away that may come back, or go to another node.
fn send_away(peer: &Peer, why: &'static str, error: &dyn fmt::Display) -> RpcError {
    tracing::warn!(peer = ?peer.id(), %error, "a login is not possible");
    peer.close(CloseFrame::new(CloseFrame::TRY_AGAIN, why));
    RpcError::new(why)
}

fn unavailable(peer: &Peer, error: &dyn fmt::Display) -> RpcError {
    send_away(peer, "the cluster does not answer", error)
}

impl Backend for ClusterBackend {
    async fn login(
        &self,
        peer: &Arc<Peer>,
        username: &str,
        password: &Secret<Str>,
    ) -> Result<User, RpcError> {
        let serving = timeout(self.options.timeout, self.shared.is_serving());
        if serving.await != Ok(true) {
            return Err(unavailable(peer, &"this node is not in the cluster"));
        }
        match self.check(username, password).await {
            Ok(Some(known)) => {
                let user = known.user();
                let record = known.membership();
                self.shared.lock().logins.insert(peer.id(), record);
                Ok(user)
            }
            Ok(None) => Err(RpcError::new("invalid credentials")),
            Err(error @ ClusterError::Store(StoreError::Full { .. })) => Err(send_away(
                peer,
                "the cluster has no room for a new user",
                &error,
            )),
            Err(error) => Err(unavailable(peer, &error)),
        }
    }

    async fn logged_in(&self, peer: &Arc<Peer>, _: &User) {
        let (ready, is_ready) = oneshot::channel();
        let connected = self.shared.with(|state| {
            let Some(record) = state.logins.remove(&peer.id()) else {
                return Err(NOT_LOGGED_IN);
            };
            // A second login on one connection replaces the first.
            state.node.disconnect(peer.id());
            state.peers.insert(peer.id(), Arc::clone(peer));
            state.ready.insert(peer.id(), ready);
            state.node.connect(peer.id(), record, time::now())
        });
        if let Err(error) = connected {
            unavailable(peer, &error);
        } else if !matches!(timeout(self.options.timeout, is_ready).await, Ok(Ok(()))) {
            unavailable(peer, &"its channels are not open in time");
        }
    }

    async fn call(
        &self,
        peer: &Arc<Peer>,
        call: &Call,
        reply: CallReply<'_>,
    ) -> Result<Replied, RpcError> {
        let (sent, outcome) = oneshot::channel();
        let handled = self.shared.with(|state| {
            let handled = state.node.handle_call(peer.id(), call, time::now())?;
            let mut publish = None;
            if let Handled::Sending(id) = handled {
                state.sends.insert(id, sent);
                publish = state.node.take_publish(id).map(|it| (state.life, it));
            }
            Ok::<_, RpcError>((handled, publish))
        });
        let (handled, publish) = handled?;
        match handled {
            Handled::Answer(answer) => reply.send(&answer),
            Handled::Sending(_) => {
                let sent = self.outcome(publish, outcome).await;
                sent.map_err(|error| RpcError::new(error.to_string()))?;
                let Call::SendMessage { channel_uid, .. } = call else {
                    return Err(RpcError::new("internal error"));
                };
                let channel_uid = ChannelUid::new(channel_uid);
                reply.send(&HubAnswer(Data::Sent { channel_uid }))
            }
            Handled::Lookup(username) => match self.look_up(&username).await {
                Ok(Some(known)) => reply.send(&HubAnswer(Data::User(known.user()))),
                Ok(None) | Err(ClusterError::Name(_)) => Err(NO_SUCH_USER),
                Err(error) => {
                    tracing::warn!(%error, "a user cannot be looked up");
                    Err(RpcError::new("the cluster does not answer"))
                }
            },
        }
    }

    async fn disconnected(&self, peer: &Arc<Peer>) {
        self.shared.with(|state| {
            state.node.disconnect(peer.id());
            state.peers.remove(&peer.id());
            state.ready.remove(&peer.id());
            state.logins.remove(&peer.id());
        });
    }
}
