//! The rules of a store: [`MemoryStore`] keeps them, and engines with one fault each are told which one they
//! break.

use std::panic::AssertUnwindSafe;
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
use tokio::sync::watch;

/// A store in memory, and what is broken in it.
struct Memory {
    store: MemoryStore,
    nodes: Mutex<Vec<MemoryStore>>,
    broken: Break,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Break {
    Nothing,
    /// Ids are not remembered.
    Ids,
    /// Whatever an append expects is taken for true.
    Last,
    /// The numbers of an empty log begin again.
    Numbers,
    /// Messages pass the records before them.
    Order,
    /// Gaps are not counted.
    Gaps,
    /// A watch does not say that all is told that was there.
    Mark,
    /// A purge removes what matches, whatever its number.
    Purge,
    /// A log may have any number of bytes.
    Full,
    /// A log that is made again seems to be the old one.
    Created,
}

impl Memory {
    fn new(broken: Break) -> Self {
        Self {
            store: MemoryStore::new(),
            nodes: Mutex::default(),
            broken,
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
    broken: Break,
    gaps: watch::Sender<u64>,
}

#[async_trait]
impl Store for Broken {
    async fn log(&self, name: &str, mut config: LogConfig) -> Result<Arc<dyn Log>, StoreError> {
        config.max_bytes = config.max_bytes.filter(|_| self.broken != Break::Full);
        Ok(Arc::new(BrokenLog {
            log: self.store.log(name, config).await?,
            broken: self.broken,
            before: Mutex::default(),
        }))
    }

    async fn logs(&self) -> Result<Vec<(String, LogConfig)>, StoreError> {
        self.store.logs().await
    }

    async fn ensure(&self) -> Result<(), StoreError> {
        self.store.ensure().await
    }

    async fn publish(&self, subject: &str, payload: Bytes) -> Result<(), StoreError> {
        self.store.publish(subject, payload).await
    }

    fn try_publish(&self, subject: &str, payload: Bytes) -> bool {
        self.store.try_publish(subject, payload)
    }

    async fn subscribe(&self, pattern: &str) -> Result<Messages, StoreError> {
        let messages = self.store.subscribe(pattern).await?;
        if self.broken != Break::Order {
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
        self.store.ask(subject, payload, within).await
    }

    fn answer(&self, reply_to: &str, payload: Bytes) {
        self.store.answer(reply_to, payload);
    }

    fn is_connected(&self) -> bool {
        self.store.is_connected()
    }

    fn gaps(&self) -> watch::Receiver<u64> {
        match self.broken {
            Break::Gaps => self.gaps.subscribe(),
            _ => self.store.gaps(),
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
    broken: Break,
    /// The last number before the log was emptied.
    before: Mutex<u64>,
}

#[async_trait]
impl Log for BrokenLog {
    async fn append(
        &self,
        subject: &str,
        payload: Bytes,
        mut expect: Expect<'_>,
    ) -> Result<Stored, StoreError> {
        match self.broken {
            Break::Ids => expect.id = None,
            Break::Last => expect.last = None,
            _ => {}
        }
        let mut stored = self.log.append(subject, payload, expect).await?;
        stored.sequence -= *self.before.lock().unwrap();
        Ok(stored)
    }

    async fn get(&self, sequence: u64) -> Result<Option<Record>, StoreError> {
        self.log.get(sequence).await
    }

    async fn last(&self, subject: &str) -> Result<Option<Record>, StoreError> {
        self.log.last(subject).await
    }

    async fn read(&self, pattern: &str, after: u64, max: usize) -> Result<Vec<Record>, StoreError> {
        self.log.read(pattern, after, max).await
    }

    async fn heads(&self, pattern: &str) -> Result<Vec<Record>, StoreError> {
        self.log.heads(pattern).await
    }

    async fn watch(&self, pattern: &str) -> Result<Watched, StoreError> {
        let watched = self.log.watch(pattern).await?;
        if self.broken != Break::Mark {
            return Ok(watched);
        }
        let unmarked = watched.filter(|it| std::future::ready(*it != Ok(None)));
        Ok(unmarked.boxed())
    }

    async fn purge(&self, pattern: &str, before: u64) -> Result<u64, StoreError> {
        let before = if self.broken == Break::Purge {
            u64::MAX
        } else {
            before
        };
        let removed = self.log.purge(pattern, before).await?;
        let state = self.log.state().await?;
        if self.broken == Break::Numbers && state.records == 0 {
            *self.before.lock().unwrap() = state.last;
        }
        Ok(removed)
    }

    async fn state(&self) -> Result<LogState, StoreError> {
        let mut state = self.log.state().await?;
        if self.broken == Break::Created {
            state.created = 0;
        }
        Ok(state)
    }
}

#[tokio::test(start_paused = true)]
async fn the_memory_store_conforms_to_all_rules() {
    store_suite::all(&Memory::new(Break::Nothing)).await;
}

/// What is said of a broken engine.
async fn said_of(broken: Break) -> String {
    let engine = Memory::new(broken);
    let checking = AssertUnwindSafe(store_suite::all(&engine)).catch_unwind();
    match checking.await {
        Ok(()) => format!("nothing is wrong with {broken:?}"),
        Err(said) => *said.downcast::<String>().unwrap(),
    }
}

#[tokio::test(start_paused = true)]
async fn a_broken_engine_fails_the_rule_it_breaks() {
    for (broken, rule, how) in [
        (Break::Ids, "with the same id one is stored", "the second"),
        (
            Break::Last,
            "with the same `last` at most one",
            "a second first record",
        ),
        (
            Break::Numbers,
            "a number never comes again",
            "1, expected 4",
        ),
        (Break::Order, "a feed brings records", "a record"),
        (
            Break::Gaps,
            "read too slowly loses nothing",
            "no gap is counted",
        ),
        (
            Break::Mark,
            "then `None` once",
            "the mark of an empty log takes",
        ),
        (
            Break::Purge,
            "a purge removes the records that match",
            "a before 0",
        ),
        (Break::Full, "appends fail with `Full`", "are in 64 KiB"),
        (
            Break::Created,
            "a lost log is made again",
            "when the lost one was",
        ),
    ] {
        let said = said_of(broken).await;
        assert!(
            said.contains("rule broken: ") && said.contains(rule) && said.contains(how),
            "{broken:?}: {said}"
        );
    }
}
