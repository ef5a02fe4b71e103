//! [`MemoryStore`]: a [`Store`] in one process, with faults on order.

mod data;
mod engine;
mod log;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::{AskError, Log, LogConfig, Messages, Store, StoreError};
use data::Data;
use engine::{Engine, Subscriber};
use log::MemoryLog;

use crate::sync::Mutex;

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_PAYLOAD: usize = 1024 * 1024;
/// How many requests of a connection are on their way.
const REQUESTS: usize = 1_024;
/// The default of [`MemoryStore::set_queue`].
const QUEUE: usize = 4_096;

/// A [`Store`] in this process, for tests and for one node. This value is the connection of one node; a clone
/// is the same connection, and [`connect`](Self::connect) makes the connection of another node.
///
/// Its time is tokio's: a test that has paused tokio's clock lives through hours at once, and repeats itself.
/// The requests of a connection are done in order, each by a task of the connection, even if no caller waits
/// for the answer any more. A request without an answer fails after 5 s.
///
/// Faults of one connection: [`set_cut`](Self::set_cut), [`set_paused`](Self::set_paused),
/// [`set_delay`](Self::set_delay), [`set_denied`](Self::set_denied), [`lose_answers`](Self::lose_answers) and
/// [`set_queue`](Self::set_queue). Faults of the engine behind all of them: [`set_full`](Self::set_full),
/// [`restart`](Self::restart), [`restart_empty`](Self::restart_empty), [`restore`](Self::restore) and
/// [`delete_log`](Self::delete_log).
#[derive(Clone)]
pub struct MemoryStore {
    engine: Arc<Mutex<Engine>>,
    link: Arc<Link>,
    requests: mpsc::Sender<(Instant, Request)>,
    /// The logs that this node has opened.
    opened: Arc<Mutex<BTreeMap<String, LogConfig>>>,
}

/// What an engine does when a request arrives.
type Request = Box<dyn FnOnce(&mut Engine) + Send>;

/// A copy of what all logs of a [`MemoryStore`] held at one time.
#[derive(Clone, Debug)]
pub struct MemorySnapshot(BTreeMap<String, Data>);

/// The line between a node and the engine.
struct Link {
    faults: watch::Sender<Faults>,
    gaps: watch::Sender<u64>,
}

#[derive(Clone, Copy)]
struct Faults {
    is_cut: bool,
    is_paused: bool,
    is_denied: bool,
    delay: Duration,
    lost_answers: u64,
    queue: usize,
}

impl Link {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            faults: watch::Sender::new(Faults {
                is_cut: false,
                is_paused: false,
                is_denied: false,
                delay: Duration::ZERO,
                lost_answers: 0,
                queue: QUEUE,
            }),
            gaps: watch::Sender::new(0),
        })
    }

    fn faults(&self) -> Faults {
        *self.faults.borrow()
    }

    fn gap(&self) {
        self.gaps.send_modify(|gaps| *gaps += 1);
    }

    /// Waits until requests and answers pass.
    async fn pass(&self) {
        self.wait(|faults| !faults.is_cut && !faults.is_paused)
            .await;
    }

    async fn wait(&self, holds: impl FnMut(&Faults) -> bool) {
        // It fails only when the sender is gone, which is here.
        let _ = self.faults.subscribe().wait_for(holds).await;
    }

    /// Whether the answer to this write is lost.
    fn loses_answer(&self) -> bool {
        let lose = |faults: &mut Faults| {
            let is_lost = faults.lost_answers > 0;
            faults.lost_answers -= u64::from(is_lost);
            is_lost
        };
        self.faults.send_if_modified(lose)
    }
}

/// Does the requests of a connection, in order.
async fn serve(
    engine: Arc<Mutex<Engine>>,
    link: Arc<Link>,
    mut requests: mpsc::Receiver<(Instant, Request)>,
) {
    while let Some((at, request)) = requests.recv().await {
        sleep_until(at).await;
        link.pass().await;
        request(&mut engine.lock());
    }
}

impl MemoryStore {
    /// Creates an empty store, and connects a node to it.
    ///
    /// # Panics
    /// Outside a tokio runtime with its timer enabled.
    #[must_use]
    pub fn new() -> Self {
        Self::with_engine(Arc::new(Mutex::new(Engine::new())))
    }

