//! [`SessionLog`]: the state of sessions, each under a subject of one log.

mod list;
mod part;
mod session;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

use super::{Log, LogConfig, Record, Store, StoreError, try_token};
use crate::Str;
use crate::net::{entropy, time};
use crate::sync::Mutex;
use crate::text::hex;
use part::{Header, Part};
pub use session::Session;

/// The bytes of a record beside its part of an entry: its subject, id and first line.
const ENVELOPE: usize = 4096;
/// About the bytes of the first line, for bounds.
const BESIDE: usize = 64;
/// The longest part of an entry.
const MAX_PART: usize = 512 * 1024;
/// How many records are read at once.
const PAGE: usize = 64;
/// How many sessions are looked at at once.
const AT_ONCE: usize = 64;
/// What records may take beside twice a whole entry, before there is another one.
const SPARE: u64 = 4 * 1024;
/// What the token of an id's hash begins with: no token of a text has it.
const HASH: &str = "==";

/// What the entries of a session add up to. Its default is a session without entries.
pub trait SessionState: Clone + Default + Send {
    /// Takes the next entry; with `has_gap`, records between it and what is known are lost. Returns `false`,
    /// and changes nothing, if it cannot be read or says nothing without them: then the state stays as it is
    /// until the next whole entry.
    fn apply(&mut self, entry: &SessionEntry, has_gap: bool) -> bool;
}

/// What is known of a session without reading its entries: the last one says it all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionHead {
    /// Whose bytes these are; empty for nobody's.
    pub owner: Str,
    /// From when on the session may be removed, in seconds since 1970; `None` for never.
    pub expires: Option<u64>,
    /// The application's part, which is written with each part of an entry: keep it short.
    pub data: Bytes,
}

/// What is appended to a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionEntry {
    /// The head from now on.
    pub head: SessionHead,
    /// What is new; all, if it is whole. Empty if only the head changes: such an entry has no bounds.
    pub body: Bytes,
    /// Whether nothing before it is needed.
    pub is_whole: bool,
}

/// A session in a [list](SessionLog::heads).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its id; `None` if it is long, and its last record cannot be read.
    pub id: Option<Str>,
    /// Its subject.
    pub subject: Str,
    /// The number of its last record.
    pub revision: u64,
    /// When that was stored by the engine's clock, in seconds since 1970.
    pub time: u64,
    /// The bytes of its records that are needed.
    pub bytes: u64,
    /// Its head; `None` if its last record cannot be read.
    pub head: Option<SessionHead>,
}

impl SessionInfo {
    /// Returns whether there is only the mark of a removed session.
    const fn is_removed(&self) -> bool {
        self.bytes == 0
    }
}

crate::config! {
    /// The configuration of a [`SessionLog`].
    #[derive(Clone, Debug)]
    pub struct SessionLogConfig {
        /// The name of the log, and what its subjects begin with: one token.
        pub name: String = name.to_owned(),
        /// The bytes that the log may take, beyond which entries are refused with [`StoreError::Full`].
        /// Applies to a log that does not exist yet. Default `None`: 3 GiB, or the half of it, or the half
        /// of that, for which the engine has room now.
        pub max_bytes: Option<u64> = None,
        /// The bytes that the sessions of one owner may take, beyond which its entries are refused with
        /// [`StoreError::Full`]. Default `None`: a quarter of those of the log.
        pub max_owner_bytes: Option<u64> = None,
        /// The longest entry in bytes: a longer one is refused with [`StoreError::TooLarge`]. Default 64 MiB.
        pub max_entry_bytes: usize = 64 * 1024 * 1024,
        /// When a session that is not used is forgotten by the engine, at the latest after twice as long.
        /// Applies to a log that does not exist yet. Default `None`: never.
        pub max_age: Option<Duration> = None,
        /// The wall clock, for the ages of sessions. Default: the system's.
        pub clock: fn() -> SystemTime = time::system_now,
    }
    /// Creates the configuration of a log with this name.
    pub fn new(name: &str);
}

