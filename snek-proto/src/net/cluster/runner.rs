//! [`ClusterRunner`]: the task between a node and its store.

use std::collections::{HashMap, HashSet};
use std::future::{Future, pending};
use std::iter;
use std::ops::Range;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{AbortHandle, BoxFuture, FutureExt};
use futures_util::stream::{Abortable, BoxStream, FuturesUnordered, SelectAll, StreamExt};
use rpc_core::net::entropy;
use rpc_core::net::time::{self, sleep};
use rpc_core::store::{Change, Fill, Message, Messages, StoreError, Watch};
use rpc_core::{CloseFrame, Instant, Str};
use tokio::sync::{Semaphore, watch};
use tokio::task::unconstrained;

use super::password::Verified;
use super::records::{self, PROOFS, Page, USERS, name_in, public, read_live, uid_of};
use super::state::{Phase, Shared, State, node};
use crate::cluster::{Heads, Membership, Request, Seen, SendError, SendId};
use crate::hub::ConnId;
use crate::id::ChannelUid;

/// How many reads are open at the store at once.
const MAX_READS: usize = 64;
/// How much is taken from the store before something else is done.
const BATCH: usize = 64;
/// How long to wait before the store is asked again for something that has failed.
const RETRY: Duration = Duration::from_millis(500);
/// The close code of a server that restarts.
const SERVICE_RESTART: u16 = 1012;
/// When those clients are closed that may have missed something, in milliseconds: not before they get what
/// follows, and not all at once, because each login costs something.
const CLOSES: Range<u64> = 500..5_000;

/// The task between a [`ClusterBackend`](super::ClusterBackend) and its store.
#[derive(Debug)]
#[must_use = "without `run` no call ends"]
pub struct ClusterRunner {
    shared: Arc<Shared>,
}

/// Where a message comes from.
#[derive(Clone, PartialEq, Eq, Hash)]
enum Source {
    Channel(ChannelUid),
    /// Changes of users' records, and questions whether a user is online. One subscription for all: each
    /// takes some KiB.
    Users,
    /// Who has logged in at other nodes.
    Proofs,
}

/// What the store has answered.
enum Done {
    Subscribed(Source, Option<Messages>),
    Opened(ChannelUid, u64, Option<(Seen, u64)>),
    Filled(ChannelUid, Fill, Page),
    Stored(SendId, Result<(), SendError>),
    Member(Membership),
    Removed(Str),
    Probed(Instant, Option<Heads>),
    Leave(ConnId),
    Ensured,
    Failed(StoreError),
    Public(Option<Watch>),
    Nothing,
}

/// What comes from the store.
enum Input {
    Message(Source, Message),
    Done(Done),
}

/// One life of the node, from the first contact with the store to the loss of the last.
struct Life {
    shared: Arc<Shared>,
    reads: Arc<Semaphore>,
    feeds: SelectAll<BoxStream<'static, (Source, Message)>>,
    subscribed: HashMap<Source, AbortHandle>,
    working: FuturesUnordered<BoxFuture<'static, Done>>,
    public: Option<Watch>,
    gaps: watch::Receiver<u64>,
    /// When the log of messages was made.
    created: Option<u128>,
    /// The connections that are to be closed.
    leaving: HashSet<ConnId>,
    /// Why the node cannot heal.
    failed: Option<StoreError>,
}

impl ClusterRunner {
    pub(super) const fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    /// Runs the node until it cannot serve again by itself: the store denies it what it needs, or is
    /// configured for something else. Returns why.
    ///
    /// # Cancel safety
    /// Dropping the future stops the node: calls are not answered any more.
    pub async fn run(self) -> StoreError {
        loop {
            tracing::info!("the node joins the cluster");
            let end = Life::new(Arc::clone(&self.shared)).run().await;
            tracing::error!("the node has lost its cluster");
            self.end();
            if let Some(error) = end {
                return error;
            }
            while let Err(error) = self.shared.records.created().await {
                if error.is_permanent() {
                    return error;
                }
                sleep(RETRY).await;
            }
            self.shared.with(|state| {
                state.node = node(self.shared.config);
                state.life += 1;
                state.is_lost = false;
            });
            self.shared.phase.send_replace(Phase::Starting);
        }
    }

