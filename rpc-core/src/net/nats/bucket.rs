//! [`Bucket`]: values by key, with revisions.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::consumer::push::{Ordered, OrderedConfig};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::{self, DiscardPolicy, Stream as JetStream};
use bytes::Bytes;
use futures_core::Stream;
use futures_util::StreamExt;

use super::{Expect, Nats, NatsError};

/// How a key is marked as deleted.
const OPERATION: &str = "KV-Operation";
/// The longest time for which ids of messages are remembered; a bucket needs none.
const WINDOW: Duration = Duration::from_secs(120);

crate::config! {
    /// The configuration of a bucket that does not exist yet.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct BucketConfig {
        /// The time after its last write at which a key vanishes. Default `None`: never.
        pub(crate) max_age: Option<Duration> = None => with_max_age(Duration),
        /// The bytes of the whole bucket, beyond which writes fail. Default `None`.
        pub(crate) max_bytes: Option<u64> = None => with_max_bytes(u64),
    }
}

/// A value with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Bytes,
    /// The number of its last write: later ones are larger, in the whole bucket.
    pub revision: u64,
}

/// What happens to a watched key.
///
/// Exhaustive on purpose: whoever watches has to know all that can happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has this value.
    Put(Entry),
    /// It was deleted. A key that vanishes by its [age](BucketConfig::with_max_age) is not told.
    Deleted {
        /// The key.
        key: String,
        /// The number of the deletion.
        revision: u64,
    },
    /// All keys that were there at the start have been told.
    Current,
}

/// A key-value bucket. Cheap to clone.
///
/// Reads ask the stream's leader, so a value that was written before is seen. Keys are made of
/// [tokens](crate::cluster::token) with dots between them; patterns are keys in which `*` stands for
/// one token, or a last `>` for all that follow.
#[derive(Clone)]
pub struct Bucket {
    nats: Nats,
    stream: Arc<JetStream>,
    prefix: String,
}

impl Bucket {
    pub(super) async fn open(
        nats: &Nats,
        name: &str,
        config: BucketConfig,
        replicas: usize,
    ) -> Result<Self, NatsError> {
        // As `nats kv add` does it, without the account's data, which old servers write otherwise.
        let max_age = config.max_age.unwrap_or_default();
        let window = Some(max_age).filter(|age| !age.is_zero());
        let config = stream::Config {
            name: format!("KV_{name}"),
            subjects: vec![format!("$KV.{name}.>")],
            max_messages_per_subject: 1,
            max_age,
            max_bytes: config
                .max_bytes
                .map_or(-1, |max| i64::try_from(max).unwrap_or(i64::MAX)),
            discard: DiscardPolicy::New,
            duplicate_window: window.unwrap_or(WINDOW).min(WINDOW),
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            num_replicas: replicas,
            ..stream::Config::default()
        };
        let stream = nats.open(config).await?;
        // A node that counts on more time than the bucket gives would be taken for dead.
        let kept = stream.cached_info().config.max_age;
        if !kept.is_zero() && kept < max_age {
            return Err(NatsError::config(format_args!(
                "the bucket {name} was made to keep values for {kept:?} only: ask for no more, or take another prefix"
            )));
        }
        Ok(Self {
            nats: nats.clone(),
            stream: Arc::new(stream),
            prefix: format!("$KV.{name}."),
        })
    }

    /// The stream's.
    fn name(&self) -> &str {
        &self.stream.cached_info().config.name
    }

