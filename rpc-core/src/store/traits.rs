//! [`Store`] and [`Log`]: what a cluster needs of the engine that keeps its state.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures_core::stream::BoxStream;
use tokio::sync::watch;

use crate::Str;

/// The pause before what has no answer is repeated.
const PAUSE: Duration = Duration::from_millis(100);
/// The fewest bytes of a log whose size depends on the engine's room.
const LEAST_ROOM: u64 = 64 * 1024;

/// An engine that several nodes share: logs that refuse a write which names the wrong predecessor, and
/// messages that are not stored.
///
/// `net::nats` implements it on NATS with JetStream, and [`MemoryStore`](super::MemoryStore)
/// in one process. The crate `switchboard-store-suite` holds whatever
/// implements it to these rules:
///
/// - **Numbers.** All records of a log are numbered together, from 1, in the order in which they are
///   stored; a number never comes again while the log exists, also after a [purge](Log::purge).
/// - **Judge.** Of several appends with the same [`Expect::last`] at most one is stored. Of several with the
///   same [`Expect::id`] within the log's [window](LogConfig::window) one is stored, and the others learn
///   its number.
/// - **Durable.** What an append has returned is read by everyone from then on, and stays until it is
///   purged, or removed by a bound of its [`LogConfig`].
/// - **One order.** A [feed](LogConfig::feed) brings the records of a subject, and the messages that are
///   [published](Self::publish) on the subject of that feed, to all subscribers in one order, or loses some
///   of them and counts a [gap](Self::gaps).
/// - **It heals.** A log that the engine has lost is made again, empty, at the latest at the first call that
///   follows the one which has found out. If the engine tries it first, its numbers begin behind the trial.
/// - **One clock.** The [times of records](Record::time), [when a log was made](LogState::created), ages and
///   windows are by the engine's clock, for all nodes.
/// - **Handles keep the connection.** Logs, watches and subscriptions go on after the store is dropped.
///
/// Subjects are tokens with dots between them, such as `snek.m.general`. A token has at least one character, and
/// no white space, control character, `*` or `>`; names from users become tokens with [`token`](super::token). In
/// patterns `*` stands for one token, and a last `>` for one or more. Other texts are refused with
/// [`StoreError::Config`]. A pattern that no subject of a log matches finds nothing there.
///
/// While there is no connection, calls that return an answer of the engine wait for it, up to the
/// [timeout](Self::timeout), and then fail with [`StoreError::Unavailable`]; [`ask`](Self::ask) waits for at most
/// the time that it is given. [`publish`](Self::publish) takes a message as long as there is room for it, to be
/// sent later, and waits for room otherwise. [`try_publish`](Self::try_publish) and [`answer`](Self::answer) never
/// wait: the message is dropped. [`subscribe`](Self::subscribe) may return before the subscription begins, which
/// is a [gap](Self::gaps).
///
/// All futures of a read are cancel-safe. If the future of a write is dropped, it may be done or not.
#[async_trait]
pub trait Store: fmt::Debug + Send + Sync + 'static {
    /// Opens the log with this name, which is a token, and makes it if it does not exist; the configuration of
    /// one that exists stays.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe. [`StoreError::Config`] if the log exists with a shorter age or with other
    /// [subjects](LogConfig::subjects), if another log has one of its subjects, or if no log can have the
    /// configuration.
    async fn log(&self, name: &str, config: LogConfig) -> Result<Arc<dyn Log>, StoreError>;

    /// Returns the names of the logs that there are, and their configurations.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    async fn logs(&self) -> Result<Vec<(String, LogConfig)>, StoreError>;

    /// Makes all logs again that were opened here and are lost: what a node does when it joins.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    async fn ensure(&self) -> Result<(), StoreError>;

    /// Sends a message to all who are [subscribed](Self::subscribe) to its subject now. It is not stored: a
    /// subject of a log is refused, if this node has opened the log. Do not publish on those of others; an engine
    /// may store it there.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], [`StoreError::Config`] for such a subject, or [`StoreError::Unavailable`] if
    /// there is no room in time.
    async fn publish(&self, subject: &str, payload: Bytes) -> Result<(), StoreError>;

    /// Sends a message as [`publish`](Self::publish) does, or drops it if it would have to wait. Returns
    /// whether it was sent.
    fn try_publish(&self, subject: &str, payload: Bytes) -> bool;

    /// Subscribes to what is published on all subjects that match a pattern, and to the feeds of logs there.
    /// It comes back by itself after a lost connection, with a [gap](Self::gaps). The stream ends with the
    /// store.
    ///
    /// What is published after it has returned arrives, unless there is a gap.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`]; retrying is safe.
    async fn subscribe(&self, pattern: &str) -> Result<Messages, StoreError>;

    /// Asks the subscribers of a subject, and waits for the first [answer](Self::answer) to this question.
    ///
    /// # Errors
    /// [`AskError`]; retrying asks again.
    async fn ask(&self, subject: &str, payload: Bytes, within: Duration)
    -> Result<Bytes, AskError>;

    /// Answers a [question](Message::reply_to). An answer to no caller is dropped, and so is one
    /// while there is no connection.
    fn answer(&self, reply_to: &str, payload: Bytes);

    /// Returns whether there is a connection to the engine now. Does not wait.
    fn is_connected(&self) -> bool;

    /// Returns whether, as far as this process knows, all who share the engine are on this machine. Default no.
    fn is_local(&self) -> bool {
        false
    }

    /// Returns a number that changes whenever subscriptions may have missed messages: after each new
    /// connection, and when one was read too slowly.
    fn gaps(&self) -> watch::Receiver<u64>;

    /// Returns the largest payload of a record or message, in bytes.
    fn max_payload(&self) -> usize;

    /// Returns how long a request may take until it fails with [`StoreError::Unavailable`].
    fn timeout(&self) -> Duration;
}

