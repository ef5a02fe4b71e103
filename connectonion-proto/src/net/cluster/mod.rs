//! Several hosts of one agent as one, on a [`Store`]: [`Cluster`].
//!
//! All hosts of a cluster have the agent's key, which is checked, and any of them accepts any client,
//! so that any load balancer will do. A session has one owner at a time, which runs its agent and
//! writes its records.
//! A client that comes to another host is passed on: that host asks the owner, through the store, for a
//! ticket that counts once, opens a WebSocket to the [address](ClusterOptions::advertise) of the owner with
//! it, and copies messages both ways. To the owner the connection is the client's own, with its address and
//! its request. The store carries no frames.
//!
//! # What holds
//!
//! - A prompt is acknowledged when the store has it, and so is a result before its OUTPUT. What is
//!   acknowledged survives every host.
//! - While the store has no room, an OUTPUT is sent all the same, and stored
//!   [later](crate::hub::HubConfig::store_again), at the latest when its host shuts down. If the host
//!   dies or loses its lease before, the next one finds the prompt without a result.
//! - A host shows that it is alive by a lease. When an owner dies, another host becomes the owner of
//!   its sessions as soon as the lease is over; a client that comes earlier waits for that. The new
//!   owner finds a session as one host finds it after a kill: the conversation up to the last prompt,
//!   and the prompts that were acknowledged. With
//!   [`max_reruns`](crate::hub::HubConfig::max_reruns) it runs them again, from the beginning and
//!   without waiting for a client: what the agent did before may be done twice. A client that comes
//!   back finds the run, or its result in the conversation.
//! - Events of a run are stored as they come, the first ones within the bounds of a session's
//!   [log](crate::hub::HubConfig::log). They are sent without waiting for that, so the last
//!   moments of a host are missing. If the run begins again, a client resumes among the events that are
//!   stored and gets each once, and then those of the new run. One that names an event which is not
//!   stored has seen the others. If the run does not begin again, its steps are in the `trace` of the
//!   conversation. What is over with its host is not stored: questions, parts of texts, changes of the
//!   mode, `session_sync`.
//! - The hosts notice within a third of the lease that one of them is gone, and take over its sessions
//!   a few at a time, as long as they have room for more sessions and runs. Those without a run to
//!   begin again have no owner until a client comes.
//! - An owner that was only paused is refused by the store from its first write on. It stops the
//!   run and closes the session's connections with 1012, without acknowledging anything more.
//! - A host that cannot renew its lease in time, because it does not reach the store or because that has
//!   no room at all, gives up all its sessions, and serves again, under a new name, when it can. Its
//!   server answers `/ready` with 503 meanwhile, and clients that want a new session wait for
//!   [`patience`](ClusterOptions::patience), before they are closed with 1013.
//! - A connection is passed on once. Its host closes it with 1012 when the session has another owner, also
//!   where the former one is only paused, or when the owner is gone.
//! - An owner that a host does not reach gives up a session that no one else uses, which that host then serves
//!   itself. It refuses the client of any other session with 1013. At its start each host tries the way to
//!   another one and back, and the log says which way is closed.
//! - Clients that ask several hosts for one session without an owner, at the same moment, are served
//!   by the host that becomes its owner. The others close with 1012, and find the owner when they
//!   connect again.
//! - A signature that counts [once](crate::trust::AccessControl::with_used_signatures) does so in the whole cluster. That
//!   takes a request to the store for each signed command; while the store does not answer, they are refused.
//!
//! # What does not
//!
//! - Files of prompts are saved at the host that serves the session. An agent that needs them after
//!   that host's death needs a shared folder.
//! - The lists of contacts, blocked clients and administrators belong to each host: give all hosts
//!   the same, and administrate each. An invite code counts at every host.
//! - A wrong clock at a host makes times in records wrong. Signatures are judged by the clock of the host
//!   that a client comes to, also if another one serves the session.
//! - Upgrade requests that are passed on have no extensions, and only headers that are text.
//!
//! # Trust
//!
//! Who may publish under the prefix of the cluster can do what a host can: open connections with any
//! address, and write sessions. Give the hosts an account of their own. Session ids become part of
//! subjects [encoded](rpc_core::store::token).

