//! [`LocalStore`]: a [`Store`] of one process on a [`Table`], which a database is.

mod head;
mod hub;
mod log;
mod logs;
mod mem;
#[cfg(feature = "file-store")]
mod recount;
mod rows;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::yield_now;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::subject::{check_len, check_message, check_pattern};
use super::{AskError, Log, LogConfig, Messages, Store, StoreError};
use hub::{Hub, Subscriber};
use log::LocalLog;
use logs::{Logs, OpenLog};

use crate::sync::Mutex;
#[cfg(feature = "file-store")]
pub(super) use head::size_of as logs_size;
#[cfg(feature = "file-store")]
pub(super) use recount::Recount;
#[cfg(feature = "file-store")]
pub(super) use rows::bounds;

pub use mem::{MemorySnapshot, MemoryStore, MemoryTable};

/// How long a request may take.
const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_PAYLOAD: usize = 1024 * 1024;
/// How many requests of a connection are on their way.
const REQUESTS: usize = 1_024;
/// How many requests share a write at most.
const AT_ONCE: usize = 256;
/// The default of [`MemoryStore::set_queue`].
const QUEUE: usize = 4_096;

/// Keys and values in the order of the keys' bytes: what a database has to offer for a [`LocalStore`].
///
/// One process uses it, from several threads. Its functions may block. One thread at a time writes, while others
/// read.
pub trait Table: fmt::Debug + Send + Sync + 'static {
    /// Returns the first or last rows, at most `max`, with keys from the first one up to the second one, which is
    /// excluded: from the first on, or from the last on backwards.
    ///
    /// # Errors
    /// [`StoreError`] if the rows cannot be read. Nothing has changed.
    fn range(&self, keys: (&[u8], &[u8]), which: Which, max: usize)
    -> Result<Vec<Row>, StoreError>;

    /// Sets the value of each key, or removes the row where that is `None`: all of it, or nothing. Returns when
    /// it is on the disk.
    ///
    /// # Errors
    /// [`StoreError`]: nothing is changed. [`StoreError::Full`] without room. After
    /// [`StoreError::Unavailable`] it may be changed or not.
    fn write(&self, changes: &Changes) -> Result<(), StoreError>;
}

/// Which rows are wanted.
///
/// Exhaustive on purpose: a table has two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those with the least keys.
    First,
    /// Those with the greatest keys.
    Last,
}

/// A key, and its value; `None` if that is damaged.
pub type Row = (Vec<u8>, Option<Bytes>);

/// The new values of keys; `None` for none.
pub type Changes = BTreeMap<Vec<u8>, Option<Bytes>>;

/// A [`Store`] in this process, whose logs are in a [`Table`]. A clone is the same store.
///
/// Appends that come at once share a [write](Table::write). Those who subscribe to messages are in this process.
pub struct LocalStore<T> {
    table: Arc<T>,
    node: Node,
    /// The logs that this node has opened.
    opened: Arc<Mutex<BTreeMap<String, Arc<OpenLog>>>>,
}

/// A connection to an engine.
#[derive(Clone)]
struct Node {
    engine: Arc<Engine>,
    link: Arc<Link>,
    requests: Arc<Requests>,
}

/// What all connections have in common.
#[derive(Debug)]
struct Engine {
    /// Whether the requests come over links with faults, by tokio's clock.
    is_virtual: bool,
    logs: Mutex<Logs>,
    hub: Mutex<Hub>,
}

/// What an engine does when a request arrives, and how it is answered when that is written.
type Request = Box<dyn FnOnce(&Engine, &mut Logs) -> Answer + Send>;
type Answer = Box<dyn FnOnce(Result<(), StoreError>)>;

