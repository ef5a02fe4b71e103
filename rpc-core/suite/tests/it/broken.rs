//! [`Memory`]: a store in memory with faults.

use std::collections::HashMap;
use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, stream};
use rpc_core::store::{
    AskError, Expect, Log, LogConfig, LogState, MemoryStore, Message, Messages, Record, Store,
    StoreError, Stored, Watched,
};
use store_suite::{Engine, Fault};
use tokio::sync::{mpsc, watch};

use Break::*;

/// What is broken in an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    // Appends.
    /// Ids are not remembered.
    Ids,
    /// `""` is an id.
    EmptyId,
    /// Ids are forgotten by a purge.
    PurgedIds,
    /// Ids are remembered for ever.
    Window,
    /// A duplicate is told its own number.
    Duplicate,
    /// Whatever an append expects is taken for true.
    Last,
    /// The numbers of an empty log begin again.
    Numbers,
    /// Any text is a subject.
    Subjects,
    /// Line breaks in an id pass.
    IdBreaks,
    // Reads.
    /// The record before a missing one is read.
    Get,
    /// A read includes its start.
    After,
    /// A read of none reads one.
    Max,
    /// What a pattern of another log matches is an error.
    Outside,
    /// Heads have payloads.
    HeadPayload,
    /// Heads have no ids.
    HeadIds,
    /// A watch does not say that all was reported that was there.
    Mark,
    /// The first records of a watch have no payload.
    WatchPayload,
    /// A watch brings all subjects.
    WatchPattern,
    /// A watch drops what is not read in time.
    WatchSlow,
    /// A read brings 100 records at most.
    ReadPage,
    /// Heads are 500 at most.
    HeadPage,
    /// Each node has another time at which a log was made.
    NodeCreated,
    /// Times are in milliseconds.
    Millis,
    /// Times are those of a reader's clock.
    Clock,
    /// Bytes are those of payloads that were ever stored.
    Bytes,
    // What is kept.
    /// A purge removes what matches, whatever its number.
    Purge,
    /// A purge counts one less.
    PurgeCount,
    /// A bound of a log is none.
    PerSubject,
    Records,
    Age,
    Full,
    /// A log may be opened with other subjects.
    OtherSubjects,
    // Stores.
    /// Messages pass the records before them.
    Order,
    /// Gaps are not counted.
    Gaps,
    /// The record before another one is that of the log.
    Previous,
    /// Records of a feed have no ids.
    FeedIds,
    /// A feed is on other subjects.
    FeedSubject,
    /// A subject of a log takes messages.
    StoredMessages,
    /// An answer is given to another question.
    Answer,
    /// Without a subscriber there is no answer.
    Listener,
    /// A question waits for longer than it should.
    Within,
    /// A log ends with its store.
    LogEnds,
    /// A subscription ends with its store.
    SubscriptionEnds,
    /// Any payload is sent.
    Large,
    /// The list has other configurations.
    Listed,
    /// A message is sent without a connection.
    Sent,
    /// Without a connection a question waits for ever.
    Waits,
    /// A log that is made again seems to be the old one.
    Created,
    /// A watch of a lost log ends without an error.
    WatchEnd,
    /// `ensure` does nothing.
    Ensure,
}

/// A store in memory, and what is broken in it.
pub struct Memory {
    store: MemoryStore,
    nodes: Mutex<Vec<MemoryStore>>,
    broken: &'static [Break],
    shared: Arc<Shared>,
}

/// What the nodes of a broken engine know.
#[derive(Debug, Default)]
struct Shared {
    logs: Mutex<HashMap<String, Arc<dyn Log>>>,
    /// The last place for an answer.
    asked: Mutex<String>,
}

impl Memory {
    pub fn new(broken: &'static [Break]) -> Self {
        Self {
            store: MemoryStore::new(),
            nodes: Mutex::default(),
            broken,
            shared: Arc::default(),
        }
    }
}

#[async_trait]
impl Engine for Memory {
    async fn connect(&self) -> Arc<dyn Store> {
        let node = self.store.connect();
        self.nodes.lock().unwrap().push(node.clone());
        Arc::new(Broken {
            store: node,
            broken: self.broken,
            gaps: watch::Sender::new(0),
            alive: Arc::new(()),
            shared: Arc::clone(&self.shared),
        })
    }

