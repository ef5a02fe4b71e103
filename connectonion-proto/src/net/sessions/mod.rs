//! [`Sessions`]: the sessions of a host in a log, alone or as one of several.

mod state;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt as _, stream};
use rpc_core::Str;
use rpc_core::cluster::{ClaimError, Claimed, Ownership};
use rpc_core::store::{
    Session, SessionEntry, SessionHead, SessionInfo, SessionLog, SessionLogConfig, Store,
    StoreError,
};
use rpc_core::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::cluster::node::{Member, Node};
use crate::hub::{Job, Owner, Request};
use crate::replay::Entry;
use crate::storage::{Record, RecordStatus, StorageError, entry, interrupted, owner_of};
use state::encode_events;
pub(crate) use state::{State, found, head_of, is_running};

/// The log of the sessions, and what its subjects begin with.
const SESSIONS: &str = "onion_log";
/// When a session that is not used is forgotten, whatever its records say.
pub(crate) const MAX_AGE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// How often a new owner reads again because the old one still writes.
const MAX_TAKEOVERS: u32 = 20;
/// How long to wait before what has no answer is asked again.
const PAUSE: Duration = Duration::from_millis(100);
/// How long a host that is alone waits for its store.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many sessions are recovered at once.
const AT_ONCE: usize = 16;

/// Returns the configuration of the log of sessions.
pub(crate) fn log_config() -> SessionLogConfig {
    SessionLogConfig {
        max_age: Some(MAX_AGE),
        ..SessionLogConfig::new(SESSIONS)
    }
}

/// The sessions of a host.
///
/// - The records of a session are entries of a [`SessionLog`]: what is new, and from time to time all. The
///   events of a run are between them.
/// - A session has one owner. Every write names the last one that the owner knows, so the store refuses the
///   writes of all others; [`StorageError::Fenced`] is the end of the session at this host. An owner whose
///   host is gone is replaced: its run becomes [interrupted](RecordStatus::Interrupted), by a record after
///   which nothing of the old owner is accepted. A host that is alone owns all sessions, and replaces its
///   former self.
/// - An appended record is in the log when the call returns. Without an answer it is sent again under the
///   same id until there is one, or until this host has lost its lease: then it is fenced, and its clients
///   find out at the next host. So no record is both refused and stored.
#[derive(Debug)]
pub struct Sessions {
    pub(crate) log: SessionLog,
    /// This host among others; `None` if it is alone.
    member: Option<Member>,
    owned: Mutex<HashMap<String, Owned>>,
    max_record_bytes: usize,
}

/// A session that this host owns.
#[derive(Debug)]
struct Owned {
    session: Session<State>,
    ownership: Option<Ownership>,
}

/// This host while it does one thing.
#[derive(Clone)]
enum Host {
    Alone { until: Instant },
    Among(Arc<Node>),
}

impl Host {
    /// Whether it may write.
    fn is_alive(&self) -> bool {
        match self {
            Self::Alone { until } => Instant::now() < *until,
            Self::Among(node) => node.lease.is_valid(),
        }
    }

    /// Whether it may read again after this error.
    fn waits_for(&self, error: &StoreError) -> bool {
        let passes = match self {
            Self::Alone { .. } => matches!(error, StoreError::Unavailable { .. }),
            // A log that is lost is made again.
            Self::Among(_) => error.is_retryable(),
        };
        passes && self.is_alive()
    }
}

impl Sessions {
    /// Opens the log of a host that is alone, or one of several.
    pub(in crate::net) async fn open(
        store: &dyn Store,
        config: SessionLogConfig,
        member: Option<Member>,
    ) -> Result<Self, StoreError> {
        let max_record_bytes = config.max_entry_bytes;
        Ok(Self {
            log: SessionLog::open(store, config).await?,
            member,
            owned: Mutex::default(),
            max_record_bytes,
        })
    }