    /// Returns the value of a key; `None` if there is none.
    ///
    /// # Errors
    /// [`NatsError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn get(&self, key: &str) -> Result<Option<Entry>, NatsError> {
        let (entry, _) = self.read(key).await?;
        Ok(entry)
    }

    /// Returns the value of a key, and the sequence of its last write or deletion.
    async fn read(&self, key: &str) -> Result<(Option<Entry>, u64), NatsError> {
        let subject = format!("{}{key}", self.prefix);
        let reading = self.stream.get_last_raw_message_by_subject(&subject);
        let Some(message) = self.nats.message(&self.stream, reading).await? else {
            return Ok((None, 0));
        };
        let entry = message.headers.get(OPERATION).is_none().then(|| Entry {
            key: key.to_owned(),
            value: message.payload,
            revision: message.sequence,
        });
        Ok((entry, message.sequence))
    }

    /// Writes the value of a key that does not exist. Returns the revision.
    ///
    /// # Errors
    /// [`NatsError::Conflict`] if it exists. After [`NatsError::Unavailable`] it may be written or
    /// not: [get](Self::get) it to know.
    ///
    /// # Cancel safety
    /// If the future is dropped, the value may be written or not.
    pub async fn create(&self, key: &str, value: Bytes) -> Result<u64, NatsError> {
        match self.update(key, value.clone(), 0).await {
            Err(NatsError::Conflict) => {}
            outcome => return outcome,
        }
        // A deleted key has a last message too.
        match self.read(key).await? {
            (None, last) => self.update(key, value, last).await,
            (Some(_), _) => Err(NatsError::Conflict),
        }
    }

    /// Replaces the value that has this revision. Returns the new one.
    ///
    /// # Errors
    /// [`NatsError::Conflict`] if the key has another revision or none. After
    /// [`NatsError::Unavailable`] it may be written or not: repeating it is safe, and a conflict
    /// then says nothing about who wrote.
    ///
    /// # Cancel safety
    /// If the future is dropped, the value may be written or not.
    pub async fn update(&self, key: &str, value: Bytes, revision: u64) -> Result<u64, NatsError> {
        let expect = Expect {
            id: None,
            last_subject_sequence: Some(revision),
        };
        let subject = format!("{}{key}", self.prefix);
        Ok(self.nats.publish(subject, value, expect).await?.sequence)
    }

    /// Writes a value, whatever was there. Returns the revision.
    ///
    /// # Errors
    /// [`NatsError`]; retrying is safe unless others write the key too.
    ///
    /// # Cancel safety
    /// If the future is dropped, the value may be written or not.
    pub async fn put(&self, key: &str, value: Bytes) -> Result<u64, NatsError> {
        let subject = format!("{}{key}", self.prefix);
        let stored = self.nats.publish(subject, value, Expect::default()).await?;
        Ok(stored.sequence)
    }

    /// Deletes a key; if `revision` is given, only with that revision.
    ///
    /// # Errors
    /// [`NatsError::Conflict`] if the key has another revision. Otherwise retrying is safe.
    ///
    /// # Cancel safety
    /// If the future is dropped, the key may be deleted or not.
    pub async fn delete(&self, key: &str, revision: Option<u64>) -> Result<(), NatsError> {
        let mut message = PublishMessage::build().header(OPERATION, "DEL");
        if let Some(revision) = revision {
            message = message.expected_last_subject_sequence(revision);
        }
        let subject = format!("{}{key}", self.prefix);
        self.nats.send(subject, message).await.map(drop)
    }

    /// Removes a key that has this revision, and all trace of it. Unlike a
    /// [deletion](Self::delete), it leaves nothing in the bucket, and is not told to those who watch.
    ///
    /// # Errors
    /// [`NatsError::Conflict`] if the key has another revision or none. After
    /// [`NatsError::Unavailable`] it may be removed or not: repeating it is safe, and a conflict
    /// then says nothing about who wrote.
    ///
    /// # Cancel safety
    /// If the future is dropped, the key may be removed or not.
    pub async fn remove(&self, key: &str, revision: u64) -> Result<(), NatsError> {
        let subject = format!("{}{key}", self.prefix);
        let purge = self.stream.purge().sequence(revision.saturating_add(1));
        let purging = purge.filter(subject).into_future();
        match self.nats.asked(self.name(), purging).await?.purged {
            0 => Err(NatsError::Conflict),
            _ => Ok(()),
        }
    }

    /// Returns all keys that match a pattern, in no particular order and without reading their
    /// values. Keys that were [deleted](Self::delete) are among them, those that were
    /// [removed](Self::remove) are not.
    ///
    /// # Errors
    /// [`NatsError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn keys(&self, pattern: &str) -> Result<Vec<String>, NatsError> {
        let filter = format!("{}{pattern}", self.prefix);
        let asking = self.stream.info_with_subjects(filter);
        let mut subjects = self.nats.asked(self.name(), asking).await?;
        let mut keys = Vec::new();
        while let Some(subject) = subjects.next().await {
            let (subject, _) = subject.map_err(|error| NatsError::of(&error))?;
            keys.extend(subject.strip_prefix(&self.prefix).map(str::to_owned));
        }
        Ok(keys)
    }

    /// Returns the values of all keys that match a pattern.
    ///
    /// # Errors
    /// [`NatsError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn entries(&self, pattern: &str) -> Result<Vec<Entry>, NatsError> {
        let mut watch = self.watch(pattern).await?;
        let mut found = Vec::new();
        let reading = async {
            while let Some(change) = watch.next().await {
                match change? {
                    Change::Put(entry) => found.push(entry),
                    Change::Deleted { .. } => {}
                    Change::Current => break,
                }
            }
            Ok::<_, NatsError>(())
        };
        tokio::time::timeout(self.nats.timeout(), reading)
            .await
            .map_err(NatsError::unavailable)??;
        Ok(found)
    }

    /// Watches all keys that match a pattern: what is there now, then [`Change::Current`], then
    /// what changes, in order. A lost connection is repaired without a gap.
    ///
    /// # Errors
    /// [`NatsError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn watch(&self, pattern: &str) -> Result<Watch, NatsError> {
        let config = OrderedConfig {
            deliver_subject: self.nats.client().new_inbox(),
            filter_subject: format!("{}{pattern}", self.prefix),
            deliver_policy: DeliverPolicy::LastPerSubject,
            ..OrderedConfig::default()
        };
        let creating = self.stream.create_consumer(config);
        let consumer = self.nats.asked(self.name(), creating).await?;
        let pending = consumer.cached_info().num_pending;
        let messages = consumer.messages().await;
        Ok(Watch {
            messages: messages.map_err(|error| NatsError::of(&error))?,
            skipped: self.prefix.len(),
            state: if pending == 0 {
                WatchState::Due
            } else {
                WatchState::Before
            },
        })
    }
}

