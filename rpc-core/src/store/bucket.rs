//! [`Bucket`]: values by key, with revisions.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_core::stream::BoxStream;
use futures_util::StreamExt;
use tokio::time::timeout;

use super::{Expect, Log, LogConfig, Record, Store, StoreError};

crate::config! {
    /// The configuration of a bucket that does not exist yet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BucketConfig {
        /// The time after its last write at which a key vanishes. Default `None`: never.
        pub max_age: Option<Duration> = None,
        /// The bytes of the whole bucket, beyond which writes fail. Default `None`.
        pub max_bytes: Option<u64> = None,
    }
}

/// A value with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The value; never empty.
    pub value: Bytes,
    /// The number of its last write: later ones are larger, in the whole bucket.
    pub revision: u64,
}

/// What happens to a watched key.
///
/// Exhaustive on purpose: a watcher has to handle all that can happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has this value.
    Put(Entry),
    /// It was deleted. A key that vanishes by its [age](BucketConfig::max_age) is not reported.
    Deleted {
        /// The key.
        key: String,
        /// The number of the deletion.
        revision: u64,
    },
    /// All keys that were there at the start have been reported.
    Current,
}

/// The changes of the keys that match a pattern: [`Bucket::watch`].
pub type Watch = BoxStream<'static, Result<Change, StoreError>>;

/// Values by key in a [`Log`] of their own, which keeps the last one of each. Cheap to clone.
///
/// **An empty value is a deletion**: a key that has it does not exist.
///
/// Keys are made of [tokens](super::token) with dots between them; patterns are keys in which `*` stands for
/// one token, or a last `>` for all that follow.
#[derive(Clone)]
pub struct Bucket {
    log: Arc<dyn Log>,
    /// What is before the keys in subjects.
    prefix: Arc<str>,
    timeout: Duration,
}

