//! [`UsageLog`]: the usage of all runs, in a log.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use rpc_core::store::{Log, LogConfig, Record, Store, StoreError as Failure};
use tokio::time::timeout;

use super::attempts::unavailable;
use super::{GatewayStoreConfig, StoreError};
use crate::gateway::usage::UsageEntry;

/// The subject of all entries.
const SUBJECT: &str = "gateway_usage.all";
/// How many entries are read at once.
const PAGE: usize = 256;

/// The usage of all runs.
#[derive(Debug)]
pub(super) struct UsageLog {
    log: Arc<dyn Log>,
    patience: Duration,
}

impl UsageLog {
    pub(super) async fn open(
        store: &dyn Store,
        config: GatewayStoreConfig,
    ) -> Result<Self, Failure> {
        let log = LogConfig {
            max_records: Some(config.limits.usage.max(1)),
            ..LogConfig::new("gateway_usage.*")
        };
        Ok(Self {
            log: store.log("gateway_usage", log).await?,
            patience: config.patience,
        })
    }

    /// Takes over the entries of an earlier version, as far as they are not there yet.
    pub(super) async fn import(&self, entries: &[UsageEntry]) -> Result<(), StoreError> {
        let there = usize::try_from(self.log.state().await?.last).unwrap_or(usize::MAX);
        let entries: Vec<_> = entries.iter().enumerate().skip(there).collect();
        for some in entries.chunks(PAGE) {
            let appends = some.iter().map(|(number, entry)| async move {
                self.append(&format!("import-{number}"), entry).await
            });
            try_join_all(appends).await?;
        }
        Ok(())
    }

    /// Adds an entry. With the same id it is added once.
    pub(super) async fn append(&self, id: &str, entry: &UsageEntry) -> Result<(), StoreError> {
        let text = serde_json::to_vec(entry)?.into();
        let appending = self.log.append_once(SUBJECT, text, None, id, || true);
        let appended = timeout(self.patience, appending).await;
        let appended = appended.map_err(|_| unavailable(self.patience))?;
        Ok(appended.map(drop)?)
    }

    /// Returns the last entries, newest first.
    pub(super) async fn last(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError> {
        let mut entries = Vec::new();
        let mut after = self.log.state().await?.last.saturating_sub(max as u64);
        loop {
            let page = self.log.read(SUBJECT, after, PAGE).await?;
            let entry = |it: &Record| rpc_core::json::from_slice(&it.payload).ok();
            entries.extend(page.iter().filter_map(entry));
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
