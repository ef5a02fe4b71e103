//! [`MemoryLog`]: a log of a [`MemoryStore`], and those who watch it.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::sync::watch;
use tokio::time::sleep;

use super::data::{Data, without_payload};
use super::engine::Engine;
use super::{Link, MemoryStore, check_len};
use crate::Str;
use crate::store::{Expect, Log, LogConfig, LogState, Record, Store, StoreError, Stored, Watched};
use crate::sync::Mutex;

/// How many records are read at once for a watcher.
const PAGE: usize = 256;

pub(super) struct MemoryLog {
    store: MemoryStore,
    name: Arc<str>,
    config: Arc<LogConfig>,
}

impl MemoryLog {
    pub(super) fn new(store: MemoryStore, name: Arc<str>, config: LogConfig) -> Self {
        let config = Arc::new(config);
        Self {
            store,
            name,
            config,
        }
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Data) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let (name, config) = (Arc::clone(&self.name), Arc::clone(&self.config));
        let working = move |engine: &mut Engine| Ok(work(engine.data(&name, &config)?));
        self.store.request(false, working).await
    }
}

crate::debug::debug_fields!([] MemoryLog, this => { name: this.name });

#[async_trait]
impl Log for MemoryLog {
    async fn append(
        &self,
        subject: &str,
        payload: Bytes,
        expect: Expect<'_>,
    ) -> Result<Stored, StoreError> {
        check_len(&payload)?;
        let record = Record {
            subject: subject.into(),
            sequence: 0,
            id: expect.id.unwrap_or_default().into(),
            payload,
            time: 0,
        };
        let (name, config) = (Arc::clone(&self.name), Arc::clone(&self.config));
        let appending =
            move |engine: &mut Engine| engine.append((&name, &config), record, expect.last);
        self.store.request(true, appending).await
    }

    async fn get(&self, sequence: u64) -> Result<Option<Record>, StoreError> {
        self.with(move |data| data.get(sequence)).await
    }

    async fn last(&self, subject: &str) -> Result<Option<Record>, StoreError> {
        let subject = Str::from(subject);
        self.with(move |data| data.last(&subject)).await
    }

    async fn read(&self, pattern: &str, after: u64, max: usize) -> Result<Vec<Record>, StoreError> {
        let pattern = pattern.to_owned();
        let reading = self.with(move |data| {
            let found = data.read(&pattern, after).take(max);
            found.cloned().collect()
        });
        reading.await
    }

    async fn heads(&self, pattern: &str) -> Result<Vec<Record>, StoreError> {
        let pattern = pattern.to_owned();
        let heads = self.with(move |data| data.heads(&pattern)).await?;
        Ok(heads.into_iter().map(without_payload).collect())
    }

    async fn watch(&self, pattern: &str) -> Result<Watched, StoreError> {
        let pattern = pattern.to_owned();
        let (wanted, gaps) = (pattern.clone(), self.store.gaps());
        let opening = self.with(move |data| (data.heads(&wanted), data.created, data.last));
        let (heads, created, after) = opening.await?;
        let watching = Watching {
            engine: Arc::downgrade(&self.store.engine),
            link: Arc::clone(&self.store.link),
            changes: self.store.engine.lock().changed.subscribe(),
            gaps,
            name: Arc::clone(&self.name),
            pattern,
            created,
            after,
            ready: heads.into_iter().map(Some).chain([None]).collect(),
        };
        let watched = stream::unfold(Some(watching), |watching| async {
            let mut watching = watching?;
            Some(match watching.next().await {
                Ok(item) => (Ok(item), Some(watching)),
                Err(error) => (Err(error), None),
            })
        });
        Ok(watched.boxed())
    }

    async fn purge(&self, pattern: &str, before: u64) -> Result<u64, StoreError> {
        let pattern = pattern.to_owned();
        let (name, config) = (Arc::clone(&self.name), Arc::clone(&self.config));
        let purging =
            move |engine: &mut Engine| Ok(engine.data(&name, &config)?.purge(&pattern, before));
        self.store.request(true, purging).await
    }

    async fn state(&self) -> Result<LogState, StoreError> {
        self.with(|data| data.state()).await
    }
}

/// Someone who watches.
struct Watching {
    engine: Weak<Mutex<Engine>>,
    link: Arc<Link>,
    changes: watch::Receiver<()>,
    gaps: watch::Receiver<u64>,
    name: Arc<str>,
    pattern: String,
    /// When the log was made: another one numbers its records again.
    created: u128,
    after: u64,
    ready: VecDeque<Option<Record>>,
}

impl Watching {
    async fn next(&mut self) -> Result<Option<Record>, StoreError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Ok(item);
            }
            self.changes.mark_unchanged();
            self.link.pass().await;
            sleep(self.link.faults().delay).await;
            if self.gaps.has_changed().unwrap_or(true) {
                return Err(StoreError::unavailable("the connection was lost"));
            }
            if !self.read()? {
                tokio::select! {
                    changed = self.changes.changed() => changed.map_err(|_| lost())?,
                    _ = self.gaps.changed() => self.gaps.mark_changed(),
                }
            }
        }
    }

    /// Takes what is new, if there is something.
    fn read(&mut self) -> Result<bool, StoreError> {
        let engine = self.engine.upgrade().ok_or_else(lost)?;
        let engine = engine.lock();
        let data = engine.logs.get(&*self.name);
        let data = data.filter(|data| data.created == self.created);
        let data = data.ok_or_else(lost)?;
        let new = data.read(&self.pattern, self.after).take(PAGE);
        self.ready.extend(new.cloned().map(Some));
        if let Some(Some(record)) = self.ready.back() {
            self.after = record.sequence;
        }
        Ok(!self.ready.is_empty())
    }
}

fn lost() -> StoreError {
    let message = "the log that was watched is lost".to_owned();
    StoreError::Failed { message }
}