mod address;
mod forward;
mod ingress;
pub(super) mod node;
mod peers;
mod recovery;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use rpc_core::cluster::{LeaseConfig, LeaseLost, NodeLease};
use rpc_core::net::server::Tickets;
use rpc_core::store::{Bucket, BucketConfig, Messages, SessionLogConfig, Store, StoreError};
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::address::Links;

use self::node::{Member, Node};
use self::peers::Question;
use super::HostRuntime;
use super::sessions::{Sessions, log_config};
use crate::auth::Address;
use crate::hub::Hub;
use crate::limits::{MAX_CLIENT_MESSAGE, SIGNATURE_WINDOW};

pub(super) use peers::Arrival;

/// The bucket of the owners of sessions.
const OWNERS: &str = "onion_owners";
/// The key of the agent's address in it.
const AGENT: &str = "agent.address";
/// How long a host that leaves waits for the store.
const LEAVE: Duration = Duration::from_secs(2);

rpc_core::config! {
    /// The configuration of a [`Cluster`]; the same at all hosts, but for what says otherwise.
    #[derive(Clone, Debug)]
    pub struct ClusterOptions {
        /// How long a host counts as alive without a sign of life: as long as its sessions wait for
        /// another one when it dies. Default 10 s.
        pub lease: LeaseConfig = LeaseConfig::default(),
        /// How much longer than the lease a client waits for the owner of its session, or how long with
        /// a new session until its host is in the cluster, before it is refused with "try again later".
        /// Default 5 s.
        pub patience: Duration = Duration::from_secs(5),
        /// The URL at which other hosts reach this one, such as `wss://one.example`, of each host its own. The
        /// certificate of a `wss` URL is checked for its name. Default `None`: the address listened at, without
        /// which a [mounted](rpc_core::net::server::ProtocolServer::mount) host is not reached. A host does not
        /// start that listens at an unspecified address, or at a loopback one while the store is on another
        /// machine, and has no URL.
        pub advertise: Option<String> = None,
        /// The longest record of a session in bytes. Default 64 MiB.
        pub max_record_bytes: usize = MAX_CLIENT_MESSAGE,
        /// The largest size of the log of sessions in bytes, beyond which prompts are refused. What
        /// keeps the hosts alive has room beside it. Applies to a log that does not exist yet. Default
        /// `None`: 3 GiB, or the half of it, or the half of that, for which the store has room now.
        pub max_bytes: Option<u64> = None,
    }
}

/// A host's place among the hosts of its agent. Cheap to clone. Give it to
/// [`RuntimeOptions::cluster`](super::RuntimeOptions::cluster).
///
/// ```no_run
/// use connectonion_proto::auth::Signer;
/// use connectonion_proto::net::ServerOptions;
/// use connectonion_proto::net::cluster::{Cluster, ClusterOptions};
/// use connectonion_proto::trust::TrustLevel;
/// use connectonion_proto::rpc_core::net::nats::{self, NatsConfig};
///
/// # async fn doc(key: Signer) -> Result<(), Box<dyn std::error::Error>> {
/// let store = nats::connect(NatsConfig::new("nats://127.0.0.1:4222")).await?;
/// let cluster = Cluster::open(store, *key.address(), ClusterOptions::default()).await?;
/// let mut options = ServerOptions::new(&key, TrustLevel::Careful);
/// options.runtime.cluster = Some(cluster);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Cluster {
    shared: Arc<Shared>,
}

struct Shared {
    store: Arc<dyn Store>,
    options: ClusterOptions,
    signatures: Bucket,
    member: Member,
    sessions: Arc<Sessions>,
    /// For the clients that other hosts pass on.
    tickets: Arc<Tickets>,
    links: Links,
}

