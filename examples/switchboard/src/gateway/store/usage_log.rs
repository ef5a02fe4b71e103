//! [`UsageLog`]: the usage of all runs, in a log.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use rpc_core::store::{Expect, Log, LogConfig, Store, StoreError as Failure};
use rpc_core::sync::Mutex;

use super::attempts::repeat;
use super::{GatewayStoreConfig, StoreError};
use crate::gateway::usage::UsageEntry;

/// The subject of all entries.
const SUBJECT: &str = "gateway_usage.all";
/// How many entries are read at once.
const PAGE: usize = 256;
/// Most entries that wait to be written.
const MAX_LATE: usize = 4096;

/// The usage of all runs.
#[derive(Debug)]
pub(super) struct UsageLog {
    log: Arc<dyn Log>,
    patience: Duration,
    /// What could not be written in time, oldest first, with its ids.
    late: Mutex<VecDeque<(String, UsageEntry)>>,
}

impl UsageLog {
    pub(super) async fn open(
        store: &dyn Store,
        config: GatewayStoreConfig,
    ) -> Result<Self, Failure> {
        let log = LogConfig {
            max_records: Some(config.limits.usage),
            ..LogConfig::new("gateway_usage.*")
        };
        Ok(Self {
            log: store.log("gateway_usage", log).await?,
            patience: config.patience,
            late: Mutex::default(),
        })
    }

    /// Adds an entry. With the same id it is added once. If that is not possible now, it is written
    /// later.
    pub(super) async fn add(&self, id: String, entry: &UsageEntry) -> Result<(), StoreError> {
        let added = self.append(Some(&id), entry).await;
        if added.is_err() {
            let mut late = self.late.lock();
            late.push_back((id, entry.clone()));
            if late.len() > MAX_LATE
                && let Some((_, lost)) = late.pop_front()
            {
                tracing::error!(tokens = lost.tokens(), "an entry of the usage log is lost");
            }
        }
        added
    }

    /// Takes over the entries of an earlier version, as far as they are not there yet.
    pub(super) async fn import(&self, entries: &[UsageEntry]) -> Result<(), StoreError> {
        let there = usize::try_from(self.log.state().await?.last).unwrap_or(usize::MAX);
        for some in entries.get(there..).unwrap_or_default().chunks(PAGE) {
            try_join_all(some.iter().map(|entry| self.append(None, entry))).await?;
        }
        Ok(())
    }

    async fn append(&self, id: Option<&str>, entry: &UsageEntry) -> Result<(), StoreError> {
        let text = serde_json::to_vec(entry)?;
        let expect = Expect { id, last: None };
        let append = || async {
            let appended = self.log.append(SUBJECT, text.clone().into(), expect);
            Ok(appended.await.map(drop)?)
        };
        repeat(self.patience, append).await
    }

    /// Writes what could not be written before. Returns whether nothing is left.
    pub(super) async fn write_late(&self) -> bool {
        loop {
            let Some((id, entry)) = self.late.lock().front().cloned() else {
                return true;
            };
            if self.append(Some(&id), &entry).await.is_err() {
                return false;
            }
            self.late.lock().retain(|(late, _)| *late != id);
        }
    }

    /// Returns the last entries, newest first, and before them those that are not written yet.
    pub(super) async fn last(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError> {
        let mut entries = Vec::new();
        let mut after = self.log.state().await?.last.saturating_sub(max as u64);
        loop {
            let page = self.log.read(SUBJECT, after, PAGE).await?;
            let read = page
                .iter()
                .map(|it| rpc_core::json::from_slice(&it.payload));
            entries.extend(read.filter_map(Result::ok));
            match page.last() {
                Some(last) if page.len() == PAGE => after = last.sequence,
                _ => break,
            }
        }
        entries.extend(self.late.lock().iter().map(|(_, entry)| entry.clone()));
        entries.reverse();
        entries.truncate(max);
        Ok(entries)
    }
}