impl dyn Store + '_ {
    /// Opens a log as [`log`](Store::log) does. Without [`max_bytes`](LogConfig::max_bytes) it gets these, or the
    /// half of them, or the half of that, for which the engine has room now. Returns how many it got, if it
    /// did not exist.
    ///
    /// # Errors
    /// As those of [`log`](Store::log).
    ///
    /// # Cancel safety
    /// If the future is dropped, the log may exist or not.
    pub async fn log_with_room(
        &self,
        name: &str,
        config: LogConfig,
        max_bytes: u64,
    ) -> Result<(Arc<dyn Log>, u64), StoreError> {
        let mut room = config.max_bytes.unwrap_or(max_bytes);
        let least = config.max_bytes.unwrap_or(LEAST_ROOM);
        loop {
            let config = LogConfig {
                max_bytes: Some(room),
                ..config.clone()
            };
            match self.log(name, config).await {
                Err(StoreError::Full { .. }) if room > least => room /= 2,
                opened => return Ok((opened?, room)),
            }
        }
    }
}

/// The messages of a [subscription](Store::subscribe).
pub type Messages = BoxStream<'static, Message>;

/// Records under subjects in one numbering, which the engine keeps. See [`Store`] for the rules.
#[async_trait]
pub trait Log: fmt::Debug + Send + Sync + 'static {
    /// Appends a record, and returns when it is stored.
    ///
    /// # Errors
    /// [`StoreError`]; [`StoreError::Config`] for a subject that is not in the log, and an id with control
    /// characters. After [`Unavailable`](StoreError::Unavailable) the record may be stored or not: append it
    /// again with the same [`Expect::id`], or read the [last](Self::last) of its subject.
    async fn append(
        &self,
        subject: &str,
        payload: Bytes,
        expect: Expect<'_>,
    ) -> Result<Stored, StoreError>;

    /// Returns the record with this number; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe. [`StoreError::Unreadable`] if the record is damaged.
    async fn get(&self, sequence: u64) -> Result<Option<Record>, StoreError>;

    /// Returns the last record of a subject; `None` if there is none. It sees all that was stored before it
    /// was called.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe. [`StoreError::Unreadable`] if the record is damaged.
    async fn last(&self, subject: &str) -> Result<Option<Record>, StoreError>;

    /// Returns the first records after the number `after` whose subjects match a pattern, at most `max`, in
    /// order. Fewer than `max` means that there are no more; 0 reads nothing.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe. [`StoreError::Unreadable`] if one of the records is damaged: the first
    /// one. To go on behind it see [`read_around`](#method.read_around).
    async fn read(&self, pattern: &str, after: u64, max: usize) -> Result<Vec<Record>, StoreError>;

    /// Returns the last record of each subject that matches a pattern, in the order of their numbers; their
    /// payloads are empty. A damaged record has no id, and the time 0.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    async fn heads(&self, pattern: &str) -> Result<Vec<Record>, StoreError>;

    /// Watches the subjects that match a pattern: the last record of each, in the order of their numbers,
    /// then `None` once, then what is appended. The stream has no gaps: where there might be one, as after a
    /// lost connection or the loss of the log, it ends with an error. Watch again.
    ///
    /// One that is read slowly holds no one up and takes a bounded part of memory: it falls behind, or ends with
    /// an error.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    async fn watch(&self, pattern: &str) -> Result<Watched, StoreError>;

    /// Removes the records with numbers below `before` whose subjects match a pattern, and returns how many
    /// those were. After an error, and to others meanwhile, some of them may be gone.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    async fn purge(&self, pattern: &str, before: u64) -> Result<u64, StoreError>;

    /// Returns what the log holds.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    async fn state(&self) -> Result<LogState, StoreError>;
}