    async fn fault(&self, fault: Fault<'_>) -> bool {
        let cut = |is_cut| {
            let nodes = self.nodes.lock().unwrap();
            nodes.iter().for_each(|node| node.set_cut(is_cut));
        };
        match fault {
            Fault::Stop => cut(true),
            Fault::Start => cut(false),
            Fault::Empty => self.store.restart_empty(),
            Fault::DeleteLog(name) => self.store.delete_log(name),
            _ => return false,
        }
        true
    }
}

#[derive(Debug)]
struct Broken {
    store: MemoryStore,
    broken: &'static [Break],
    gaps: watch::Sender<u64>,
    /// Gone with the store.
    alive: Arc<()>,
    shared: Arc<Shared>,
}

impl Broken {
    fn is(&self, it: Break) -> bool {
        self.broken.contains(&it)
    }
}

fn unavailable() -> StoreError {
    StoreError::unavailable("it is broken")
}

#[async_trait]
impl Store for Broken {
    async fn log(&self, name: &str, mut config: LogConfig) -> Result<Arc<dyn Log>, StoreError> {
        config.max_bytes = config.max_bytes.filter(|it| *it == 0 || !self.is(Full));
        let max = config.max_per_subject;
        config.max_per_subject = max.filter(|it| *it == 0 || !self.is(PerSubject));
        config.max_records = config
            .max_records
            .filter(|it| *it == 0 || !self.is(Records));
        config.max_age = config.max_age.filter(|it| it.is_zero() || !self.is(Age));
        if self.is(FeedSubject) {
            config.feed = config.feed.map(|feed| feed.replace(".f.", ".x."));
        }
        let opened = self.store.log(name, config).await;
        let known = self.shared.logs.lock().unwrap().get(name).cloned();
        let log: Arc<dyn Log> = match known.filter(|_| self.is(OtherSubjects) && opened.is_err()) {
            Some(known) => return Ok(known),
            None => opened?,
        };
        let log: Arc<dyn Log> = Arc::new(BrokenLog {
            log,
            broken: self.broken,
            alive: Arc::downgrade(&self.alive),
            state: Mutex::default(),
        });
        let mut logs = self.shared.logs.lock().unwrap();
        logs.insert(name.to_owned(), Arc::clone(&log));
        Ok(log)
    }

    async fn logs(&self) -> Result<Vec<(String, LogConfig)>, StoreError> {
        let mut logs = self.store.logs().await?;
        if self.is(Listed) {
            logs.iter_mut().for_each(|(_, config)| config.feed = None);
        }
        Ok(logs)
    }

    async fn ensure(&self) -> Result<(), StoreError> {
        match self.is(Ensure) {
            true => Ok(()),
            false => self.store.ensure().await,
        }
    }

    async fn publish(&self, subject: &str, payload: Bytes) -> Result<(), StoreError> {
        let sent = self.store.publish(subject, payload).await;
        match &sent {
            Err(StoreError::TooLarge) if self.is(Large) => Ok(()),
            Err(StoreError::Config { message }) if self.is(StoredMessages) => {
                sent.clone()
                    .or_else(|error| match message.contains("append it") {
                        true => Ok(()),
                        false => Err(error),
                    })
            }
            _ => sent,
        }
    }

    fn try_publish(&self, subject: &str, payload: Bytes) -> bool {
        let sent = self.store.try_publish(subject, payload);
        sent || (self.is(Sent) && !self.is_connected())
    }