/// The way to the thread that writes, which ends with it.
struct Requests {
    sender: Option<mpsc::Sender<(Instant, Request)>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Requests {
    fn drop(&mut self) {
        self.sender = None;
        // Until it has written and closed the table.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

/// The line between a node and the engine.
#[derive(Debug)]
struct Link {
    faults: watch::Sender<Faults>,
    gaps: watch::Sender<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
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
                queue: QUEUE,
                ..Faults::default()
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

impl Engine {
    fn new(table: Arc<dyn Table>, is_virtual: bool) -> Self {
        Self {
            is_virtual,
            logs: Mutex::new(Logs::new(table, is_virtual)),
            hub: Mutex::default(),
        }
    }

    /// Does requests, writes what they change, tells it, and answers.
    fn serve(&self, requests: impl IntoIterator<Item = Request>) {
        let mut logs = self.logs.lock();
        let done = requests.into_iter().map(|it| it(self, &mut logs));
        let answers: Vec<Answer> = done.collect();
        let written = logs.commit().map(|news| {
            if let Some(news) = news {
                let mut hub = self.hub.lock();
                hub.changed.send_replace(());
                for message in news {
                    hub.deliver(&message);
                }
            }
        });
        drop(logs);
        answers.into_iter().for_each(|it| it(written.clone()));
    }
}

/// Does the requests of a connection with faults, in order.
async fn serve(
    engine: Arc<Engine>,
    link: Arc<Link>,
    mut requests: mpsc::Receiver<(Instant, Request)>,
) {
    while let Some((at, request)) = requests.recv().await {
        sleep_until(at).await;
        link.pass().await;
        engine.serve([request]);
    }
}

impl Node {
    /// Has the engine do something that needs permission, and waits for its answer.
    async fn request<T: Send + 'static>(
        &self,
        is_write: bool,
        work: impl FnOnce(&mut Logs) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let link = Arc::clone(&self.link);
        let request = move |_: &Engine, logs: &mut Logs| {
            let done = if link.faults().is_denied {
                let message = "this node may not use logs".to_owned();
                Err(StoreError::Denied { message })
            } else {
                work(logs)
            };
            let is_lost = is_write && link.loses_answer();
            let answer = move |written: Result<(), StoreError>| {
                if !is_lost {
                    let _ = answer.send(done.and_then(|done| written.map(|()| done)));
                }
            };
            Box::new(answer) as Answer
        };
        let asking = async {
            if is_write && !self.engine.is_virtual {
                // What is appended at once is sent at once, and shares a write.
                yield_now().await;
            }
            self.send(Box::new(request)).await?;
            match answered.await {
                Ok(done) => done,
                Err(_) => std::future::pending().await,
            }
        };
        let answer = timeout(TIMEOUT, asking).await;
        answer.unwrap_or_else(|late| Err(StoreError::unavailable(late)))
    }

    async fn send(&self, request: Request) -> Result<(), StoreError> {
        let gone = || StoreError::unavailable("the store is closed");
        let sender = self.requests.sender.as_ref().ok_or_else(gone)?;
        let sent = timeout(TIMEOUT, sender.send((self.arrival(), request))).await;
        sent.map_err(StoreError::unavailable)?.map_err(|_| gone())
    }

    /// Does something with messages. Returns whether there was room for it.
    fn try_notify(&self, work: impl FnOnce(&mut Hub) + Send + 'static) -> bool {
        if !self.engine.is_virtual {
            work(&mut self.engine.hub.lock());
            return true;
        }
        let sender = self.requests.sender.as_ref();
        let request = (self.arrival(), without_reply(work));
        !self.link.faults().is_cut && sender.is_some_and(|it| it.try_send(request).is_ok())
    }

    /// The same, and waits for room.
    async fn notify(&self, work: impl FnOnce(&mut Hub) + Send + 'static) -> Result<(), StoreError> {
        if self.engine.is_virtual {
            return self.send(without_reply(work)).await;
        }
        work(&mut self.engine.hub.lock());
        Ok(())
    }

    /// When a request that is sent now arrives.
    fn arrival(&self) -> Instant {
        Instant::now() + self.link.faults().delay
    }
}

fn without_reply(work: impl FnOnce(&mut Hub) + Send + 'static) -> Request {
    Box::new(|engine, _| {
        work(&mut engine.hub.lock());
        Box::new(|_| {})
    })
}

impl<T: Table> LocalStore<T> {
    /// Opens the store that a table has, or begins one there. Blocks. A thread writes to the table until the store,
    /// its clones and its logs are dropped.
    ///
    /// # Errors
    /// [`StoreError`] of the table, or if what it has is damaged. [`StoreError::Unavailable`] without a thread.
    pub fn over(table: T) -> Result<Self, StoreError> {
        let table = Arc::new(table);
        let engine = Engine::new(Arc::clone(&table) as Arc<dyn Table>, false);
        engine.logs.lock().load()?;
        let engine = Arc::new(engine);
        let (sender, mut received) = mpsc::channel::<(Instant, Request)>(REQUESTS);
        let serving = Arc::clone(&engine);
        let serve = move || {
            while let Some((_, first)) = received.blocking_recv() {
                // Who has sent it may be about to send more.
                std::thread::yield_now();
                let more = std::iter::from_fn(|| received.try_recv().ok());
                let more = more.map(|(_, request)| request).take(AT_ONCE - 1);
                serving.serve([first].into_iter().chain(more));
            }
        };
        let thread = std::thread::Builder::new().name("store".to_owned());
        let thread = Some(thread.spawn(serve).map_err(StoreError::unavailable)?);
        Ok(Self::connected(table, engine, Link::new(), sender, thread))
    }

    fn connected(
        table: Arc<T>,
        engine: Arc<Engine>,
        link: Arc<Link>,
        sender: mpsc::Sender<(Instant, Request)>,
        thread: Option<JoinHandle<()>>,
    ) -> Self {
        engine.hub.lock().links.push(Arc::downgrade(&link));
        let sender = Some(sender);
        let requests = Arc::new(Requests { sender, thread });
        Self {
            table,
            node: Node {
                engine,
                link,
                requests,
            },
            opened: Arc::default(),
        }
    }

    /// Refuses a message that cannot be sent.
    fn check(&self, subject: &str, payload: &Bytes) -> Result<(), StoreError> {
        check_len(payload, MAX_PAYLOAD)?;
        let opened = self.opened.lock();
        let logs = opened.values().map(|it| it.config.subjects.as_str());
        check_message(logs, subject)
    }

    /// Returns the table.
    #[must_use]
    pub fn table(&self) -> &T {
        &self.table
    }
}

impl<T> Clone for LocalStore<T> {
    fn clone(&self) -> Self {
        Self {
            table: Arc::clone(&self.table),
            node: self.node.clone(),
            opened: Arc::clone(&self.opened),
        }
    }
}

crate::debug::debug_fields!([T] LocalStore<T>, _ => {});

#[async_trait]
impl<T: Table> Store for LocalStore<T> {
    async fn log(&self, name: &str, config: LogConfig) -> Result<Arc<dyn Log>, StoreError> {
        config.check(name)?;
        let name = name.to_owned();
        let wanted = Arc::new(OpenLog { name, config });
        let opened = Arc::clone(&wanted);
        let opening = self.node.request(false, move |logs| {
            logs.open(&opened)?;
            logs.view(&opened)
        });
        let view = opening.await?;
        let known = (wanted.name.clone(), Arc::clone(&wanted));
        self.opened.lock().extend([known]);
        Ok(Arc::new(LocalLog {
            node: self.node.clone(),
            wanted,
            view,
        }))
    }

    async fn logs(&self) -> Result<Vec<(String, LogConfig)>, StoreError> {
        self.node.request(false, Logs::all).await
    }

    async fn ensure(&self) -> Result<(), StoreError> {
        let opened = self.opened.lock().clone();
        let opening = self.node.request(false, move |logs| {
            opened.values().try_for_each(|wanted| logs.open(wanted))
        });
        opening.await
    }

    async fn publish(&self, subject: &str, payload: Bytes) -> Result<(), StoreError> {
        self.check(subject, &payload)?;
        let subject = subject.into();
        self.node.notify(|hub| hub.publish(subject, payload)).await
    }

    fn try_publish(&self, subject: &str, payload: Bytes) -> bool {
        let is_fit = self.check(subject, &payload).is_ok();
        let subject = subject.into();
        is_fit && self.node.try_notify(|hub| hub.publish(subject, payload))
    }

    async fn subscribe(&self, pattern: &str) -> Result<Messages, StoreError> {
        check_pattern(pattern)?;
        let (queue, received) = mpsc::channel(self.node.link.faults().queue);
        let link = Arc::clone(&self.node.link);
        let subscriber = Subscriber {
            pattern: pattern.to_owned(),
            queue,
            link: Arc::clone(&link),
        };
        self.node.engine.hub.lock().subscribers.push(subscriber);
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
        self.check(subject, &payload)?;
        let end = Instant::now() + within;
        let (answer, answered) = oneshot::channel();
        let subject = subject.into();
        let (sender, receiver) = oneshot::channel();
        let asking = self.node.notify(|hub| {
            let _ = sender.send(hub.ask(subject, payload, answer));
        });
        let has_listener = async {
            asking.await?;
            receiver.await.map_err(StoreError::unavailable)
        };
        let has_listener = timeout_at(end, has_listener).await;
        if !has_listener.map_err(StoreError::unavailable)?? {
            return Err(AskError::NoListener);
        }
        let answer = timeout_at(end, answered).await;
        answer.ok().and_then(Result::ok).ok_or(AskError::NoAnswer)
    }

    fn answer(&self, reply_to: &str, payload: Bytes) {
        let reply_to: Box<str> = reply_to.into();
        self.node
            .try_notify(move |hub| hub.answer(&reply_to, payload));
    }

    fn is_connected(&self) -> bool {
        !self.node.link.faults().is_cut
    }

    fn is_local(&self) -> bool {
        true
    }

    fn gaps(&self) -> watch::Receiver<u64> {
        self.node.link.gaps.subscribe()
    }

    fn max_payload(&self) -> usize {
        MAX_PAYLOAD
    }

    fn timeout(&self) -> Duration {
        TIMEOUT
    }
}
