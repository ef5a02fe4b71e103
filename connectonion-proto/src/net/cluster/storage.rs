//! [`ClusterStorage`]: sessions in a log that several hosts share, each written by its owner alone.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use rpc_core::cluster::{ClaimError, Claimed, Fence, Ownership};
use rpc_core::store::{Log, Store, StoreError};
use rpc_core::sync::Mutex;

use super::ClusterOptions;
use super::journal::{Journal, Known, failed};
use super::node::{Member, Node};
use super::part::{Kind, encode_events};
use crate::hub::{Job, Owner, Request};
use crate::replay::Entry;
use crate::storage::{Record, RecordStatus, StorageError, interrupted};

/// How often a new owner reads again because the old one still writes.
const MAX_TAKEOVERS: u32 = 20;

/// The sessions that several hosts share.
///
/// - The records of a session are on one subject of a log. A record says what is new, and from time to time
///   all, so that a prompt costs the same in long and short conversations; what that replaces is purged.
///   A record longer than the store takes is stored in parts, and counts when its last part is there.
/// - A session has one owner. Every write names the last message of the session that the owner knows,
///   so the store refuses the writes of all others; [`StorageError::Fenced`] is the end of the
///   session at this host. An owner whose host is gone is replaced: its run becomes
///   [interrupted](RecordStatus::Interrupted), by a record after which nothing of the old owner is
///   accepted.
/// - The events of a run are stored between the records.
/// - An appended record is in the log when the call returns. Without an
///   answer it is sent again under the same id until there is one, or until this host has lost its
///   lease: then it is fenced, and its clients find out at the next host. So no record is both
///   refused and stored.
pub(super) struct ClusterStorage {
    member: Member,
    journal: Journal,
    owned: Mutex<HashMap<String, (Known, Ownership)>>,
    max_record_bytes: usize,
}

impl ClusterStorage {
    pub(super) fn new(
        member: Member,
        store: &dyn Store,
        log: Arc<dyn Log>,
        options: &ClusterOptions,
    ) -> Self {
        Self {
            member,
            journal: Journal::new(log, store.max_payload(), options.max_age),
            owned: Mutex::default(),
            max_record_bytes: options.max_record_bytes,
        }
    }

    /// Forgets all ownerships, because the node they belong to is gone.
    pub(super) fn forget_all(&self) {
        self.owned.lock().clear();
    }

    fn known(&self, session_id: &str) -> Option<Known> {
        let owned = self.owned.lock();
        // What belongs to an earlier life of this host is claimed again.
        let (known, _) = owned.get(session_id).filter(|(_, it)| it.is_valid())?;
        Some(known.clone())
    }

    /// Does what a job asks for.
    pub(super) async fn carry_out(
        &self,
        job: &Job,
        now: f64,
    ) -> Result<Option<Record>, StorageError> {
        let id = job.session_id().as_str();
        match &job.request {
            Request::Load(_) => return self.load(id, now).await,
            Request::Append(record, _) => self.append(record).await?,
            Request::Events(events, _) => self.append_events(id, events).await?,
            Request::Delete(owner, _) => self.delete(id, *owner, now).await?,
            Request::Release if self.known(id).is_some() => self.give_back(id).await,
            Request::Release => {}
        }
        Ok(None)
    }

    fn node(&self) -> Result<Arc<Node>, StorageError> {
        self.member.current().ok_or_else(|| StorageError::Io {
            what: "store the session",
            kind: io::ErrorKind::NotConnected,
            message: "this host is not a part of the cluster at the moment".to_owned(),
        })
    }

    async fn load(&self, session_id: &str, now: f64) -> Result<Option<Record>, StorageError> {
        let node = self.node()?;
        let record = match self.known(session_id) {
            Some(known) => {
                let read = self.journal.read(&node, session_id, known.fence);
                read.await?.record_with_events()
            }
            None => self.take(&node, session_id, now).await?,
        };
        Ok(record.filter(|record| !record.is_expired(now)))
    }