impl dyn Log + '_ {
    /// Appends a record once, after the record `last` of its subject: again with the same `id` until the
    /// outcome is known, or until `is_alive` says that this node may write no more. Returns its number.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if another write was first, or the node is not alive, or, without `last`, if the log
    /// refuses the record after an attempt without an answer: then it may be stored, also in a log that was lost
    /// since. Any other [`StoreError`]: it is not stored.
    ///
    /// # Cancel safety
    /// If the future is dropped, the record may be stored or not.
    pub async fn append_once(
        &self,
        subject: &str,
        payload: Bytes,
        last: Option<u64>,
        id: &str,
        is_alive: impl Fn() -> bool,
    ) -> Result<u64, StoreError> {
        let expect = Expect { id: Some(id), last };
        let (mut is_repeated, mut has_failed, mut is_unknown) = (false, false, false);
        loop {
            if !is_alive() {
                return Err(StoreError::Conflict);
            }
            match self.append(subject, payload.clone(), expect).await {
                Ok(stored) => return Ok(stored.sequence),
                Err(StoreError::Unavailable { message }) => {
                    tracing::debug!(message, "the store does not answer");
                    is_unknown = true;
                }
                // A lost log is there at the next call.
                Err(StoreError::Failed { .. }) if !has_failed => has_failed = true,
                Err(StoreError::Conflict) if is_repeated => match self.last(subject).await {
                    Ok(found) => {
                        let own = found.filter(|found| *found.id == *id);
                        return own.map(|own| own.sequence).ok_or(StoreError::Conflict);
                    }
                    Err(error) if error.is_retryable() => {}
                    Err(_) => return Err(StoreError::Conflict),
                },
                Err(_) if is_unknown && last.is_none() => return Err(StoreError::Conflict),
                Err(error) => return Err(error),
            }
            is_repeated = true;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reads as [`read`](Log::read) does, and leaves out the records that are damaged: it adds their numbers to
    /// `damaged`.
    ///
    /// # Errors
    /// As those of [`read`](Log::read), without [`StoreError::Unreadable`].
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn read_around(
        &self,
        pattern: &str,
        after: u64,
        max: usize,
        damaged: &mut Vec<u64>,
    ) -> Result<Vec<Record>, StoreError> {
        let (mut records, mut after, mut page) = (Vec::new(), after, max);
        while records.len() < max {
            match self.read(pattern, after, page).await {
                Err(StoreError::Unreadable { sequence }) if page == 1 => {
                    damaged.push(sequence);
                    (after, page) = (sequence, max - records.len());
                }
                // Those before it, one by one.
                Err(StoreError::Unreadable { .. }) => page = 1,
                Err(error) => return Err(error),
                Ok(found) => {
                    let is_end = found.len() < page;
                    after = found.last().map_or(after, |record| record.sequence);
                    records.extend(found);
                    if is_end {
                        break;
                    }
                }
            }
        }
        Ok(records)
    }
}

/// What [`Log::watch`] brings.
pub type Watched = BoxStream<'static, Result<Option<Record>, StoreError>>;

crate::config! {
    /// The configuration of a log that does not exist yet. [`new`](Self::new) names its subjects.
    #[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
    pub struct LogConfig {
        /// A pattern: what is appended under it is in the log. No two logs have a subject in common.
        pub subjects: String = String::new(),
        /// The pattern on which [subscribers](Store::subscribe) get records when they are stored. Its wildcards
        /// are those of [`subjects`](Self::subjects), in the same order, and stand for the same tokens. Default
        /// `None`: nowhere.
        pub feed: Option<String> = None,
        /// How many records of one subject are kept, the last ones; no bound or time is 0. Default `None`: all.
        pub max_per_subject: Option<u64> = None,
        /// How many records are kept, the last ones. Default `None`: all.
        pub max_records: Option<u64> = None,
        /// The [bytes](LogState::bytes) of all records, beyond which appends fail with [`StoreError::Full`].
        /// Default `None`: what the engine allows.
        pub max_bytes: Option<u64> = None,
        /// The age at which a record vanishes. Default `None`: never.
        pub max_age: Option<Duration> = None,
        /// How long the ids of records are remembered, at most [`max_age`](Self::max_age). Default 2 min.
        pub window: Duration = Duration::from_secs(120),
    }
}

impl LogConfig {
    /// Returns the configuration of a log for the subjects that match this pattern.
    #[must_use]
    pub fn new(subjects: &str) -> Self {
        Self {
            subjects: subjects.to_owned(),
            ..Self::default()
        }
    }
}

/// What must hold for a record to be stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expect<'a> {
    /// The id of the record; `""` is none. A second one with the same id within the log's
    /// [window](LogConfig::window) is not stored again, whatever its subject, and also if the first one was
    /// removed meanwhile. After a restart or a failure an engine may have forgotten the ids of removed records.
    pub id: Option<&'a str>,
    /// The number of the last record with this subject; 0 for none, as after a purge. With another one there,
    /// the append fails with [`StoreError::Conflict`].
    pub last: Option<u64>,
}