    async fn subscribe(&self, pattern: &str) -> Result<Messages, StoreError> {
        let mut messages = self.store.subscribe(pattern).await?;
        if self.is(SubscriptionEnds) {
            let alive = Arc::downgrade(&self.alive);
            let is_alive = move |_: &Message| ready(alive.strong_count() > 0);
            messages = messages.take_while(is_alive).boxed();
        }
        let (has_ids, is_previous) = (!self.is(FeedIds), self.is(Previous));
        let (is_answer, shared) = (self.is(Answer), Arc::clone(&self.shared));
        messages = messages
            .map(move |mut message| {
                if !has_ids {
                    message.id = "".into();
                }
                if let Some(position) = message.position.as_mut().filter(|_| is_previous) {
                    position.previous = position.sequence - 1;
                }
                if is_answer && let Some(place) = &mut message.reply_to {
                    let mut last = shared.asked.lock().unwrap();
                    if last.is_empty() {
                        *last = place.to_string();
                    }
                    *place = last.as_str().into();
                }
                message
            })
            .boxed();
        if !self.is(Order) {
            return Ok(messages);
        }
        let swapped = stream::unfold((messages, None), |(mut messages, held)| async {
            let next: Message = match held {
                Some(held) => held,
                None => messages.next().await?,
            };
            let passing = match next.position {
                Some(_) => messages.next().now_or_never().flatten(),
                None => None,
            };
            Some(match passing {
                Some(passing) => (passing, (messages, Some(next))),
                None => (next, (messages, None)),
            })
        });
        Ok(swapped.boxed())
    }

    async fn ask(
        &self,
        subject: &str,
        payload: Bytes,
        within: Duration,
    ) -> Result<Bytes, AskError> {
        if self.is(Waits) && !self.is_connected() {
            return std::future::pending().await;
        }
        let within = within * if self.is(Within) { 20 } else { 1 };
        match self.store.ask(subject, payload, within).await {
            Err(AskError::NoListener) if self.is(Listener) => Err(AskError::NoAnswer),
            answer => answer,
        }
    }

    fn answer(&self, reply_to: &str, payload: Bytes) {
        self.store.answer(reply_to, payload);
    }

    fn is_connected(&self) -> bool {
        self.store.is_connected()
    }

    fn gaps(&self) -> watch::Receiver<u64> {
        match self.is(Gaps) {
            true => self.gaps.subscribe(),
            false => self.store.gaps(),
        }
    }

    fn max_payload(&self) -> usize {
        self.store.max_payload()
    }

    fn timeout(&self) -> Duration {
        self.store.timeout()
    }
}

#[derive(Debug)]
struct BrokenLog {
    log: Arc<dyn Log>,
    broken: &'static [Break],
    alive: std::sync::Weak<()>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The last number before the log was emptied.
    before: u64,
    is_purged: bool,
    ids: HashMap<String, u64>,
    bytes: u64,
}

impl BrokenLog {
    fn is(&self, it: Break) -> bool {
        self.broken.contains(&it)
    }

    fn shown(&self, mut record: Record) -> Record {
        if self.is(Millis) {
            record.time *= 1_000;
        }
        record
    }

    fn start(&self, after: u64) -> u64 {
        after.saturating_sub(u64::from(self.is(After)))
    }
}