    /// Becomes the owner of a session, and reads what there is.
    async fn take(
        &self,
        node: &Node,
        session_id: &str,
        now: f64,
    ) -> Result<Option<Record>, StorageError> {
        let ownership = match node.claims.claim(session_id).await {
            Ok(Claimed::Owned(ownership)) => ownership,
            Ok(Claimed::Held { .. }) => return Err(StorageError::Fenced),
            Err(error) => return Err(not_claimed(&error)),
        };
        let mut is_taken = ownership.taken_from().is_some();
        let mut fence = Fence::new(ownership.fence());
        for _ in 0..MAX_TAKEOVERS {
            let mut found = match self.journal.read(node, session_id, fence).await {
                Ok(found) => found,
                Err(StorageError::Fenced) if node.owns(session_id).await => {
                    // The store has lost who owned what, and counts owners from the beginning.
                    let last = self.journal.last_owner(node, session_id).await?;
                    fence = Fence::new(last.saturating_add(1));
                    is_taken = true;
                    continue;
                }
                Err(error) => return Err(error),
            };
            let mut record = found.record_with_events();
            if is_taken {
                record = record.map(|record| match record.status {
                    RecordStatus::Running => interrupted(record, now),
                    _ => record,
                });
                let marker = record.as_ref().map(|record| Record {
                    session: None,
                    ..record.clone()
                });
                let line = marker.as_ref().map(Record::to_line).unwrap_or_default();
                let written =
                    self.journal
                        .append(node, session_id, &mut found, Kind::Record, &line);
                match written.await {
                    Ok(_) => {}
                    // The old owner was still at work, or there is a new one: reading tells.
                    Err(StoreError::Conflict) => continue,
                    Err(error) => return Err(failed(&error)),
                }
                if let Some(marker) = marker {
                    found.wrote(&marker, &line);
                }
            }
            self.owned
                .lock()
                .insert(session_id.to_owned(), (found, ownership));
            return Ok(record);
        }
        Err(StorageError::Fenced)
    }

    async fn append(&self, record: &Record) -> Result<(), StorageError> {
        let session_id = &*record.session_id;
        let whole = record.to_line();
        if whole.len() > self.max_record_bytes {
            return Err(StorageError::TooLarge {
                size: whole.len(),
                max: self.max_record_bytes,
            });
        }
        let node = self.node()?;
        let known = match self.known(session_id) {
            Some(known) => known,
            None => {
                // A session of this host alone, until now.
                let found = self.take(&node, session_id, record.created).await?;
                if found.is_some() {
                    // Another host had it meanwhile: what is known here is old.
                    self.give_back(session_id).await;
                    return Err(StorageError::Fenced);
                }
                self.known(session_id).ok_or(StorageError::Fenced)?
            }
        };
        let line = self.journal.line_of(&known, record, whole);
        let first = self
            .write(&node, session_id, known, Kind::Record, &line, Some(record))
            .await?;
        if let Some(before) = first
            && record.status != RecordStatus::Running
        {
            // What it replaces; if this fails, the next one does it.
            let purging = self.journal.purge(session_id, before);
            tokio::spawn(async move {
                if let Err(error) = purging.await {
                    tracing::debug!(%error, "replaced records were not purged");
                }
            });
        }
        Ok(())
    }

    /// Removes a session of this owner that no other host serves.
    async fn delete(&self, session_id: &str, owner: Owner, now: f64) -> Result<(), StorageError> {
        let record = self.load(session_id, now).await?;
        let purged = match record.is_some_and(|it| it.is_of(owner)) {
            true => self.journal.purge(session_id, u64::MAX).await,
            false => Ok(()),
        };
        self.give_back(session_id).await;
        purged.map_err(|error| failed(&error))
    }

    /// Stores events of a session that this host owns.
    async fn append_events(&self, session_id: &str, events: &[Entry]) -> Result<(), StorageError> {
        let node = self.node()?;
        let Some(known) = self.known(session_id) else {
            // Its prompt was not stored either.
            return Ok(());
        };
        let lines = encode_events(events);
        self.write(&node, session_id, known, Kind::Events, &lines, None)
            .await
            .map(drop)
    }

    /// Writes to the log of a session. Returns the number of the first message if nothing before it is
    /// needed.
    async fn write(
        &self,
        node: &Node,
        session_id: &str,
        mut known: Known,
        kind: Kind,
        line: &str,
        record: Option<&Record>,
    ) -> Result<Option<u64>, StorageError> {
        let written = self
            .journal
            .append(node, session_id, &mut known, kind, line);
        let written = written.await;
        if written == Err(StoreError::Conflict) {
            self.owned.lock().remove(session_id);
            return Err(StorageError::Fenced);
        }
        let is_whole = written.is_ok() && record.is_some_and(|record| known.wrote(record, line));
        if let Some((place, _)) = self.owned.lock().get_mut(session_id) {
            *place = known;
        }
        let first = written.map_err(|error| failed(&error))?;
        Ok(is_whole.then_some(first))
    }

    async fn give_back(&self, session_id: &str) {
        let owned = self.owned.lock().remove(session_id);
        if let Some((_, ownership)) = owned {
            ownership.release().await;
        }
    }
}

/// The error of a session that was not claimed.
fn not_claimed(error: &ClaimError) -> StorageError {
    StorageError::Io {
        what: "claim the session",
        kind: match error {
            ClaimError::NotAlive => io::ErrorKind::NotConnected,
            _ => io::ErrorKind::TimedOut,
        },
        message: error.to_string(),
    }
}
