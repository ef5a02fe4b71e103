//! [`Job`]: a request to the storage, with what follows from its outcome.

use std::net::IpAddr;

use super::bytes::len_of;
use super::event::{HubEvent, Now, Owner, RunId};
use super::{Entry, Hub};
use crate::console;
use crate::frame::ErrorFrame;
use crate::id::SessionId;
use crate::storage::{Record, RecordStatus, StorageError};

/// A request to the storage. Carry it out, then give it back with its outcome to [`Hub::done`]. Keep the order of the jobs of a session.
pub struct Job {
    session_id: SessionId,
    pub(crate) request: Request,
}

/// What is asked of a storage, and what follows.
pub(crate) enum Request {
    Load(Then<Loaded>),
    /// As `Load`, of a session that this host has unloaded. It does not expire.
    Recall(Then<Loaded>),
    /// Keep the session, and forget what is in its conversation.
    Unload,
    /// Without what follows, nothing waits for the record.
    Append(Box<Record>, Option<Then<NotStored>>),
    /// Events of a run.
    Events(Vec<Entry>, RunId),
    /// This host has forgotten the session.
    Release,
    /// The session of this owner is not wanted any more.
    Delete(Owner, Deleted),
}

/// Called with the session's id and an outcome.
pub(crate) type Then<T> = Box<dyn FnOnce(&mut Hub, &SessionId, T, Now) + Send + Sync>;

/// The record that was found.
pub(crate) type Loaded = Result<Option<Record>, StorageError>;

/// Why a record was not stored, and the record.
pub(crate) type NotStored = Option<(StorageError, Box<Record>)>;

/// Called with the outcome of a [deletion](Hub::delete): whether there was a session.
pub(crate) type Deleted = Box<dyn FnOnce(Result<bool, StorageError>) + Send + Sync>;

/// A connection whose CONNECT waits for the storage.
pub(super) struct Connecting {
    /// The number of the job.
    pub(super) number: u64,
    pub(super) owner: Owner,
    pub(super) caller: Option<IpAddr>,
    /// The size of the conversation that came with it.
    pub(super) bytes: usize,
}

/// The ERROR for a session that cannot be loaded now.
pub(super) fn not_available(error: &StorageError) -> ErrorFrame {
    let words = format!("the session is not available: {error}");
    ErrorFrame::new(words).with_retryable(true)
}

impl Job {
    /// Returns the session.
    pub const fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Returns whether this reads a conversation.
    pub(crate) const fn is_load(&self) -> bool {
        matches!(self.request, Request::Load(_) | Request::Recall(_))
    }

    /// Returns whether this informs the storage that the session is forgotten, after which another host
    /// may serve it.
    pub const fn is_release(&self) -> bool {
        matches!(self.request, Request::Release)
    }
}

impl Hub {
    /// Handles the outcome of a job: the record that was found, if it was to load one.
    pub fn done(&mut self, job: Job, outcome: Result<Option<Record>, StorageError>, now: Now) {
        self.jobs -= 1;
        let id = job.session_id;
        match job.request {
            Request::Load(then) | Request::Recall(then) => {
                if let Some(count @ 2..) = self.loading.remove(&id) {
                    self.loading.insert(id.clone(), count - 1);
                }
                then(self, &id, outcome, now);
            }
            Request::Append(_, None) | Request::Release | Request::Unload => {}
            Request::Delete(owner, then) => {
                // It may have been loaded meanwhile.
                self.forget(&id, owner, now);
                then(outcome.map(|record| record.is_some()));
            }
            _ if outcome == Err(StorageError::Fenced) => self.give_up(&id, now),
            Request::Append(record, Some(then)) => {
                then(self, &id, outcome.err().zip(Some(record)), now);
            }
            Request::Events(_, run) => self.events_stored(run),
        }
    }

    /// Asks the storage for something.
    pub(super) fn ask_storage(&mut self, session_id: SessionId, request: Request) {
        match &request {
            Request::Append(record, _) => {
                // A run may have added to the conversation.
                let size = len_of(record.session.as_ref());
                let session = self.sessions.get_mut(session_id.as_str());
                let caller = session.and_then(|it| {
                    it.stored = if size > 0 { size } else { it.stored };
                    it.caller
                });
                self.reserved.add(caller, size);
            }
            Request::Load(_) | Request::Recall(_) => {
                *self.loading.entry(session_id.clone()).or_default() += 1;
            }
            _ => {}
        }
        self.jobs += 1;
        let job = Job {
            session_id,
            request,
        };
        self.events.push_back(HubEvent::Store(job));
    }

    /// Stores changes between runs: one job at a time, however many changes there are. A run stores
    /// them with its prompt.
    pub(super) fn save(&mut self, id: &SessionId, now: Now) {
        let number = self.next_number();
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return;
        };
        if !session.is_idle() || !std::mem::take(&mut session.is_unsaved) {
            return;
        }
        session.saving = Some(number);
        session.is_handed = false;
        let unstored = session.unstored.take();
        let is_again = unstored.is_some();
        let mut record = unstored.unwrap_or_else(|| {
            session.record(id, RecordStatus::Connected, now, self.config.result_ttl)
        });
        record.session.clone_from(&session.copy);
        record.inputs.clear();
        let then: Then<_> = Box::new(move |hub, id, not_stored, now| {
            hub.saved(id, (number, is_again), not_stored, now);
        });
        self.ask_storage(id.clone(), Request::Append(record, Some(then)));
    }

    fn saved(
        &mut self,
        id: &SessionId,
        (number, is_again): (u64, bool),
        not_stored: NotStored,
        now: Now,
    ) {
        let session = self.sessions.get_mut(id.as_str());
        let Some(session) = session.filter(|it| it.saving == Some(number)) else {
            return;
        };
        session.saving = None;
        session.is_only_here = false;
        if let Some((error, record)) = not_stored {
            if !is_again {
                let message = format!("a mode was not stored: {error}");
                self.line(console::agent_error(&message));
            }
            self.keep_unstored(id, &error, record, now);
        }
        self.save(id, now);
        self.free_unneeded(id);
    }

    /// Keeps the session of a record that was not stored, and the record if it may be stored later.
    pub(super) fn keep_unstored(
        &mut self,
        id: &SessionId,
        error: &StorageError,
        record: Box<Record>,
        now: Now,
    ) {
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return;
        };
        session.is_only_here = true;
        if error.is_retryable() {
            session.unstored = Some(record);
            let at = now.instant.checked_add(self.config.store_again);
            self.store_again_at = self.store_again_at.or(at);
        }
    }

    /// Stores at once what could not be stored before, such as the results of runs that ended while the
    /// storage was full. The hub does it by itself [after a while](super::HubConfig::store_again);
    /// call it before the host ends.
    pub fn store_again(&mut self, now: Now) {
        self.store_again_at = None;
        let sessions = self.sessions.iter();
        let unstored = sessions.filter(|(_, session)| session.unstored.is_some());
        for id in unstored.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            if let Some(session) = self.sessions.get_mut(id.as_str()) {
                session.is_unsaved = true;
            }
            self.save(&id, now);
        }
    }

    /// Returns the number of sessions with a result or a change that is not stored, and may be
    /// [stored later](Self::store_again).
    pub fn unstored(&self) -> usize {
        let sessions = self.sessions.iter();
        sessions.filter(|(_, it)| it.unstored.is_some()).count()
    }
}

// Prints no contents: they are private.
rpc_core::debug_fields!([] Job, this => {
    session_id: this.session_id,
    is_release: this.is_release(),
});