/// The most bytes of a log by default.
const ROOM: u64 = 3 << 30;

/// The state of sessions, each under a subject of one [`Log`], whatever the engine is.
///
/// - What is new is appended as an [`SessionEntry`]; when it [is due](Self::is_due), the next one is whole, and what
///   it replaces is purged. So an entry costs the same in long and short sessions, and reading takes no more
///   than twice of what there is.
/// - An entry that is longer than the engine takes is stored in parts, and counts when its last one is there.
/// - Each write names the last record of its session that the writer knows: [`StoreError::Conflict`] if
///   there is another one. Read on, and decide again.
/// - A record that cannot be read costs what it holds: the state goes on behind it if the
///   [state](SessionState::apply) can, otherwise with the next whole entry.
///
/// ```
/// use rpc_core::store::{MemoryStore, Session, SessionEntry, SessionLog, SessionLogConfig, SessionState};
///
/// #[derive(Clone, Debug, Default, PartialEq)]
/// struct Words(String);
///
/// impl SessionState for Words {
///     fn apply(&mut self, entry: &SessionEntry, has_gap: bool) -> bool {
///         self.0.push_str(&String::from_utf8_lossy(&entry.body));
///         !has_gap
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let log = SessionLog::open(&MemoryStore::new(), SessionLogConfig::new("words")).await?;
/// let mut session = Session::default();
/// for word in ["one ", "two"] {
///     let mut next: Words = session.state().cloned().unwrap_or_default();
///     next.0.push_str(word);
///     let is_whole = log.is_due(&session, next.0.len());
///     let body = if is_whole { next.0.clone() } else { word.to_owned() };
///     let entry = SessionEntry { body: body.into(), is_whole, ..SessionEntry::default() };
///     log.append("s", &mut session, entry, next, || true).await?;
/// }
/// let mut again = Session::default();
/// log.read("s", &mut again).await?;
/// assert_eq!(again.state(), Some(&Words("one two".to_owned())));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct SessionLog {
    log: Arc<dyn Log>,
    config: SessionLogConfig,
    max_part: usize,
    max_owner_bytes: u64,
    sizes: Mutex<Sizes>,
}

/// Records by their numbers, and whether there may be more.
type Page = (Vec<(u64, Option<Record>)>, bool);

/// The bytes of sessions and of owners, as far as this node knows.
#[derive(Debug, Default)]
struct Sizes {
    sessions: HashMap<Str, (Str, u64)>,
    owners: HashMap<Str, u64>,
}

impl Sizes {
    fn set(&mut self, subject: &Str, owner: &Str, bytes: u64) {
        let new = (bytes > 0).then(|| (owner.clone(), bytes));
        let former = match new.clone() {
            Some(new) => self.sessions.insert(subject.clone(), new),
            None => self.sessions.remove(subject),
        };
        if let Some((owner, bytes)) = new {
            *self.owners.entry(owner).or_default() += bytes;
        }
        if let Some((owner, bytes)) = former
            && let Some(sum) = self.owners.get_mut(&owner)
        {
            *sum = sum.saturating_sub(bytes);
            if *sum == 0 {
                self.owners.remove(&owner);
            }
        }
    }

    /// The bytes of the other sessions of an owner.
    fn others(&self, subject: &str, owner: &str) -> u64 {
        let all = self.owners.get(owner).copied().unwrap_or(0);
        let own = self.sessions.get(subject).filter(|(it, _)| it == owner);
        all.saturating_sub(own.map_or(0, |(_, bytes)| *bytes))
    }
}