impl Cluster {
    /// Opens the log and the buckets of the cluster of the agent with this address, and creates
    /// those that do not exist. The host joins the cluster when its server runs.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe. [`StoreError::Config`] if the hosts on this store serve an
    /// agent with another address, or have a shorter lease.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn open(
        store: Arc<dyn Store>,
        address: Address,
        options: ClusterOptions,
    ) -> Result<Self, StoreError> {
        check_agent(&store, address).await?;
        // Whether its bucket fits: joining comes later.
        drop(NodeLease::open(&store, options.lease).await?);
        let signatures = BucketConfig {
            max_age: Some(2 * SIGNATURE_WINDOW),
            ..BucketConfig::default()
        };
        let signatures = Bucket::open(&store, "onion_signatures", signatures).await?;
        let member = Member::new();
        let log = SessionLogConfig {
            max_bytes: options.max_bytes,
            max_owner_bytes: Some(u64::MAX),
            max_entry_bytes: options.max_record_bytes,
            ..log_config()
        };
        let sessions = Sessions::open(&*store, log, Some(member.clone())).await?;
        Ok(Self {
            shared: Arc::new(Shared {
                store,
                options,
                signatures,
                member,
                sessions: Arc::new(sessions),
                tickets: Arc::default(),
                links: Links::default(),
            }),
        })
    }

    /// Returns whether this host is a part of the cluster at the moment.
    #[must_use]
    pub fn is_joined(&self) -> bool {
        self.shared.member.current().is_some()
    }

    /// Waits until this host is a part of the cluster.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn joined(&self) {
        self.shared.member.joined().await;
    }

    /// Waits until this host cannot serve again by itself: the store denies it what it needs, or is configured
    /// for something else. Returns why. Waits for ever while that does not happen.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn failed(&self) -> StoreError {
        self.shared.member.failed().await
    }

    /// Leaves the cluster while it [runs](Self::run), so that other hosts take over at once.
    pub(super) async fn leave(&self) {
        if let Some(node) = self.shared.member.current() {
            node.lease.release();
            let _ = timeout(LEAVE, self.shared.member.left()).await;
        }
    }

    /// Keeps this host in the cluster.
    pub(super) async fn run(&self, runtime: HostRuntime) -> Infallible {
        let Shared {
            store,
            options,
            member,
            ..
        } = &*self.shared;
        loop {
            let open = || Node::open(store, options);
            let (node, renewal, messages) = member.open(open).await;
            let work = async {
                tokio::select! {
                    () = self.answer_all(&node, &runtime, messages) => {}
                    never = node.watch_nodes(&runtime, options.lease.lease / 3) => match never {},
                }
            };
            let why = member.live(Arc::clone(&node), renewal, work).await;
            self.shared.tickets.clear();
            node.forwards.close();
            self.shared.sessions.forget_all();
            runtime.with_hub(Hub::give_up_all);
            if why == LeaseLost::Released {
                return std::future::pending().await;
            }
            tracing::warn!(%why, "this host has left the cluster");
        }
    }

    /// Answers the questions of other hosts, until the connection to the store is closed.
    async fn answer_all(&self, node: &Arc<Node>, runtime: &HostRuntime, mut messages: Messages) {
        let mut tasks = JoinSet::new();
        tasks.spawn(self.clone().probe_another(Arc::clone(node)));
        while let Some(message) = messages.next().await {
            while tasks.try_join_next().is_some() {}
            let question = serde_json::from_slice::<Question>(&message.payload);
            let (Some(reply_to), Ok(question)) = (message.reply_to, question) else {
                continue;
            };
            let (cluster, runtime) = (self.clone(), runtime.clone());
            tasks.spawn(async move {
                if let Some(answer) = cluster.answer(&runtime, &question).await {
                    let answer = serde_json::to_vec(&answer).unwrap_or_default();
                    cluster.shared.store.answer(&reply_to, answer.into());
                }
                if let Question::Dial(url) = question {
                    cluster.probe(url).await;
                }
            });
        }
    }
}

/// Checks that the sessions on this store are those of the agent with this address.
async fn check_agent(store: &Arc<dyn Store>, address: Address) -> Result<(), StoreError> {
    // Beside the owners of sessions, whose keys are one token.
    let owners = Bucket::open(store, OWNERS, BucketConfig::default()).await?;
    let ours = address.to_string();
    match owners.create(AGENT, ours.clone().into()).await {
        Err(StoreError::Conflict) => {}
        outcome => return outcome.map(drop),
    }
    let known = owners.get(AGENT).await?;
    let known = known.map(|entry| String::from_utf8_lossy(&entry.value).into_owned());
    match known.filter(|known| *known != ours) {
        None => Ok(()),
        Some(known) => Err(StoreError::Config {
            message: format!(
                "the hosts under this prefix serve the agent {known}, and this one has the key of {ours}: give all hosts of an agent the same key, and another agent another prefix"
            ),
        }),
    }
}

rpc_core::debug_fields!([] Cluster, this => {
    store: this.shared.store,
    is_joined: this.is_joined(),
});
