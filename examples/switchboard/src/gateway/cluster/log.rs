//! [`UsageLog`]: the usage of all nodes, in a stream.

use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::OrderedConfig;
use async_nats::jetstream::stream::{Config, DiscardPolicy, Stream};
use futures_util::StreamExt as _;
use rpc_core::net::nats::{Expect, Nats, NatsError};
use tokio::time::{Instant, sleep, timeout};

use super::{ClusterConfig, PAUSE, passes};
use crate::gateway::store::StoreError;
use crate::gateway::usage::UsageEntry;

/// The usage of all nodes.
pub(super) struct UsageLog {
    nats: Nats,
    stream: Stream,
    subject: String,
    patience: Duration,
    /// What could not be written in time, with its ids.
    late: Mutex<Vec<(String, UsageEntry)>>,
}

impl fmt::Debug for UsageLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("UsageLog").field(&self.subject).finish()
    }
}

impl UsageLog {
    pub(super) async fn open(nats: &Nats, config: ClusterConfig) -> Result<Self, NatsError> {
        let subject = nats.subject(&["gateway", "usage"]);
        let stream = Config {
            subjects: vec![subject.clone()],
            max_messages: i64::try_from(config.limits.usage).unwrap_or(i64::MAX),
            discard: DiscardPolicy::Old,
            ..Config::default()
        };
        Ok(Self {
            stream: nats.stream("gateway_usage", stream).await?,
            nats: nats.clone(),
            subject,
            patience: config.patience,
            late: Mutex::default(),
        })
    }

    /// Adds an entry. With the same id it is added once. If that is not possible now, it is written
    /// later.
    pub(super) async fn add(&self, id: String, entry: &UsageEntry) -> Result<(), StoreError> {
        let added = self.publish(&id, entry).await;
        if added.is_err() {
            self.late().push((id, entry.clone()));
        }
        added
    }

    async fn publish(&self, id: &str, entry: &UsageEntry) -> Result<(), StoreError> {
        let until = Instant::now() + self.patience;
        let text = serde_json::to_vec(entry);
        let text = text.map_err(|error| StoreError::damaged("NATS", error.to_string()))?;
        loop {
            let expect = Expect {
                id: Some(id),
                last_subject_sequence: None,
            };
            let text = text.clone().into();
            match self.nats.publish(self.subject.clone(), text, expect).await {
                Ok(_) => return Ok(()),
                Err(error) if passes(&error) && Instant::now() < until => sleep(PAUSE).await,
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn late(&self) -> MutexGuard<'_, Vec<(String, UsageEntry)>> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what could not be written before. Returns whether nothing is left.
    pub(super) async fn write_late(&self) -> bool {
        let late = std::mem::take(&mut *self.late());
        let mut is_done = true;
        for (id, entry) in late {
            is_done &= self.add(id, &entry).await.is_ok();
        }
        is_done
    }

    /// Returns the last entries, newest first.
    pub(super) async fn last(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError> {
        let name = &self.stream.cached_info().config.name;
        let info = self.nats.asked(name, self.stream.get_info()).await?;
        let state = info.state;
        let first = state.last_sequence.saturating_sub(max as u64) + 1;
        if max == 0 || state.messages == 0 {
            return Ok(Vec::new());
        }
        let policy = DeliverPolicy::ByStartSequence {
            start_sequence: first.max(state.first_sequence),
        };
        let mut entries = Vec::new();
        let config = OrderedConfig {
            deliver_subject: self.nats.client().new_inbox(),
            deliver_policy: policy,
            ..OrderedConfig::default()
        };
        read(&self.nats, &self.stream, config, |_, payload| {
            entries.extend(rpc_core::json::from_slice(payload).ok());
        })
        .await?;
        entries.reverse();
        entries.truncate(max);
        Ok(entries)
    }
}

/// Reads what is in a stream now.
pub(super) async fn read(
    nats: &Nats,
    stream: &Stream,
    config: OrderedConfig,
    mut take: impl FnMut(&async_nats::jetstream::Message, &[u8]),
) -> Result<(), StoreError> {
    let reading = async {
        let name = &stream.cached_info().config.name;
        let consumer = nats.asked(name, stream.create_consumer(config)).await?;
        if consumer.cached_info().num_pending == 0 {
            return Ok(());
        }
        let messages = consumer.messages().await;
        let mut messages = messages.map_err(|error| unreadable(&error))?;
        while let Some(message) = messages.next().await {
            let message = message.map_err(|error| unreadable(&error))?;
            let pending = message.info().map_or(0, |info| info.pending);
            take(&message, &message.payload);
            if pending == 0 {
                break;
            }
        }
        Ok(())
    };
    let read = timeout(nats.timeout(), reading).await;
    read.unwrap_or_else(|error| Err(unreadable(&error)))
}

pub(super) fn unreadable(error: &dyn fmt::Display) -> StoreError {
    StoreError::Nats(NatsError::Unavailable {
        message: error.to_string(),
    })
}