    /// Connects another node to the same data.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn connect(&self) -> Self {
        Self::with_engine(Arc::clone(&self.engine))
    }

    fn with_engine(engine: Arc<Mutex<Engine>>) -> Self {
        let link = Link::new();
        let (requests, received) = mpsc::channel(REQUESTS);
        tokio::spawn(serve(Arc::clone(&engine), Arc::clone(&link), received));
        engine.lock().links.push(Arc::downgrade(&link));
        Self {
            engine,
            link,
            requests,
            opened: Arc::default(),
        }
    }

    /// Cuts this connection, or restores it. Meanwhile nothing is delivered, which is a gap, and watches end;
    /// requests wait, and are done when it is mended.
    pub fn set_cut(&self, is_cut: bool) {
        self.change(|faults| faults.is_cut = is_cut);
        if !is_cut {
            self.link.gap();
        }
    }

    /// Stops this connection, or lets it go on. It counts as connected; meanwhile requests wait, and what
    /// would be delivered waits in the [queue](Self::set_queue).
    pub fn set_paused(&self, is_paused: bool) {
        self.change(|faults| faults.is_paused = is_paused);
    }

    /// Sets how long a request of this connection takes to arrive, and a message to be delivered. A request that
    /// takes longer than the timeout has no answer, and is done all the same.
    pub fn set_delay(&self, delay: Duration) {
        self.change(|faults| faults.delay = delay);
    }

    /// Forbids this connection to use logs, or allows it again.
    pub fn set_denied(&self, is_denied: bool) {
        self.change(|faults| faults.is_denied = is_denied);
    }

    /// Loses the answers to the next `count` writes of this connection: they are done, and the caller
    /// learns nothing.
    pub fn lose_answers(&self, count: u64) {
        self.change(|faults| faults.lost_answers = count);
    }

    /// Sets how many messages wait for a subscriber of this connection that does not read, for subscriptions
    /// from now on; at least 1. Further ones are lost, which is a gap. Default 4,096.
    pub fn set_queue(&self, len: usize) {
        self.change(|faults| faults.queue = len.max(1));
    }

    /// Takes all room from the engine, or gives it back: without room all appends fail with
    /// [`StoreError::Full`].
    pub fn set_full(&self, is_full: bool) {
        self.engine.lock().is_full = is_full;
    }

    /// Restarts the engine with its data: a gap for all nodes, and the end of all watches.
    pub fn restart(&self) {
        self.engine.lock().restart();
    }

    /// Restarts the engine without its data.
    pub fn restart_empty(&self) {
        self.restore(&MemorySnapshot(BTreeMap::new()));
    }

    /// Returns a copy of all logs.
    #[must_use]
    pub fn snapshot(&self) -> MemorySnapshot {
        MemorySnapshot(self.engine.lock().logs.clone())
    }

    /// Restarts the engine with a copy of its data from before.
    pub fn restore(&self, snapshot: &MemorySnapshot) {
        let mut engine = self.engine.lock();
        engine.logs.clone_from(&snapshot.0);
        engine.restart();
    }

    /// Deletes the log with this name; who uses it finds out at the next request.
    pub fn delete_log(&self, name: &str) {
        let mut engine = self.engine.lock();
        engine.logs.remove(name);
        engine.changed.send_replace(());
    }

    fn change(&self, change: impl FnOnce(&mut Faults)) {
        self.link.faults.send_modify(change);
    }

    /// Has the engine do something that needs permission, and waits for its answer.
    async fn request<T: Send + 'static>(
        &self,
        is_write: bool,
        work: impl FnOnce(&mut Engine) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let link = Arc::clone(&self.link);
        let request = move |engine: &mut Engine| {
            let done = if link.faults().is_denied {
                let message = "this node may not use logs".to_owned();
                Err(StoreError::Denied { message })
            } else {
                work(engine)
            };
            if !(is_write && link.loses_answer()) {
                let _ = answer.send(done);
            }
        };
        let asking = async {
            self.send(request).await?;
            match answered.await {
                Ok(done) => done,
                Err(_) => std::future::pending().await,
            }
        };
        let answer = timeout(TIMEOUT, asking).await;
        answer.unwrap_or_else(|late| Err(StoreError::unavailable(late)))
    }

    async fn send(
        &self,
        request: impl FnOnce(&mut Engine) + Send + 'static,
    ) -> Result<(), StoreError> {
        let sending = self.requests.send((self.arrival(), Box::new(request)));
        let sent = timeout(TIMEOUT, sending).await;
        sent.map_err(StoreError::unavailable)?
            .map_err(StoreError::unavailable)
    }

    fn try_send(&self, request: impl FnOnce(&mut Engine) + Send + 'static) -> bool {
        let request = (self.arrival(), Box::new(request) as Request);
        self.is_connected() && self.requests.try_send(request).is_ok()
    }

    /// When a request that is sent now arrives.
    fn arrival(&self) -> Instant {
        Instant::now() + self.link.faults().delay
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::new()
    }
}