/// The answer to an append.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The number of the record; of the first one, if it is a duplicate.
    pub sequence: u64,
    /// Whether a record with the same id was there already.
    pub is_duplicate: bool,
}

/// A record of a [`Log`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its subject.
    pub subject: Str,
    /// Its number.
    pub sequence: u64,
    /// The id that it was appended with; empty for none.
    pub id: Str,
    /// What was appended.
    pub payload: Bytes,
    /// When it was stored by the engine's clock, in seconds since 1970.
    pub time: u64,
}

/// What a [`Log`] holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogState {
    /// When the log was made, in nanoseconds since 1970: another time, another log.
    pub created: u128,
    /// The number of the first record; one more than the last if there is none.
    pub first: u64,
    /// The number of the last record that was ever stored.
    pub last: u64,
    /// How many records there are.
    pub records: u64,
    /// The bytes that they take: those of their payloads, and what the engine counts beside. 0 without records.
    pub bytes: u64,
    /// How many subjects they have.
    pub subjects: u64,
}

/// What a [subscription](Store::subscribe) brings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its subject.
    pub subject: Str,
    /// What was published or appended.
    pub payload: Bytes,
    /// The id of a record; empty for none.
    pub id: Str,
    /// For a record that the feed of a log brings.
    pub position: Option<Position>,
    /// Where an [answer](Store::answer) is awaited.
    pub reply_to: Option<Str>,
}

/// Where a record is in its log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Its number.
    pub sequence: u64,
    /// The number of the record before it with the same subject that was there when it was stored; 0 for none, as
    /// after a purge.
    pub previous: u64,
}

/// Why the engine does not do something.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another write was first: what the write expects is not what is there. Read before another attempt.
    #[error("another write was first")]
    Conflict,
    /// No answer in time, or no connection. A write may be done or not.
    #[error("the store does not answer: {message}")]
    Unavailable {
        /// What is known of the reason.
        message: String,
    },
    /// The engine has no room. Retrying helps when there is room again.
    #[error("the store has no room: {message}")]
    Full {
        /// What the engine says.
        message: String,
    },
    /// The payload is longer than the engine allows. Retrying fails again.
    #[error("the record is larger than the store allows")]
    TooLarge,
    /// The engine forbids it. Retrying fails until its permissions are changed.
    #[error("the store denies it: {message}")]
    Denied {
        /// What the engine says.
        message: String,
    },
    /// The configuration cannot be used: an address, a key, a name. Retrying fails again.
    #[error("{message}")]
    Config {
        /// What is wrong, without secrets.
        message: String,
    },
    /// What the engine has of this record is damaged. Retrying fails again; other records can be read.
    #[error("record {sequence} is damaged")]
    Unreadable {
        /// The number of the record.
        sequence: u64,
    },
    /// The engine has answered with another error, such as a log that was deleted.
    #[error("the store failed: {message}")]
    Failed {
        /// What the engine says.
        message: String,
    },
}

impl StoreError {
    /// Returns whether the same request may succeed later. For writes see the variants.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::Full { .. } | Self::Failed { .. }
        )
    }

    /// Returns whether requests of this node fail until its permissions or its configuration change:
    /// it cannot heal by itself.
    #[must_use]
    pub const fn is_permanent(&self) -> bool {
        matches!(self, Self::Denied { .. } | Self::Config { .. })
    }

    pub(crate) fn config(reason: impl fmt::Display) -> Self {
        let message = reason.to_string();
        Self::Config { message }
    }

    pub(crate) fn failed(reason: impl fmt::Display) -> Self {
        let message = reason.to_string();
        Self::Failed { message }
    }

    /// Returns an [`Unavailable`](Self::Unavailable) with this reason.
    pub fn unavailable(reason: impl fmt::Display) -> Self {
        Self::Unavailable {
            message: reason.to_string(),
        }
    }
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AskError {
    /// No one is subscribed to the subject.
    #[error("no subscriber")]
    NoListener,
    /// No answer came in time; the question may have arrived.
    #[error("no answer in time")]
    NoAnswer,
    /// The question was not asked.
    #[error(transparent)]
    Store(#[from] StoreError),
}
