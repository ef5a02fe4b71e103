//! [`NatsRunner`]: the task between a node and NATS.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_nats::connection::State as Line;
use async_nats::{Message, Subscriber};
use bytes::Bytes;
use futures_util::future::{AbortHandle, BoxFuture, FutureExt};
use futures_util::stream::{Abortable, BoxStream, FuturesUnordered, SelectAll, StreamExt};
use rpc_core::Instant;
use rpc_core::cluster::Fill;
use rpc_core::net::nats::{Change, Watch};
use rpc_core::net::time;
use rpc_core::{CloseFrame, Str};
use tokio::sync::Semaphore;
use tokio::time::{sleep, sleep_until};

use super::state::{Phase, Shared, node};
use super::store::{Page, Store, live, public, user_of};
use crate::cluster::{Membership, NodeConfig, Request, Seen, SendId, SendReply};
use crate::id::ChannelUid;

/// How many reads are open at NATS at once.
const MAX_READS: usize = 64;
/// How many messages are taken from NATS before something else is done.
const BATCH: usize = 64;
/// How long to wait before NATS is asked again for something that has failed.
const RETRY: Duration = Duration::from_millis(500);
/// The close code of a server that restarts.
const SERVICE_RESTART: u16 = 1012;

/// The task between a [`NatsBackend`](super::NatsBackend) and NATS.
#[must_use = "without `run` no call ends"]
pub struct NatsRunner {
    shared: Arc<Shared>,
    config: NodeConfig,
}

/// Where a message comes from.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Source {
    Channel(ChannelUid),
    /// Changes of users' records, and questions whether a user is online. One subscription for all: each
    /// takes some KiB.
    Users,
    /// Who was let in at other nodes.
    Proofs,
}

/// What NATS has answered.
enum Done {
    Subscribed(Source, Option<Subscriber>),
    Opened(ChannelUid, u64, Option<Seen>),
    Filled(ChannelUid, Fill, Page),
    Stored(SendId, u64, SendReply),
    Member(Membership),
    Probed(Instant, u128),
    Checked(u128),
    Public(Option<Box<Watch>>),
    Nothing,
}

/// One life of the node, from the first contact with NATS to the loss of the last.
struct Life {
    shared: Arc<Shared>,
    reads: Arc<Semaphore>,
    feeds: SelectAll<BoxStream<'static, (Source, Message)>>,
    subscribed: HashMap<Source, AbortHandle>,
    working: FuturesUnordered<BoxFuture<'static, Done>>,
    public: Option<Box<Watch>>,
    /// When the stream was created.
    created: Option<u128>,
}

impl NatsRunner {
    pub(super) const fn new(shared: Arc<Shared>, config: NodeConfig) -> Self {
        Self { shared, config }
    }

    /// Runs the node until the future is dropped.
    ///
    /// # Cancel safety
    /// Dropping the future stops the node: calls are not answered any more.
    pub async fn run(self) {
        let mut nats = self.shared.store.nats.clone();
        loop {
            tracing::info!(node = %nats.node(), "the node is in the cluster");
            Life::new(Arc::clone(&self.shared)).run().await;
            tracing::error!(node = %nats.node(), "the node has lost its cluster");
            self.end();
            while self.shared.store.created().await.is_none() {
                sleep(RETRY).await;
            }
            nats = nats.with_new_node();
            self.shared.with(|state| {
                state.node = node(nats.node(), self.config);
                state.is_lost = false;
            });
            self.shared.phase.send_replace(Phase::Starting);
        }
    }

    /// Sends everybody away.
    fn end(&self) {
        self.shared.phase.send_replace(Phase::Lost);
        self.shared.with(|state| {
            state.node.end();
            state.logins.clear();
            state.ready.clear();
            for (_, peer) in state.peers.drain() {
                peer.close(CloseFrame::new(SERVICE_RESTART, "the node restarts"));
            }
        });
    }
}