impl Bucket {
    /// Opens the bucket with this name, which is a token, and makes it if it does not exist.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe. [`StoreError::Config`] if it exists with a shorter
    /// [age](BucketConfig::max_age).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn open(
        store: &Arc<dyn Store>,
        name: &str,
        config: BucketConfig,
    ) -> Result<Self, StoreError> {
        let log = LogConfig {
            max_per_subject: Some(1),
            max_bytes: config.max_bytes,
            max_age: config.max_age,
            ..LogConfig::new(&format!("{name}.k.>"))
        };
        Ok(Self {
            log: store.log(&format!("{name}_keys"), log).await?,
            prefix: format!("{name}.k.").into(),
            timeout: store.timeout(),
        })
    }

    /// Returns the value of a key; `None` if there is none. It sees all that was written before it was
    /// called.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn get(&self, key: &str) -> Result<Option<Entry>, StoreError> {
        let last = self.log.last(&self.subject(key)).await?;
        Ok(last.and_then(|last| match change(&self.prefix, last) {
            Change::Put(entry) => Some(entry),
            Change::Deleted { .. } | Change::Current => None,
        }))
    }

    /// Writes the value of a key that does not exist. Returns the revision.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if it exists. After [`StoreError::Unavailable`] it may be written or
    /// not: [get](Self::get) it to know.
    ///
    /// # Cancel safety
    /// If the future is dropped, the value may be written or not.
    pub async fn create(&self, key: &str, value: Bytes) -> Result<u64, StoreError> {
        self.replace(key, value, 0, None).await
    }

    /// Replaces the value that has this revision; 0 is that of a key that never had one, or whose removal is
    /// forgotten. Returns the new one.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the key has another revision or none. After
    /// [`StoreError::Unavailable`] it may be written or not: repeating it is safe, and a conflict
    /// then says nothing about who wrote.
    ///
    /// # Cancel safety
    /// If the future is dropped, the value may be written or not.
    pub async fn update(&self, key: &str, value: Bytes, revision: u64) -> Result<u64, StoreError> {
        self.write(key, value, Some(revision)).await
    }

    /// Replaces a value as [`update`](Self::update) does, or [creates](Self::create) it if the revision is 0, once:
    /// again with the same `id`, which no other write has, until the outcome is known.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the key has another revision or none. Any other [`StoreError`]: it is not
    /// written.
    ///
    /// # Cancel safety
    /// If the future is dropped, the value may be written or not.
    pub async fn update_once(
        &self,
        key: &str,
        value: Bytes,
        revision: u64,
        id: &str,
    ) -> Result<u64, StoreError> {
        self.replace(key, value, revision, Some(id)).await
    }

    async fn replace(
        &self,
        key: &str,
        value: Bytes,
        revision: u64,
        id: Option<&str>,
    ) -> Result<u64, StoreError> {
        let (subject, mut last) = (self.subject(key), revision);
        loop {
            let value = value.clone();
            let written = match id {
                None => self.write(key, value, Some(last)).await,
                Some(id) => {
                    let log = &self.log;
                    let appending = log.append_once(&subject, value, Some(last), id, || true);
                    appending.await
                }
            };
            match written {
                Err(StoreError::Conflict) if revision == 0 && last == 0 => {}
                written => return written,
            }
            // A deleted key has a last record too.
            match self.log.last(&subject).await? {
                Some(there) if !there.payload.is_empty() => return Err(StoreError::Conflict),
                there => last = there.map_or(0, |it| it.sequence),
            }
        }
    }

    /// Writes a value, whatever was there. Returns the revision.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe unless others write the key too.
    ///
    /// # Cancel safety
    /// If the future is dropped, the value may be written or not.
    pub async fn put(&self, key: &str, value: Bytes) -> Result<u64, StoreError> {
        self.write(key, value, None).await
    }

    /// Deletes a key; if `revision` is given, only with that revision.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the key has another revision. Otherwise retrying is safe.
    ///
    /// # Cancel safety
    /// If the future is dropped, the key may be deleted or not.
    pub async fn delete(&self, key: &str, revision: Option<u64>) -> Result<(), StoreError> {
        self.write(key, Bytes::new(), revision).await.map(drop)
    }

    async fn write(&self, key: &str, value: Bytes, last: Option<u64>) -> Result<u64, StoreError> {
        let expect = Expect { id: None, last };
        let stored = self.log.append(&self.subject(key), value, expect).await?;
        Ok(stored.sequence)
    }

    /// Removes a key that has this revision, and all trace of it. Unlike a
    /// [deletion](Self::delete), it leaves nothing in the bucket, and watchers do not see it.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if the key has another revision or none. After
    /// [`StoreError::Unavailable`] it may be removed or not: repeating it is safe, and a conflict
    /// then says nothing about who wrote.
    ///
    /// # Cancel safety
    /// If the future is dropped, the key may be removed or not.
    pub async fn remove(&self, key: &str, revision: u64) -> Result<(), StoreError> {
        let below = revision.saturating_add(1);
        match self.log.purge(&self.subject(key), below).await? {
            0 => Err(StoreError::Conflict),
            _ => Ok(()),
        }
    }

    /// Returns all keys that match a pattern, in the order of their last writes and without reading their
    /// values. Keys that were [deleted](Self::delete) are among them, those that were
    /// [removed](Self::remove) are not.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn keys(&self, pattern: &str) -> Result<Vec<String>, StoreError> {
        let heads = self.log.heads(&self.subject(pattern)).await?;
        let keys = heads.iter().map(|it| key_of(&self.prefix, &it.subject));
        Ok(keys.collect())
    }

    /// Returns the values of all keys that match a pattern.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn entries(&self, pattern: &str) -> Result<Vec<Entry>, StoreError> {
        let mut watch = self.watch(pattern).await?;
        let mut found = Vec::new();
        loop {
            let change = timeout(self.timeout, watch.next()).await;
            match change.map_err(StoreError::unavailable)?.transpose()? {
                Some(Change::Put(entry)) => found.push(entry),
                Some(Change::Deleted { .. }) => {}
                Some(Change::Current) => return Ok(found),
                None => return Err(StoreError::unavailable("the watch has ended")),
            }
        }
    }

    /// Watches all keys that match a pattern: what is there now, then [`Change::Current`], then
    /// what changes, in order and without a gap. It ends with an error where there might be one, as after a
    /// lost connection: watch again.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn watch(&self, pattern: &str) -> Result<Watch, StoreError> {
        let records = self.log.watch(&self.subject(pattern)).await?;
        let prefix = Arc::clone(&self.prefix);
        let changes = records.map(move |record| {
            let record = record?;
            Ok(record.map_or(Change::Current, |record| change(&prefix, record)))
        });
        Ok(changes.boxed())
    }

    fn subject(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }
}

crate::debug::debug_fields!([] Bucket, this => { prefix: this.prefix });

fn key_of(prefix: &str, subject: &str) -> String {
    let key = subject.get(prefix.len()..).unwrap_or_default();
    key.to_owned()
}

fn change(prefix: &str, record: Record) -> Change {
    let (key, revision) = (key_of(prefix, &record.subject), record.sequence);
    if record.payload.is_empty() {
        return Change::Deleted { key, revision };
    }
    Change::Put(Entry {
        key,
        value: record.payload,
        revision,
    })
}