    /// Disconnects every client.
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
        let gaps = shared.records.store.gaps();
        Self {
            shared,
            gaps,
            reads: Arc::new(Semaphore::new(MAX_READS)),
            feeds: SelectAll::new(),
            subscribed: HashMap::new(),
            working: FuturesUnordered::new(),
            public: None,
            created: None,
            leaving: HashSet::new(),
            failed: None,
        }
    }

    /// Returns why the node cannot have another life.
    async fn run(mut self) -> Option<StoreError> {
        let shared = Arc::clone(&self.shared);
        self.gaps.mark_unchanged();
        self.watch_public();
        self.ensure();
        // Rings early rather than being set again for each deadline that moves.
        let mut alarm = pin!(sleep(Duration::ZERO));
        loop {
            // Before what follows the gap.
            if self.has_gap() {
                self.gaps.mark_unchanged();
                shared.change(|state| state.node.check(time::now()));
                self.ensure();
            }
            {
                let mut state = shared.lock();
                if state.is_lost {
                    return self.failed;
                }
                while let Some(request) = state.node.poll_request() {
                    self.carry_out(request);
                }
                let deadline = state.node.poll_timeout().map(Into::into);
                if let Some(at) = deadline
                    && (alarm.is_elapsed() || at < alarm.deadline())
                {
                    alarm.as_mut().reset(at);
                }
                state.alarm = alarm.deadline().into();
            }
            tokio::select! {
                () = shared.changed.notified() => {}
                Some(done) = self.working.next(), if !self.working.is_empty() => {
                    self.take(Input::Done(done));
                }
                Some((source, message)) = self.feeds.next(), if !self.feeds.is_empty() => {
                    self.take(Input::Message(source, message));
                }
                change = next_change(&mut self.public) => self.changed(change),
                Ok(()) = self.gaps.changed() => self.gaps.mark_changed(),
                () = &mut alarm => {
                    shared.change(|state| state.node.handle_timeout(time::now()));
                }
            }
        }
    }

    /// Starts what the node asks for. Nothing here waits.
    fn carry_out(&mut self, request: Request) {
        let records = Arc::clone(&self.shared.records);
        match request {
            Request::Open { channel, ticket } => {
                let subject = records::live(&channel);
                self.subscribe(Source::Channel(channel.clone()), subject);
                self.read(async move {
                    let last = records.last_of(&channel).await.ok()?;
                    Some(Done::Opened(channel, ticket, last))
                });
            }
            Request::Close { channel } => self.unsubscribe(channel),
            Request::Watch { username } => {
                self.subscribe(Source::Users, USERS.to_owned());
                self.member(username);
            }
            Request::Fill {
                channel,
                fill,
                history,
            } => {
                // What comes from another log is subscribed to again.
                self.subscribe(Source::Channel(channel.clone()), records::live(&channel));
                self.read(async move {
                    let page = records.fill(&channel, fill, history).await.ok()?;
                    Some(Done::Filled(channel, fill, page))
                });
            }
            Request::Publish(it) => self.work(async move {
                let result = records.publish(&it).await;
                Done::Stored(it.id, result)
            }),
            Request::Cast { channel, event } => {
                let subject = records::live(&channel);
                // If it would have to wait it is dropped.
                records.store.try_publish(&subject, event.into_bytes());
            }
            Request::Probe { compared } => self.work(async move {
                let asked = time::now();
                Done::Probed(asked, records.heads(compared).await.ok())
            }),
        }
    }

    fn work(&mut self, work: impl Future<Output = Done> + Send + 'static) {
        self.working.push(work.boxed());
    }

    /// Reads from the store. The node asks again for what fails.
    fn read(&mut self, work: impl Future<Output = Option<Done>> + Send + 'static) {
        let reads = Arc::clone(&self.reads);
        self.work(async move {
            let _permit = reads.acquire().await;
            work.await.unwrap_or(Done::Nothing)
        });
    }

    fn member(&mut self, username: Str) {
        let records = Arc::clone(&self.shared.records);
        self.read(async move {
            if let Some(known) = records.user(&username).await.ok()? {
                return Some(Done::Member(known.membership()));
            }
            let is_removed = records.is_removed(&username).await.ok()?;
            is_removed.then_some(Done::Removed(username))
        });
    }

    /// Subscribes before anything that is asked later, unless that is done.
    fn subscribe(&mut self, source: Source, pattern: String) {
        if self.subscribed.contains_key(&source) {
            return;
        }
        let records = Arc::clone(&self.shared.records);
        let mut subscribing = async move { records.store.subscribe(&pattern).await.ok() }.boxed();
        match subscribing.as_mut().now_or_never() {
            Some(messages) => self.add(source, messages),
            // What is read next is asked for behind it.
            None => self.work(async move { Done::Subscribed(source, subscribing.await) }),
        }
    }

    fn unsubscribe(&mut self, channel: ChannelUid) {
        let ended = self.subscribed.remove(&Source::Channel(channel));
        _ = ended.inspect(AbortHandle::abort);
    }

    fn add(&mut self, source: Source, messages: Option<Messages>) {
        let Some(messages) = messages else { return };
        let (handle, registration) = AbortHandle::new_pair();
        if let Some(before) = self.subscribed.insert(source.clone(), handle) {
            before.abort();
        }
        let messages = messages.map(move |message| (source.clone(), message));
        self.feeds
            .push(Abortable::new(messages, registration).boxed());
    }

    /// Takes what has come from the store, under one lock.
    fn take(&mut self, first: Input) {
        // What is read here has to be delivered here: it would come behind what follows it.
        let more = iter::from_fn(|| self.ready()).take(BATCH);
        let inputs: Vec<Input> = iter::once(first).chain(more).collect();
        let shared = Arc::clone(&self.shared);
        shared.change(|state| {
            for input in inputs {
                match input {
                    Input::Message(source, message) => self.deliver(state, source, message),
                    Input::Done(done) => self.done(state, done),
                }
                state.flush();
            }
        });
    }

    fn has_gap(&self) -> bool {
        self.gaps.has_changed().unwrap_or(false)
    }

    /// Returns what has come meanwhile.
    fn ready(&mut self) -> Option<Input> {
        if self.has_gap() {
            return None;
        }
        if let Some(Some(done)) = self.working.next().now_or_never() {
            return Some(Input::Done(done));
        }
        let (source, message) = self.feeds.next().now_or_never()??;
        Some(Input::Message(source, message))
    }

    fn deliver(&mut self, state: &mut State, source: Source, message: Message) {
        match source {
            Source::Channel(channel) => {
                if let Some(live) = read_live(message) {
                    state.node.handle_live(&channel, live, time::now());
                }
            }
            Source::Proofs => {
                let verified = Verified::decode(&message.payload);
                if let (Some(username), Some(verified)) = (name_in(&message.subject), verified) {
                    self.shared.records.passwords.remember(username, verified);
                }
            }
            Source::Users => {
                let username = name_in(&message.subject);
                let online = username.filter(|it| state.node.is_online(it));
                match (online, message.reply_to) {
                    (Some(_), Some(reply_to)) => {
                        self.shared.records.store.answer(&reply_to, Bytes::new());
                    }
                    (Some(username), None) => self.member(username),
                    (None, _) => {}
                }
            }
        }
    }

    fn done(&mut self, state: &mut State, done: Done) {
        let now = time::now();
        match done {
            Done::Opened(channel, ticket, last) => {
                state.node.handle_open(&channel, ticket, last, now);
            }
            Done::Filled(channel, fill, Page::Messages(messages, through)) => {
                let node = &mut state.node;
                node.handle_fill(&channel, fill, messages, through, now);
            }
            Done::Filled(channel, _, Page::Replaced { after }) => {
                tracing::error!(%channel, "the store has other messages than before: some may be missing");
                // What waits there is from before.
                self.unsubscribe(channel.clone());
                for conn in state.node.handle_replaced(&channel, after, now) {
                    self.leave(conn);
                }
            }
            Done::Leave(conn) => {
                self.leaving.remove(&conn);
                if let Some(peer) = state.peers.remove(&conn) {
                    peer.close(CloseFrame::new(
                        SERVICE_RESTART,
                        "messages may be missing: the store has lost some",
                    ));
                }
            }
            Done::Stored(id, result) => state.node.handle_stored(id, result, now),
            Done::Member(record) => state.node.handle_member(record, now),
            Done::Removed(username) => {
                for conn in state.node.remove_member(&username) {
                    if let Some(peer) = state.peers.remove(&conn) {
                        peer.close(CloseFrame::new(CloseFrame::POLICY, "the user was removed"));
                    }
                }
            }
            Done::Probed(asked, heads) => {
                if let Some(Heads { created, .. }) = heads
                    && self
                        .created
                        .replace(created)
                        .is_some_and(|it| it != created)
                {
                    self.ensure();
                }
                // What was sent before the answer is here.
                while let Some(Some((source, message))) =
                    unconstrained(self.feeds.next()).now_or_never()
                {
                    self.deliver(state, source, message);
                    state.flush();
                }
                state.node.handle_probe(asked, heads, now);
            }
            Done::Ensured => self.subscribe(Source::Proofs, PROOFS.to_owned()),
            Done::Failed(error) => {
                state.is_lost = true;
                self.failed = Some(error);
            }
            Done::Subscribed(source, messages) => self.add(source, messages),
            Done::Public(watch) => match watch {
                Some(watch) => self.public = Some(watch),
                None => self.watch_public(),
            },
            Done::Nothing => {}
        }
    }

    /// Makes what the store has lost, as soon as it answers.
    fn ensure(&mut self) {
        let records = Arc::clone(&self.shared.records);
        self.work(async move {
            loop {
                match records.ensure().await {
                    Ok(()) => return Done::Ensured,
                    Err(error) if error.is_permanent() => return Done::Failed(error),
                    Err(_) => sleep(RETRY).await,
                }
            }
        });
    }

    /// Closes a connection, at some time of [`CLOSES`].
    fn leave(&mut self, conn: ConnId) {
        if self.leaving.insert(conn) {
            let spread = entropy() % (CLOSES.end - CLOSES.start);
            let pause = Duration::from_millis(CLOSES.start + spread);
            self.work(async move {
                sleep(pause).await;
                Done::Leave(conn)
            });
        }
    }

    fn watch_public(&mut self) {
        let records = Arc::clone(&self.shared.records);
        self.work(async move {
            let watch = records.bucket.watch("p.*").await;
            if watch.is_err() {
                sleep(RETRY).await;
            }
            Done::Public(watch.ok())
        });
    }

    /// Takes a change of the public channels.
    fn changed(&mut self, change: Option<Change>) {
        let now = time::now();
        match change {
            Some(Change::Put(entry)) => {
                if let Some(channel) = public(&entry) {
                    self.shared
                        .change(|state| state.node.handle_public(&channel, entry.revision, now));
                }
            }
            Some(Change::Deleted { key, .. }) => {
                if let Some(uid) = uid_of(&key) {
                    self.shared.change(|state| state.node.remove_public(&uid));
                }
            }
            Some(Change::Current) => {
                self.shared.phase.send_replace(Phase::Serving);
            }
            None => {
                self.public = None;
                self.watch_public();
            }
        }
    }
}