    /// Opens the log of a host that is alone, with this clock.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    pub async fn alone(store: &dyn Store, clock: fn() -> SystemTime) -> Result<Self, StoreError> {
        let config = SessionLogConfig {
            clock,
            ..log_config()
        };
        Self::open(store, config, None).await
    }

    /// Forgets all ownerships, because the node they belong to is gone.
    pub(crate) fn forget_all(&self) {
        self.owned.lock().clear();
    }

    fn owned(&self, session_id: &str) -> Option<Session<State>> {
        let owned = self.owned.lock();
        let it = owned.get(session_id)?;
        // What belongs to an earlier life of this host is claimed again.
        let is_valid = it.ownership.as_ref().is_none_or(Ownership::is_valid);
        is_valid.then(|| it.session.clone())
    }

    /// Does what a job asks for. `now` is in seconds since 1970.
    ///
    /// # Errors
    /// [`StorageError`]. The hub handles it: do not retry.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may be done or not.
    pub async fn carry_out(&self, job: &Job, now: f64) -> Result<Option<Record>, StorageError> {
        let id = job.session_id().as_str();
        match &job.request {
            Request::Load(_) => return self.load(id, now).await,
            Request::Recall(_) => return self.load(id, 0.0).await,
            Request::Unload => {
                if let Some(owned) = self.owned.lock().get_mut(id) {
                    owned.session.take_state();
                }
            }
            Request::Append(record, _) => self.append(record).await?,
            Request::Events(events, _) => self.append_events(id, events).await?,
            Request::Delete(owner, _) => return self.delete(id, *owner, now).await,
            Request::Release => self.release(id).await,
        }
        Ok(None)
    }

    fn host(&self) -> Result<Host, StorageError> {
        let Some(member) = &self.member else {
            let until = Instant::now() + PATIENCE;
            return Ok(Host::Alone { until });
        };
        // Otherwise another host may own the session.
        let node = member.current().map(Host::Among);
        node.ok_or(StorageError::Fenced)
    }

    /// Returns the last record of a session that has not expired, and becomes its owner.
    ///
    /// # Errors
    /// [`StorageError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// If the future is dropped, this host may be the owner or not.
    pub async fn load(&self, session_id: &str, now: f64) -> Result<Option<Record>, StorageError> {
        let host = self.host()?;
        let record = match self.owned(session_id) {
            Some(known) => {
                // With the events of its run, which are not kept.
                let mut session = Session::default();
                self.read(&host, session_id, &mut session).await?;
                if session.revision() != known.revision() {
                    self.owned.lock().remove(session_id);
                    return Err(StorageError::Fenced);
                }
                let record = found(&session);
                if let Some(owned) = self.owned.lock().get_mut(session_id)
                    && owned.session.state().is_none()
                {
                    let state = session.take_state();
                    let state = state.map(|state| State::of(state.record));
                    owned.session.set_state(state);
                }
                record
            }
            None => self.take(&host, session_id, now).await?,
        };
        Ok(record.filter(|record| !record.is_expired(now)))
    }

    /// Becomes the owner of a session, and reads what there is.
    async fn take(
        &self,
        host: &Host,
        session_id: &str,
        now: f64,
    ) -> Result<Option<Record>, StorageError> {
        let ownership = match host {
            Host::Alone { .. } => None,
            Host::Among(node) => match node.claims.claim(session_id).await {
                Ok(Claimed::Owned(ownership)) => Some(ownership),
                Ok(Claimed::Held { .. }) => return Err(StorageError::Fenced),
                Err(error) => return Err(not_claimed(&error)),
            },
        };
        let taken_from = ownership.as_ref().and_then(Ownership::taken_from);
        let (mut is_taken, mut session) = (taken_from.is_some(), Session::default());
        let mut fence = ownership.as_ref().map_or(0, Ownership::fence);
        for _ in 0..MAX_TAKEOVERS {
            self.read(host, session_id, &mut session).await?;
            if session.fence() > fence {
                if let Host::Among(node) = host
                    && !node.owns(session_id).await
                {
                    return Err(StorageError::Fenced);
                }
                // The store has lost who owned what, and counts owners from the beginning.
                fence = session.fence().saturating_add(1);
                is_taken = true;
            }
            session.set_fence(fence);
            let mut record = found(&session);
            if is_taken || ownership.is_none() && is_running(session.head()) {
                record = record.map(|record| match record.status {
                    RecordStatus::Running => interrupted(record, now),
                    _ => record,
                });
                let marking = self.mark(host, session_id, &mut session, record.as_ref());
                match marking.await {
                    Ok(()) => {}
                    // The old owner was still at work, or there is a new one: reading tells.
                    Err(StoreError::Conflict) if host.is_alive() => continue,
                    Err(error) => return Err(failed(error)),
                }
            }
            let owned = Owned { session, ownership };
            self.owned.lock().insert(session_id.to_owned(), owned);
            return Ok(record);
        }
        Err(StorageError::Fenced)
    }

    /// Appends who the owner is, and what has become of the run of the former one.
    async fn mark(
        &self,
        host: &Host,
        session_id: &str,
        session: &mut Session<State>,
        record: Option<&Record>,
    ) -> Result<(), StoreError> {
        let nothing = SessionHead {
            expires: Some(0),
            ..SessionHead::default()
        };
        let entry = SessionEntry {
            head: record.map_or(nothing, head_of),
            ..SessionEntry::default()
        };
        let next = State::of(record.map(|record| Record {
            events: Vec::new(),
            ..record.clone()
        }));
        let is_alive = || host.is_alive();
        self.log
            .append(session_id, session, entry, next, is_alive)
            .await
    }

    /// Reads on from what is known of a session, as long as this host is alive.
    async fn read(
        &self,
        host: &Host,
        session_id: &str,
        session: &mut Session<State>,
    ) -> Result<(), StorageError> {
        loop {
            match self.log.read(session_id, session).await {
                Err(error) if host.waits_for(&error) => sleep(PAUSE).await,
                Err(error) => return Err(failed(error)),
                Ok(()) => break,
            }
        }
        if session.lost() > 0 {
            let lost = session.lost();
            tracing::warn!(session_id, lost, "records of a session cannot be read");
        }
        Ok(())
    }

    /// Stores a record.
    ///
    /// # Errors
    /// [`StorageError`]; earlier records are kept. Retrying is safe.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may be stored or not.
    pub async fn append(&self, record: &Record) -> Result<(), StorageError> {
        let session_id = &*record.session_id;
        let host = self.host()?;
        let session = match self.owned(session_id) {
            Some(session) => session,
            None => {
                // A session of this host alone, until now.
                let found = self.take(&host, session_id, record.created).await?;
                if found.is_some_and(|found| !found.is_expired(record.created)) {
                    // Another host had it meanwhile: what is known here is old.
                    self.release(session_id).await;
                    return Err(StorageError::Fenced);
                }
                self.owned(session_id).ok_or(StorageError::Fenced)?
            }
        };
        let mut next = record.clone();
        next.events.clear();
        let before = session.state().and_then(|state| state.record.as_ref());
        next.inherit(before);
        let base = before.filter(|_| !session.is_broken());
        let record = if session.is_broken() { &next } else { record };
        let all = next.session.as_ref().map_or(0, |it| it.get().len());
        let is_due = self.log.is_due(&session, all);
        let (line, is_whole) = entry::line_of(record, base, is_due);
        let size = line.len().max(all);
        if size > self.max_record_bytes {
            let max = self.max_record_bytes;
            return Err(StorageError::TooLarge { size, max });
        }
        let entry = SessionEntry {
            head: head_of(&next),
            body: line.into(),
            is_whole: is_whole || session.is_broken(),
        };
        self.write(&host, session_id, session, entry, State::of(Some(next)))
            .await
    }

    /// Stores events of a session that this host owns.
    async fn append_events(&self, session_id: &str, events: &[Entry]) -> Result<(), StorageError> {
        let host = self.host()?;
        let Some(session) = self.owned(session_id) else {
            // Its prompt was not stored either.
            return Ok(());
        };
        let next = session.state().cloned().unwrap_or_default();
        let entry = SessionEntry {
            head: session.head().clone(),
            body: encode_events(events).into(),
            is_whole: false,
        };
        self.write(&host, session_id, session, entry, next).await
    }

    async fn write(
        &self,
        host: &Host,
        session_id: &str,
        mut session: Session<State>,
        entry: SessionEntry,
        next: State,
    ) -> Result<(), StorageError> {
        let is_alive = || host.is_alive();
        let log = &self.log;
        let writing = log.append(session_id, &mut session, entry, next, is_alive);
        let written = writing.await;
        let mut owned = self.owned.lock();
        if written == Err(StoreError::Conflict) {
            owned.remove(session_id);
        } else if let Some(owned) = owned.get_mut(session_id) {
            owned.session = session;
        }
        written.map_err(failed)
    }

    /// Removes a session of this owner, or of none, that no other host serves. Returns its last record;
    /// `None` if there is no such session.
    ///
    /// # Errors
    /// [`StorageError`]; the session is still there, and retrying is safe.
    ///
    /// # Cancel safety
    /// If the future is dropped, it may be removed or not.
    pub async fn delete(
        &self,
        session_id: &str,
        owner: Owner,
        now: f64,
    ) -> Result<Option<Record>, StorageError> {
        let is_served = self.owned(session_id).is_some();
        let record = self.load(session_id, now).await?;
        let record = record.filter(|it| it.is_of(owner));
        let session = self.owned(session_id).filter(|_| record.is_some());
        let removed = match session {
            Some(session) => {
                let subject = self.log.subject(session_id);
                self.log.remove(&subject, session.revision()).await
            }
            None => Ok(true),
        };
        if record.is_some() || !is_served {
            self.release(session_id).await;
        }
        match removed {
            Ok(true) => Ok(record),
            Ok(false) => Err(StorageError::Fenced),
            Err(error) => Err(failed(error)),
        }
    }

    /// Forgets a session, so that another host may own it.
    async fn release(&self, session_id: &str) {
        let owned = self.owned.lock().remove(session_id);
        if let Some(ownership) = owned.and_then(|owned| owned.ownership) {
            ownership.release().await;
        }
    }

    /// Finds the runs that the former host has left behind, which become interrupted, if this one is alone.
    /// Returns how many those are. It reads one record of each other session, and removes those that have
    /// expired.
    ///
    /// # Errors
    /// [`StoreError`]; retrying is safe.
    ///
    /// # Cancel safety
    /// If the future is dropped, some are interrupted.
    pub async fn recover(&self, now: f64) -> Result<usize, StoreError> {
        let mut running = Vec::new();
        for session in self.log.heads().await? {
            let is_left = session.head.as_ref().is_some_and(is_running);
            running.extend(session.id.filter(|_| is_left));
        }
        let recovering = running.into_iter().map(|id| async move {
            let found = self.load(&id, now).await;
            self.release(&id).await;
            matches!(found, Ok(Some(record)) if record.status == RecordStatus::Interrupted)
        });
        let recovered = stream::iter(recovering).buffer_unordered(AT_ONCE);
        let recovered = recovered.filter(|is_one| std::future::ready(*is_one));
        let count = recovered.count().await;
        self.sweep().await?;
        Ok(count)
    }

    /// Removes the sessions that have expired.
    pub(crate) async fn sweep(&self) -> Result<u64, StoreError> {
        let is_free = |it: SessionInfo| {
            let owned = self.owned.lock();
            let is_owned = it.id.is_some_and(|id| owned.contains_key(&*id));
            std::future::ready(Ok(!is_owned))
        };
        self.log.sweep(u64::MAX, u64::MAX, is_free).await
    }

    /// Returns the sessions that have not expired, with their owners; `None` if it is not known whose some are.
    pub(crate) async fn owned_by(&self, now: f64) -> Result<Option<Vec<(Owner, Str)>>, StoreError> {
        let mut found = Vec::new();
        for session in self.log.heads().await? {
            let (Some(id), Some(head)) = (session.id, session.head) else {
                return Ok(None);
            };
            let is_over = head.expires.is_some_and(|at| (at as f64) < now);
            if !is_over || self.owned.lock().contains_key(&*id) {
                // Those without an owner have no files.
                found.extend(owner_of(&head.owner).map(|owner| (owner, id)));
            }
        }
        Ok(Some(found))
    }
}

/// The error of a session that was not claimed.
fn not_claimed(error: &ClaimError) -> StorageError {
    StorageError::passing(format!("the session is not claimed: {error}"))
}

/// The error of a read, or of a write that was not done.
fn failed(error: StoreError) -> StorageError {
    match error {
        StoreError::Conflict => StorageError::Fenced,
        error => StorageError::Failed {
            message: error.to_string(),
            is_retryable: error.is_retryable(),
        },
    }
}
