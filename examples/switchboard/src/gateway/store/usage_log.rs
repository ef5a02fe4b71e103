//! [`UsageLog`]: the usage of all runs, in a log.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::try_join_all;
use rpc_core::store::{Expect, Log, LogConfig, Store, StoreError as Failure};

use super::attempts::repeat;
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
            max_records: Some(config.limits.usage),
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
        for some in entries.get(there..).unwrap_or_default().chunks(PAGE) {
            try_join_all(some.iter().map(|entry| self.append(None, entry))).await?;
        }
        Ok(())
    }

    /// Adds an entry. With the same id it is added once.
    pub(super) async fn append(
        &self,
        id: Option<&str>,
        entry: &UsageEntry,
    ) -> Result<(), StoreError> {
        let text = serde_json::to_vec(entry)?;
        let expect = Expect { id, last: None };
        let append = || async {
            let appended = self.log.append(SUBJECT, text.clone().into(), expect);
            Ok(appended.await.map(drop)?)
        };
        repeat(self.patience, append).await
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
