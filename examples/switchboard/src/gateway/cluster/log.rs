//! [`UsageLog`]: the usage of all nodes, in a log.

use std::sync::Arc;
use std::time::Duration;

use rpc_core::store::{Expect, Log, LogConfig, Store, StoreError as Failure};
use rpc_core::sync::Mutex;

use super::{Attempts, ClusterConfig};
use crate::gateway::store::StoreError;
use crate::gateway::usage::UsageEntry;

/// The subject of all entries.
const SUBJECT: &str = "gateway_usage.all";
/// How many entries are read at once.
const PAGE: usize = 256;

/// The usage of all nodes.
#[derive(Debug)]
pub(super) struct UsageLog {
    log: Arc<dyn Log>,
    patience: Duration,
    /// What could not be written in time, with its ids.
    late: Mutex<Vec<(String, UsageEntry)>>,
}

impl UsageLog {
    pub(super) async fn open(store: &dyn Store, config: ClusterConfig) -> Result<Self, Failure> {
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
        let added = self.publish(&id, entry).await;
        if added.is_err() {
            self.late.lock().push((id, entry.clone()));
        }
        added
    }

    async fn publish(&self, id: &str, entry: &UsageEntry) -> Result<(), StoreError> {
        let text = serde_json::to_vec(entry);
        let text = text.map_err(|error| StoreError::damaged("the cluster", error.to_string()))?;
        let expect = Expect {
            id: Some(id),
            last: None,
        };
        let mut attempts = Attempts::new(self.patience);
        loop {
            let append = async {
                Ok(self
                    .log
                    .append(SUBJECT, text.clone().into(), expect)
                    .await?)
            };
            if attempts.run(append).await?.is_some() {
                return Ok(());
            }
        }
    }

    /// Writes what could not be written before. Returns whether nothing is left.
    pub(super) async fn write_late(&self) -> bool {
        let late = std::mem::take(&mut *self.late.lock());
        let mut is_done = true;
        for (id, entry) in late {
            is_done &= self.add(id, &entry).await.is_ok();
        }
        is_done
    }

    /// Returns the last entries, newest first.
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
        entries.reverse();
        entries.truncate(max);
        Ok(entries)
    }
}
