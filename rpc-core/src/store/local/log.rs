//! [`LocalLog`]: a log of a [`LocalStore`](super::LocalStore), and those who watch it.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::sync::watch;
use tokio::time::sleep;

use super::logs::{Logs, OpenLog};
use super::rows::{View, millis, system_time};
use super::{Engine, Link, MAX_PAYLOAD, Node};
use crate::Str;
use crate::store::subject::{check_len, check_pattern, check_subject};
use crate::store::{Expect, Log, LogState, Record, StoreError, Stored, Watched};

/// How many records are read at once for a watcher.
const PAGE: usize = 256;

pub(super) struct LocalLog {
    pub(super) node: Node,
    pub(super) wanted: Arc<OpenLog>,
    pub(super) view: View,
}

impl LocalLog {
    /// Reads; where that blocks, on another thread.
    async fn read_with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&View) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        if self.node.engine.is_virtual {
            let reading = self.with(false, |logs, wanted| work(&logs.view(wanted)?));
            return reading.await;
        }
        blocking(self.view.clone(), work).await
    }

    /// Has the one who writes do something.
    async fn with<T: Send + 'static>(
        &self,
        is_write: bool,
        work: impl FnOnce(&mut Logs, &OpenLog) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let wanted = Arc::clone(&self.wanted);
        let working = move |logs: &mut Logs| work(logs, &wanted);
        self.node.request(is_write, working).await
    }
}

async fn blocking<T: Send + 'static>(
    mut view: View,
    work: impl FnOnce(&View) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let reading = tokio::task::spawn_blocking(move || {
        let age = view.max_age.unwrap_or(u64::MAX);
        view.oldest = millis(system_time()).saturating_sub(age);
        work(&view)
    });
    reading.await.map_err(StoreError::unavailable)?
}

crate::debug::debug_fields!([] LocalLog, this => { name: this.wanted.name });

#[async_trait]
impl Log for LocalLog {
    async fn append(
        &self,
        subject: &str,
        payload: Bytes,
        expect: Expect<'_>,
    ) -> Result<Stored, StoreError> {
        check_len(&payload, MAX_PAYLOAD)?;
        let record = Record {
            subject: subject.into(),
            sequence: 0,
            id: expect.id.unwrap_or_default().into(),
            payload,
            time: 0,
        };
        let last = expect.last;
        self.with(true, move |logs, wanted| logs.append(wanted, record, last))
            .await
    }

    async fn get(&self, sequence: u64) -> Result<Option<Record>, StoreError> {
        self.read_with(move |view| view.get(sequence)).await
    }

    async fn last(&self, subject: &str) -> Result<Option<Record>, StoreError> {
        check_subject(subject)?;
        let subject = Str::from(subject);
        self.read_with(move |view| view.last(&subject)).await
    }

    async fn read(&self, pattern: &str, after: u64, max: usize) -> Result<Vec<Record>, StoreError> {
        check_pattern(pattern)?;
        let pattern = pattern.to_owned();
        self.read_with(move |view| view.read(&pattern, after, max))
            .await
    }

    async fn heads(&self, pattern: &str) -> Result<Vec<Record>, StoreError> {
        check_pattern(pattern)?;
        let pattern = pattern.to_owned();
        let damaged = |subject: &str, sequence| {
            Ok(Record {
                subject: subject.into(),
                sequence,
                id: Str::EMPTY,
                payload: Bytes::new(),
                time: 0,
            })
        };
        let heads = self.read_with(move |view| view.lasts(&pattern, damaged));
        let without_payload = |head| Record {
            payload: Bytes::new(),
            ..head
        };
        Ok(heads.await?.into_iter().map(without_payload).collect())
    }

    async fn watch(&self, pattern: &str) -> Result<Watched, StoreError> {
        check_pattern(pattern)?;
        let engine = &self.node.engine;
        let (pattern, gaps) = (Str::from(pattern), self.node.link.gaps.subscribe());
        let changes = engine.hub.lock().changed.subscribe();
        let wanted = pattern.clone();
        // Where nothing is written meanwhile.
        let opening = move |logs: &mut Logs, log: &OpenLog| {
            let view = logs.view(log)?;
            let damaged = |_: &str, sequence| Err(StoreError::Unreadable { sequence });
            Ok((view.lasts(&wanted, damaged)?, view.last_number()?, view))
        };
        let (heads, after, view) = self.with(false, opening).await?;
        let watching = Watching {
            engine: Arc::downgrade(engine),
            link: Arc::clone(&self.node.link),
            changes,
            gaps,
            wanted: Arc::clone(&self.wanted),
            pattern,
            view,
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
        check_pattern(pattern)?;
        let (mut sum, mut next) = (0, Some(0));
        while let Some(after) = next {
            let pattern = pattern.to_owned();
            let purging = self.with(true, move |logs, wanted| {
                logs.purge(wanted, &pattern, (after, before))
            });
            let count;
            (count, next) = purging.await?;
            sum += count;
        }
        Ok(sum)
    }

    async fn state(&self) -> Result<LogState, StoreError> {
        self.with(false, Logs::state).await
    }
}

/// Someone who watches.
struct Watching {
    engine: Weak<Engine>,
    link: Arc<Link>,
    changes: watch::Receiver<()>,
    gaps: watch::Receiver<u64>,
    wanted: Arc<OpenLog>,
    pattern: Str,
    /// Of the log that is watched: another one numbers its records again.
    view: View,
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
            self.read().await?;
            if self.ready.is_empty() {
                tokio::select! {
                    changed = self.changes.changed() => changed.map_err(|_| lost())?,
                    _ = self.gaps.changed() => self.gaps.mark_changed(),
                }
            }
        }
    }

    /// Takes what is new.
    async fn read(&mut self) -> Result<(), StoreError> {
        let engine = self.engine.upgrade().ok_or_else(lost)?;
        let (pattern, after) = (self.pattern.clone(), self.after);
        let read = move |view: &View| view.read(&pattern, after, PAGE);
        let new = if engine.is_virtual {
            let view = engine.logs.lock().known_view(&self.wanted.name);
            let view = view.filter(|view| view.created == self.view.created);
            read(&view.ok_or_else(lost)?)?
        } else {
            drop(engine);
            blocking(self.view.clone(), read).await?
        };
        self.after = new.last().map_or(self.after, |record| record.sequence);
        self.ready.extend(new.into_iter().map(Some));
        Ok(())
    }
}

fn lost() -> StoreError {
    StoreError::failed("the log that was watched is lost")
}