crate::debug::debug_fields!([] MemoryStore, _ => {});

/// # Errors
/// [`StoreError::TooLarge`].
fn check_len(payload: &Bytes) -> Result<(), StoreError> {
    if payload.len() > MAX_PAYLOAD {
        return Err(StoreError::TooLarge);
    }
    Ok(())
}

#[async_trait]
impl Store for MemoryStore {
    async fn log(&self, name: &str, config: LogConfig) -> Result<Arc<dyn Log>, StoreError> {
        let name: Arc<str> = name.into();
        let (opened, wanted) = (Arc::clone(&name), config.clone());
        let opening = self.request(false, move |engine| engine.open(&opened, &wanted));
        opening.await?;
        self.opened.lock().insert(name.to_string(), config.clone());
        Ok(Arc::new(MemoryLog::new(self.clone(), name, config)))
    }

    async fn ensure(&self) -> Result<(), StoreError> {
        let opened = self.opened.lock().clone();
        let opening = self.request(false, move |engine| {
            let mut all = opened.iter();
            all.try_for_each(|(name, config)| engine.open(name, config))
        });
        opening.await
    }

    async fn publish(&self, subject: &str, payload: Bytes) -> Result<(), StoreError> {
        check_len(&payload)?;
        let subject = subject.into();
        self.send(|engine| engine.publish(subject, payload)).await
    }

    fn try_publish(&self, subject: &str, payload: Bytes) -> bool {
        let subject = subject.into();
        check_len(&payload).is_ok() && self.try_send(|engine| engine.publish(subject, payload))
    }

    async fn subscribe(&self, pattern: &str) -> Result<Messages, StoreError> {
        let (queue, received) = mpsc::channel(self.link.faults().queue);
        let link = Arc::clone(&self.link);
        let subscriber = Subscriber {
            pattern: pattern.to_owned(),
            queue,
            link: Arc::clone(&link),
        };
        self.engine.lock().subscribers.push(subscriber);
        let messages = stream::unfold((received, link), |(mut received, link)| async {
            let (at, message) = received.recv().await?;
            sleep_until(at).await;
            link.wait(|faults| !faults.is_paused).await;
            Some((message, (received, link)))
        });
        Ok(messages.boxed())
    }

    async fn ask(
        &self,
        subject: &str,
        payload: Bytes,
        within: Duration,
    ) -> Result<Bytes, AskError> {
        check_len(&payload)?;
        let end = Instant::now() + within;
        let (answer, answered) = oneshot::channel();
        let subject = subject.into();
        let (told, heard) = oneshot::channel();
        let asking = self.send(|engine| {
            let _ = told.send(engine.ask(subject, payload, answer));
        });
        let heard = async {
            asking.await?;
            heard.await.map_err(StoreError::unavailable)
        };
        let heard = timeout_at(end, heard).await;
        if !heard.map_err(StoreError::unavailable)?? {
            return Err(AskError::NoListener);
        }
        let answer = timeout_at(end, answered).await;
        answer.ok().and_then(Result::ok).ok_or(AskError::NoAnswer)
    }

    fn answer(&self, reply_to: &str, payload: Bytes) {
        let reply_to: Box<str> = reply_to.into();
        self.try_send(move |engine| engine.answer(&reply_to, payload));
    }

    fn is_connected(&self) -> bool {
        !self.link.faults().is_cut
    }

    fn gaps(&self) -> watch::Receiver<u64> {
        self.link.gaps.subscribe()
    }

    fn max_payload(&self) -> usize {
        MAX_PAYLOAD
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }
}