/// The next change; `None` after an error. Waits for ever without a watch.
async fn next_change(watch: &mut Option<Watch>) -> Option<Change> {
    match watch {
        Some(watch) => watch.next().await?.ok(),
        None => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rpc_core::net::{LinkConfig, mem};
    use rpc_core::reconnect::ReconnectPolicy;
    use rpc_core::store::MemoryStore;

    use super::super::{ClusterBackend, ClusterOptions, Storing};
    use super::*;
    use crate::client::ClientConfig;
    use crate::frame::Final;
    use crate::net::{Server, ServerOptions, connect_with};

    #[tokio::test(start_paused = true)]
    async fn what_was_stored_for_a_node_that_has_ended_answers_no_message_of_the_next() {
        let store = MemoryStore::new();
        let options = ClusterOptions {
            open: true,
            password_rounds: 1_000,
            max_outage: Duration::from_secs(1),
            ..ClusterOptions::default()
        };
        let opened = ClusterBackend::open(Arc::new(store.clone()), options).await;
        let (backend, runner) = opened.unwrap();
        tokio::spawn(runner.run());
        let (server, _) = Server::mount(backend.clone(), ServerOptions::default());
        let (handle, (dialer, mut listener)) = (server.handle(), mem::listen(8));
        tokio::spawn(server.run());
        tokio::spawn(async move {
            while let Some(line) = listener.accept().await {
                handle.serve(line, None);
            }
        });
        backend.put_channel("general", "").await.unwrap();
        let mut former = None;
        for life in 0..2 {
            let link = LinkConfig {
                reconnect: ReconnectPolicy::off(),
                ..LinkConfig::default()
            };
            let config = ClientConfig::new("ann", "secret");
            let (client, events, connection) =
                connect_with(dialer.clone(), ClientConfig { link, ..config });
            tokio::spawn(connection.run());
            assert!(backend.shared.is_serving().await);
            client.ready().await.unwrap();
            sleep(RETRY).await;
            store.set_paused(true);
            let sending = tokio::spawn(async move {
                let sent = client.send_message("general", "hi", Final::Yes).await;
                (sent, events)
            });
            let id = loop {
                tokio::task::yield_now().await;
                if let Some(id) = backend.shared.lock().sends.keys().next() {
                    break *id;
                }
            };
            let Some(Storing { id: first, .. }) = &former else {
                former = Some(Storing {
                    shared: &backend.shared,
                    life,
                    id,
                    result: Some(Ok(())),
                });
                assert!(sending.await.unwrap().0.is_err());
                store.set_paused(false);
                let mut phase = backend.shared.phase.subscribe();
                phase.wait_for(|it| *it == Phase::Serving).await.unwrap();
                continue;
            };
            // The numbers are the same, and this one is not stored.
            assert_eq!(id, *first);
            former = None;
            sleep(Duration::from_millis(100)).await;
            assert!(!sending.is_finished());
        }
        assert!(former.is_none());
    }
}