impl fmt::Debug for Bucket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Bucket").field(&self.prefix).finish()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WatchState {
    /// Values that were there at the start are still to come.
    Before,
    /// The next item is [`Change::Current`].
    Due,
    After,
}

/// The changes of the keys that match a pattern: [`Bucket::watch`].
pub struct Watch {
    messages: Ordered,
    skipped: usize,
    state: WatchState,
}

impl Stream for Watch {
    type Item = Result<Change, NatsError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.state == WatchState::Due {
            self.state = WatchState::After;
            return Poll::Ready(Some(Ok(Change::Current)));
        }
        let Some(message) = ready!(self.messages.poll_next_unpin(cx)) else {
            return Poll::Ready(None);
        };
        let message = match message {
            Ok(message) => message,
            Err(error) => return Poll::Ready(Some(Err(NatsError::of(&error)))),
        };
        let info = match message.info() {
            Ok(info) => info,
            Err(error) => return Poll::Ready(Some(Err(NatsError::unavailable(error)))),
        };
        let (revision, pending) = (info.stream_sequence, info.pending);
        if self.state == WatchState::Before && pending == 0 {
            self.state = WatchState::Due;
        }
        let key = message.subject.get(self.skipped..).unwrap_or_default();
        let key = key.to_owned();
        let headers = message.message.headers.as_ref();
        let is_deleted = headers.is_some_and(|it| it.get(OPERATION).is_some());
        Poll::Ready(Some(Ok(if is_deleted {
            Change::Deleted { key, revision }
        } else {
            Change::Put(Entry {
                key,
                value: message.message.payload,
                revision,
            })
        })))
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}