impl Life {
    fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            reads: Arc::new(Semaphore::new(MAX_READS)),
            feeds: SelectAll::new(),
            subscribed: HashMap::new(),
            working: FuturesUnordered::new(),
            public: None,
            created: None,
        }
    }

    async fn run(mut self) {
        let shared = Arc::clone(&self.shared);
        let mut gaps = shared.store.nats.gaps();
        gaps.mark_unchanged();
        self.watch_public();
        self.check();
        self.subscribe(Source::Proofs, shared.store.of_proofs("*"));
        loop {
            let timeout = {
                let mut state = shared.lock();
                if state.is_lost {
                    return;
                }
                while let Some(request) = state.node.poll_request() {
                    self.carry_out(request);
                }
                state.node.poll_timeout()
            };
            tokio::select! {
                () = shared.changed.notified() => {}
                Some(message) = self.feeds.next(), if !self.feeds.is_empty() => {
                    self.deliver(message);
                }
                Some(done) = self.working.next(), if !self.working.is_empty() => {
                    self.done(done);
                }
                change = next_change(&mut self.public) => self.changed(change),
                Ok(()) = gaps.changed() => self.check(),
                () = until(timeout) => {
                    shared.change(|state| state.node.handle_timeout(time::now()));
                }
            }
        }
    }

    /// Starts what the node asks for. Nothing here waits.
    fn carry_out(&mut self, request: Request) {
        let store = self.shared.store.clone();
        match request {
            Request::Open { channel, ticket } => {
                let subject = store.live(&channel);
                self.subscribe(Source::Channel(channel.clone()), subject);
                self.read(async move {
                    let last = store.last_of(&channel).await?;
                    Some(Done::Opened(channel, ticket, last))
                });
            }
            Request::Close { channel } => {
                let ended = self.subscribed.remove(&Source::Channel(channel));
                _ = ended.inspect(AbortHandle::abort);
            }
            Request::Watch { username } => {
                self.subscribe(Source::Users, store.of_users());
                self.member(username);
            }
            Request::Fill {
                channel,
                fill,
                seen,
            } => self.read(async move {
                let page = store.fill(&channel, fill, &seen).await?;
                Some(Done::Filled(channel, fill, page))
            }),
            Request::Publish {
                id,
                attempt,
                channel,
                key,
                event,
            } => self.work(async move {
                // What waits for a connection could still be sent when nobody counts on it.
                let reply = match is_connected(&store) {
                    true => store.publish(&channel, &key, event.into_bytes()).await,
                    false => SendReply::Unknown,
                };
                Done::Stored(id, attempt, reply)
            }),
            Request::Cast { channel, event } => {
                let subject = store.live(&channel);
                let client = store.nats.client();
                // If it would have to wait it is dropped.
                if is_connected(&store) {
                    let _ = client.publish(subject, event.into_bytes()).now_or_never();
                }
            }
            Request::Probe => self.read(async move {
                let asked = time::now();
                let created = store.created().await?;
                Some(Done::Probed(asked, created))
            }),
        }
    }

    fn work(&mut self, work: impl Future<Output = Done> + Send + 'static) {
        self.working.push(work.boxed());
    }

    /// Reads from NATS. The node asks again for what fails.
    fn read(&mut self, work: impl Future<Output = Option<Done>> + Send + 'static) {
        let reads = Arc::clone(&self.reads);
        self.work(async move {
            let _permit = reads.acquire().await;
            work.await.unwrap_or(Done::Nothing)
        });
    }

    fn member(&mut self, username: Str) {
        let store = self.shared.store.clone();
        self.read(async move {
            let known = store.user(&username).await.ok()??;
            Some(Done::Member(known.membership()))
        });
    }

    /// Subscribes before anything that is asked later, unless that is done.
    fn subscribe(&mut self, source: Source, subject: String) {
        if self.subscribed.contains_key(&source) {
            return;
        }
        let store = self.shared.store.clone();
        let mut subscribing = async move { store.subscribe(subject).await }.boxed();
        match subscribing.as_mut().now_or_never() {
            Some(subscriber) => self.add(source, subscriber),
            // The client's queue is full. The node asks again for what it opens.
            None => self.work(async move { Done::Subscribed(source, subscribing.await) }),
        }
    }

    fn add(&mut self, source: Source, subscriber: Option<Subscriber>) {
        let Some(subscriber) = subscriber else { return };
        let (handle, registration) = AbortHandle::new_pair();
        if let Some(before) = self.subscribed.insert(source.clone(), handle) {
            before.abort();
        }
        let messages = subscriber.map(move |message| (source.clone(), message));
        self.feeds
            .push(Abortable::new(messages, registration).boxed());
    }

    /// Takes what has come from NATS, under one lock.
    fn deliver(&mut self, first: (Source, Message)) {
        let shared = Arc::clone(&self.shared);
        let mut members = Vec::new();
        shared.change(|state| {
            let (mut next, mut taken) = (Some(first), 0);
            while let Some((source, message)) = next {
                taken += 1;
                match source {
                    Source::Channel(channel) => {
                        if let Some(live) = live(message) {
                            state.node.handle_live(&channel, live, time::now());
                        }
                    }
                    Source::Proofs => {
                        let proof = message.payload[..].try_into().ok();
                        if let (Some(username), Some(proof)) = (user_of(&message.subject), proof) {
                            shared.store.passwords.remember(username, proof);
                        }
                    }
                    Source::Users => {
                        let username = user_of(&message.subject);
                        let online = username.filter(|it| state.node.is_online(it));
                        match (online, message.reply) {
                            (Some(_), Some(reply)) => {
                                let client = shared.store.nats.client();
                                let _ = client.publish(reply, Bytes::new()).now_or_never();
                            }
                            (Some(username), None) => members.push(username),
                            (None, _) => {}
                        }
                    }
                }
                state.flush();
                // What is read here has to be delivered here: it would come behind what follows it.
                let more = (taken < BATCH).then(|| self.feeds.next().now_or_never());
                next = more.flatten().flatten();
            }
        });
        for username in members {
            self.member(username);
        }
    }

    fn done(&mut self, done: Done) {
        let now = time::now();
        let shared = Arc::clone(&self.shared);
        shared.change(|state| match done {
            Done::Opened(channel, ticket, last) => {
                state.node.handle_open(&channel, ticket, last, now);
            }
            Done::Filled(channel, fill, Page::Messages(messages, through)) => {
                let node = &mut state.node;
                node.handle_fill(&channel, fill, messages, through, now);
            }
            Done::Filled(channel, _, Page::Replaced { after }) => {
                tracing::error!(%channel, "NATS has other messages than before: some may be missing");
                state.node.handle_replaced(&channel, after, now);
            }
            Done::Stored(id, attempt, reply) => {
                state.node.handle_stored(id, attempt, reply, now);
            }
            Done::Member(record) => state.node.handle_member(record, now),
            Done::Probed(asked, created) => {
                state.node.handle_probe(asked);
                if self.created.is_some_and(|known| known != created) {
                    self.check();
                }
            }
            Done::Checked(created) => {
                self.created = Some(created);
                state.node.check(now);
            }
            Done::Subscribed(source, subscriber) => self.add(source, subscriber),
            Done::Public(watch) => match watch {
                Some(watch) => self.public = Some(watch),
                None => self.watch_public(),
            },
            Done::Nothing => {}
        });
    }

    /// Writes what every node starts with, if it is gone, and reads what may be lost, as soon as NATS answers.
    fn check(&mut self) {
        let store = self.shared.store.clone();
        self.work(async move {
            loop {
                if let Some(created) = store.created().await
                    && store.put_again().await.is_ok()
                {
                    return Done::Checked(created);
                }
                sleep(RETRY).await;
            }
        });
    }

    fn watch_public(&mut self) {
        let store = self.shared.store.clone();
        self.work(async move {
            let watch = store.watch_public().await;
            if watch.is_err() {
                sleep(RETRY).await;
            }
            Done::Public(watch.ok().map(Box::new))
        });
    }

    /// Takes a change of the public channels.
    fn changed(&mut self, change: Option<Change>) {
        match change {
            Some(Change::Put(entry)) => {
                if let Some(channel) = public(&entry.key, &entry.value) {
                    let now = time::now();
                    self.shared
                        .change(|state| state.node.handle_public(&channel, entry.revision, now));
                }
            }
            Some(Change::Current) => {
                self.shared.phase.send_replace(Phase::Serving);
            }
            // Public channels stay.
            Some(Change::Deleted { .. }) => {}
            None => {
                self.public = None;
                self.watch_public();
            }
        }
    }
}

fn is_connected(store: &Store) -> bool {
    store.nats.client().connection_state() == Line::Connected
}

/// The next change; `None` after an error. Waits for ever without a watch.
async fn next_change(watch: &mut Option<Box<Watch>>) -> Option<Change> {
    match watch {
        Some(watch) => watch.next().await?.ok(),
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

impl fmt::Debug for NatsRunner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NatsRunner").finish_non_exhaustive()
    }
}