impl SessionLog {
    /// Opens the log, and makes it if it does not exist.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn open(store: &dyn Store, config: SessionLogConfig) -> Result<Self, StoreError> {
        let log = LogConfig {
            max_bytes: config.max_bytes,
            // A session in use is written again in time.
            max_age: config.max_age.map(|age| 2 * age),
            ..LogConfig::new(&format!("{}.*", config.name))
        };
        let (log, room) = store.log_with_room(&config.name, log, ROOM).await?;
        Ok(Self {
            log,
            max_part: store.max_payload().saturating_sub(ENVELOPE).min(MAX_PART),
            max_owner_bytes: config.max_owner_bytes.unwrap_or(room / 4),
            config,
            sizes: Mutex::default(),
        })
    }

    /// Returns the log.
    #[must_use]
    pub fn log(&self) -> &Arc<dyn Log> {
        &self.log
    }

    /// Returns the subject of a session: its id as a token, or a hash of a long one.
    #[must_use]
    pub fn subject(&self, id: &str) -> Str {
        let token = try_token(id)
            .unwrap_or_else(|_| format!("{HASH}{}", hex(&Sha256::digest(id.as_bytes()))));
        format!("{}.{token}", self.config.name).into()
    }

    /// Returns the seconds since 1970.
    fn now(&self) -> u64 {
        let since = (self.config.clock)().duration_since(UNIX_EPOCH);
        since.unwrap_or_default().as_secs()
    }

    /// Returns whether the next entry, which would have about `len` bytes if it were whole, has to be: there is
    /// no state that it could add to, or the records that are needed take more than twice as much, or the last
    /// whole entry is old.
    #[must_use]
    pub fn is_due<S>(&self, session: &Session<S>, len: usize) -> bool {
        let age = Duration::from_secs(self.now().saturating_sub(session.since));
        session.state().is_none()
            || session.is_broken()
            || session.bytes() > 2 * len as u64 + SPARE
            || self.config.max_age.is_some_and(|max| age > max)
    }

    /// Reads on from what is known of a session; from the beginning, if that is not there any more.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe. What cannot be read is no error: see [`Session::is_broken`].
    ///
    /// # Cancel safety
    /// Cancel-safe: what was read is kept.
    pub async fn read<S: SessionState>(
        &self,
        id: &str,
        session: &mut Session<S>,
    ) -> Result<(), StoreError> {
        let subject = self.subject(id);
        loop {
            let after = session.revision.saturating_sub(1);
            let (mut page, has_more) = self.page(&subject, after).await?;
            if session.revision > 0 {
                let known = (!page.is_empty()).then(|| page.remove(0));
                let is_same = known.is_some_and(|(revision, record)| {
                    let id = record.map(|it| it.id).unwrap_or_default();
                    (revision, id) == (session.revision, session.record_id.clone())
                });
                if !is_same {
                    *session = Session::default();
                    continue;
                }
            }
            for (revision, record) in page {
                match record {
                    Some(record) => session.take(&record),
                    None => session.skip(revision),
                }
            }
            if !has_more {
                let mut sizes = self.sizes.lock();
                sizes.set(&subject, &session.head().owner, session.bytes());
                return Ok(());
            }
        }
    }

    /// Reads the next records, with their numbers in order; `None` for one that is damaged. Returns whether
    /// there may be more.
    async fn page(&self, pattern: &str, after: u64) -> Result<Page, StoreError> {
        let mut damaged = Vec::new();
        let found = self.log.read_around(pattern, after, PAGE, &mut damaged);
        let found = found.await?;
        let has_more = found.len() == PAGE;
        let records = found.into_iter().map(|it| (it.sequence, Some(it)));
        let mut page: Vec<_> = records.collect();
        page.extend(damaged.into_iter().map(|number| (number, None)));
        page.sort_by_key(|(number, _)| *number);
        Ok((page, has_more))
    }

    /// Appends an entry to a session, which is then in the state `next`. It is repeated until the outcome is
    /// known, as long as the node `is_alive`. What a whole one replaces is purged in the background.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if another write was first, or the node is not alive: read on before another
    /// attempt. [`StoreError::TooLarge`] and [`StoreError::Full`] beyond the bounds, and any other one of the
    /// engine: it is not stored, and the session is as it was.
    ///
    /// # Cancel safety
    /// If the future is dropped, the entry may be stored or not, and the next one may be a conflict.
    pub async fn append<S>(
        &self,
        id: &str,
        session: &mut Session<S>,
        entry: SessionEntry,
        next: S,
        is_alive: impl Fn() -> bool,
    ) -> Result<(), StoreError> {
        let subject = self.subject(id);
        let is_whole = entry.is_whole || session.state().is_none();
        let before = if is_whole { 0 } else { session.bytes() };
        self.admit(&subject, &entry, before)?;
        let room = self.max_part.saturating_sub(entry.head.data.len());
        let room = room.max(1024);
        let of = entry.body.len().div_ceil(room).max(1);
        let (mut first, mut bytes) = (None, before);
        for part in 0..of {
            let is_last = part + 1 == of;
            // Until the last part is there, all is as it was.
            let head = if is_last { &entry.head } else { session.head() };
            let to = entry.body.len().min((part + 1) * room);
            let body = entry.body.get(part * room..to).unwrap_or_default();
            bytes += (BESIDE + head.data.len() + body.len()) as u64;
            let header = Header {
                place: session.place + 1,
                part,
                of,
                whole: is_whole,
                fence: session.fence(),
                bytes: if is_last { bytes } else { session.bytes() },
                id: self.id_for(&subject, id),
                ..Header::default()
            };
            let record = Part::encode(header, head, body);
            let stored = self.write(&subject, session, record, &is_alive).await?;
            first.get_or_insert(stored);
        }
        session.wrote_entry(entry.head, next);
        if is_whole {
            session.is_whole(bytes, self.now());
            self.purge_before(&subject, first.unwrap_or(0));
        }
        let mut sizes = self.sizes.lock();
        sizes.set(&subject, &session.head().owner, session.bytes());
        Ok(())
    }

    /// Writes a record behind the last one of a session. Returns its number.
    async fn write<S>(
        &self,
        subject: &str,
        session: &mut Session<S>,
        record: Bytes,
        is_alive: impl Fn() -> bool,
    ) -> Result<u64, StoreError> {
        let record_id = format!("{:016x}{:016x}", entropy(), entropy());
        let (last, len) = (Some(session.revision), record.len() as u64);
        let log = &self.log;
        let appending = log.append_once(subject, record, last, &record_id, is_alive);
        let stored = appending.await?;
        session.wrote(stored, record_id.into());
        session.tail += len;
        Ok(stored)
    }

    /// Refuses an entry beyond the bounds. `before`: the bytes of its session that are needed beside it.
    fn admit(&self, subject: &str, entry: &SessionEntry, before: u64) -> Result<(), StoreError> {
        let len = entry.body.len();
        if len > self.config.max_entry_bytes {
            return Err(StoreError::TooLarge);
        }
        let (owner, max) = (&entry.head.owner, self.max_owner_bytes);
        if len == 0 || owner.is_empty() {
            return Ok(());
        }
        let bytes = self.sizes.lock().others(subject, owner) + before + len as u64;
        match bytes > max {
            true => Err(StoreError::Full {
                message: format!("the sessions of this owner take at most {max} bytes"),
            }),
            false => Ok(()),
        }
    }

    /// Returns the id, if it is not in the subject.
    fn id_for(&self, subject: &str, id: &str) -> Str {
        let is_hashed = self.token_of(subject).starts_with(HASH);
        if is_hashed { id.into() } else { Str::default() }
    }

    fn token_of<'a>(&self, subject: &'a str) -> &'a str {
        subject
            .get(self.config.name.len() + 1..)
            .unwrap_or_default()
    }

    /// Purges what a whole entry replaces; if that fails, the next one does it.
    fn purge_before(&self, subject: &Str, before: u64) {
        let (log, subject) = (Arc::clone(&self.log), subject.clone());
        tokio::spawn(async move {
            if let Err(error) = log.purge(&subject, before).await {
                tracing::debug!(%error, "replaced records were not purged");
            }
        });
    }
}

/// A session whose entries say nothing.
impl SessionState for () {
    fn apply(&mut self, _: &SessionEntry, _: bool) -> bool {
        true
    }
}
