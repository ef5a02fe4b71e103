//! The store of a node's leases and claims, and its clock: what they ask for becomes calls of the node.

use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use rpc_core::cluster::internals::Clock;
use rpc_core::store::{
    AskError, Expect, Log, LogConfig, LogState, Messages, Record, Store, StoreError, Stored,
    Watched,
};
use tokio::sync::watch;

/// What is done with a key.
#[derive(Clone, Debug)]
pub struct KeyCall {
    pub number: u64,
    pub subject: String,
    pub operation: Operation,
}

#[derive(Clone, Debug)]
pub enum Operation {
    Read,
    Write { value: Bytes, revision: u64 },
    Remove { revision: u64 },
}

/// The value of a key and its revision; `None` without.
pub type KeyReply = Result<Option<(Bytes, u64)>, StoreError>;

#[derive(Debug)]
struct State {
    now: Instant,
    wakes: Vec<Instant>,
    calls: Vec<KeyCall>,
    replies: HashMap<u64, KeyReply>,
    asked: u64,
}

/// A node's clock, and its line to the keys. A clone is the same one.
#[derive(Clone, Debug)]
pub struct Keys(Arc<Mutex<State>>);

impl Keys {
    pub fn new(now: Instant) -> Self {
        Self(Arc::new(Mutex::new(State {
            now,
            wakes: Vec::new(),
            calls: Vec::new(),
            replies: HashMap::new(),
            asked: 0,
        })))
    }

    pub fn set_time(&self, now: Instant) {
        let mut state = self.0.lock().unwrap();
        state.now = now;
        state.wakes.retain(|at| *at > now);
    }

    pub fn reply(&self, number: u64, reply: KeyReply) {
        self.0.lock().unwrap().replies.insert(number, reply);
    }

    /// Takes the next call.
    pub fn poll_call(&self) -> Option<KeyCall> {
        self.0.lock().unwrap().calls.pop()
    }

    pub fn poll_timeout(&self) -> Option<Instant> {
        self.0.lock().unwrap().wakes.iter().min().copied()
    }

    async fn ask(&self, subject: &str, operation: Operation) -> KeyReply {
        let number = {
            let mut state = self.0.lock().unwrap();
            state.asked += 1;
            let number = state.asked;
            state.calls.push(KeyCall {
                number,
                subject: subject.to_owned(),
                operation,
            });
            number
        };
        poll_fn(|_| match self.0.lock().unwrap().replies.remove(&number) {
            Some(reply) => Poll::Ready(reply),
            None => Poll::Pending,
        })
        .await
    }
}

impl Clock for Keys {
    fn now(&self) -> Instant {
        self.0.lock().unwrap().now
    }

    fn sleep_until(&self, at: Instant) -> BoxFuture<'static, ()> {
        let keys = self.clone();
        Box::pin(poll_fn(move |_| {
            let mut state = keys.0.lock().unwrap();
            if at <= state.now {
                return Poll::Ready(());
            }
            if !state.wakes.contains(&at) {
                state.wakes.push(at);
            }
            Poll::Pending
        }))
    }
}

#[async_trait]
impl Store for Keys {
    async fn log(&self, _: &str, _: LogConfig) -> Result<Arc<dyn Log>, StoreError> {
        Ok(Arc::new(self.clone()))
    }

    async fn ensure(&self) -> Result<(), StoreError> {
        Ok(())
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs(5)
    }

    async fn logs(&self) -> Result<Vec<(String, LogConfig)>, StoreError> {
        unreachable!()
    }

    async fn publish(&self, _: &str, _: Bytes) -> Result<(), StoreError> {
        unreachable!()
    }

    fn try_publish(&self, _: &str, _: Bytes) -> bool {
        unreachable!()
    }

    async fn subscribe(&self, _: &str) -> Result<Messages, StoreError> {
        unreachable!()
    }

    async fn ask(&self, _: &str, _: Bytes, _: Duration) -> Result<Bytes, AskError> {
        unreachable!()
    }

    fn answer(&self, _: &str, _: Bytes) {}

    fn is_connected(&self) -> bool {
        true
    }

    fn gaps(&self) -> watch::Receiver<u64> {
        unreachable!()
    }

    fn max_payload(&self) -> usize {
        unreachable!()
    }
}

#[async_trait]
impl Log for Keys {
    async fn append(
        &self,
        subject: &str,
        value: Bytes,
        expect: Expect<'_>,
    ) -> Result<Stored, StoreError> {
        let revision = expect.last.unwrap();
        let write = Operation::Write { value, revision };
        let sequence = Keys::ask(self, subject, write).await?.unwrap().1;
        let is_duplicate = false;
        Ok(Stored {
            sequence,
            is_duplicate,
        })
    }

    async fn last(&self, subject: &str) -> Result<Option<Record>, StoreError> {
        let found = Keys::ask(self, subject, Operation::Read).await?;
        Ok(found.map(|(payload, sequence)| Record {
            subject: subject.into(),
            sequence,
            id: "".into(),
            payload,
            time: 0,
        }))
    }

    async fn purge(&self, subject: &str, before: u64) -> Result<u64, StoreError> {
        let revision = before - 1;
        let removed = Keys::ask(self, subject, Operation::Remove { revision }).await?;
        Ok(u64::from(removed.is_some()))
    }

    async fn get(&self, _: u64) -> Result<Option<Record>, StoreError> {
        unreachable!()
    }

    async fn read(&self, _: &str, _: u64, _: usize) -> Result<Vec<Record>, StoreError> {
        unreachable!()
    }

    async fn heads(&self, _: &str) -> Result<Vec<Record>, StoreError> {
        unreachable!()
    }

    async fn watch(&self, _: &str) -> Result<Watched, StoreError> {
        unreachable!()
    }

    async fn state(&self) -> Result<LogState, StoreError> {
        unreachable!()
    }
}