#[async_trait]
impl Log for BrokenLog {
    async fn append(
        &self,
        subject: &str,
        payload: Bytes,
        mut expect: Expect<'_>,
    ) -> Result<Stored, StoreError> {
        if self.is(LogEnds) && self.alive.strong_count() == 0 {
            return Err(unavailable());
        }
        let (id, is_purged) = (expect.id, self.state.lock().unwrap().is_purged);
        if self.is(Ids) || (self.is(PurgedIds) && is_purged) {
            expect.id = None;
        }
        if self.is(EmptyId) && id == Some("") {
            expect.id = Some("none");
        }
        if self.is(IdBreaks) && id.is_some_and(|id| id.contains('\n')) {
            expect.id = None;
        }
        if self.is(Last) {
            expect.last = None;
        }
        let known = id.and_then(|id| self.state.lock().unwrap().ids.get(id).copied());
        if let Some(sequence) = known.filter(|_| self.is(Window)) {
            return Ok(Stored {
                sequence,
                is_duplicate: true,
            });
        }
        let len = payload.len() as u64;
        let mut stored = match self.log.append(subject, payload, expect).await {
            Err(StoreError::Config { .. }) if self.is(Subjects) => {
                return Ok(Stored {
                    sequence: 1,
                    is_duplicate: false,
                });
            }
            Err(StoreError::TooLarge) if self.is(Large) => {
                return Ok(Stored {
                    sequence: 1,
                    is_duplicate: false,
                });
            }
            stored => stored?,
        };
        let mut state = self.state.lock().unwrap();
        state.bytes += len;
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            state.ids.insert(id.to_owned(), stored.sequence);
        }
        stored.sequence -= state.before;
        stored.sequence += u64::from(stored.is_duplicate && self.is(Duplicate));
        Ok(stored)
    }

    async fn get(&self, sequence: u64) -> Result<Option<Record>, StoreError> {
        let found = match self.log.get(sequence).await? {
            None if self.is(Get) => self.log.get(sequence.saturating_sub(1)).await?,
            found => found,
        };
        Ok(found.map(|it| self.shown(it)))
    }

    async fn last(&self, subject: &str) -> Result<Option<Record>, StoreError> {
        Ok(self.log.last(subject).await?.map(|it| self.shown(it)))
    }

    async fn read(&self, pattern: &str, after: u64, max: usize) -> Result<Vec<Record>, StoreError> {
        let max = max.max(usize::from(self.is(Max)));
        let max = max.min(if self.is(ReadPage) { 100 } else { max });
        let read = self.log.read(pattern, self.start(after), max).await?;
        let mut read: Vec<_> = read.into_iter().map(|it| self.shown(it)).collect();
        if self.is(Clock) {
            // As if it were now.
            let created = self.log.state().await?.created / 1_000_000_000;
            let now = u64::try_from(created).unwrap() + 3_600;
            read.iter_mut().for_each(|it| it.time = now);
        }
        Ok(read)
    }

    async fn heads(&self, pattern: &str) -> Result<Vec<Record>, StoreError> {
        let mut heads = self.log.heads(pattern).await?;
        if heads.is_empty() && self.is(Outside) {
            return Err(StoreError::Failed {
                message: "nothing matches".to_owned(),
            });
        }
        heads.truncate(if self.is(HeadPage) { 500 } else { heads.len() });
        for head in &mut heads {
            if self.is(HeadPayload) {
                let record = self.log.get(head.sequence).await?;
                head.payload = record.map(|it| it.payload).unwrap_or_default();
            }
            if self.is(HeadIds) {
                head.id = "".into();
            }
        }
        Ok(heads.into_iter().map(|it| self.shown(it)).collect())
    }

    async fn watch(&self, pattern: &str) -> Result<Watched, StoreError> {
        let pattern = match self.is(WatchPattern) {
            true if !pattern.is_empty() && !pattern.contains("..") => ">",
            _ => pattern,
        };
        let mut watched = self.log.watch(pattern).await?;
        if self.is(Mark) {
            watched = watched.filter(|it| ready(*it != Ok(None))).boxed();
        }
        if self.is(WatchEnd) {
            watched = watched.take_while(|it| ready(it.is_ok())).boxed();
        }
        if self.is(WatchPayload) {
            let mut is_first = true;
            let bare = move |mut it: Result<Option<Record>, StoreError>| {
                match &mut it {
                    Ok(Some(record)) if is_first => record.payload = Bytes::new(),
                    _ => is_first = false,
                }
                it
            };
            watched = watched.map(bare).boxed();
        }
        if self.is(WatchSlow) {
            let (sender, receiver) = mpsc::channel(500);
            tokio::spawn(async move {
                while let Some(it) = watched.next().await {
                    let _ = sender.try_send(it);
                }
            });
            let received = stream::unfold(receiver, |mut receiver| async {
                Some((receiver.recv().await?, receiver))
            });
            watched = received.boxed();
        }
        Ok(watched)
    }

    async fn purge(&self, pattern: &str, before: u64) -> Result<u64, StoreError> {
        let before = if self.is(Purge) { u64::MAX } else { before };
        let removed = self.log.purge(pattern, before).await?;
        let log = self.log.state().await?;
        let mut state = self.state.lock().unwrap();
        state.is_purged = true;
        if self.is(Numbers) && log.records == 0 {
            state.before = log.last;
        }
        Ok(removed.saturating_sub(u64::from(self.is(PurgeCount))))
    }

    async fn state(&self) -> Result<LogState, StoreError> {
        let mut state = self.log.state().await?;
        if self.is(Created) {
            state.created = 1_800_000_000_000_000_000;
        }
        if self.is(NodeCreated) {
            state.created += std::ptr::from_ref(self).addr() as u128;
        }
        if self.is(Bytes) {
            state.bytes = state.bytes.max(1);
        }
        Ok(state)
    }
}
