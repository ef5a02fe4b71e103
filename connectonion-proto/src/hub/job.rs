//! [`Job`]: a request to the storage, with what follows from its outcome.

use rpc_core::Text;

use super::bytes::len_of;
use super::event::{ConnId, ConnectRequest, HubEvent, Now, Owner, Reply, RunId};
use super::{Entry, Hub, removed};
use crate::console;
use crate::frame::ErrorFrame;
use crate::id::{EventId, SessionId};
use crate::storage::{Record, RecordStatus, Storage, StorageError};

/// A request to the storage. [Carry it out](Self::carry_out), then give it back with its outcome to
/// [`Hub::done`]. Keep the order of the jobs of a session.
pub struct Job {
    pub(super) session_id: SessionId,
    pub(super) task: Task,
    /// The record to store.
    pub(super) record: Option<Box<Record>>,
}

/// Why something is stored or loaded.
pub(super) enum Task {
    /// To load the session that a client requested; the newest request of its connection counts.
    Enter(ConnId, u64, Box<ConnectRequest>),
    /// To load a session whose host has died.
    Recover,
    /// A prompt for this run, which may start with it.
    Prompt(EventId, RunId),
    /// The end of a run, and its frame: OUTPUT or ERROR.
    End(RunId, Result<Text, Text>),
    /// Events of a run.
    Events(RunId, Vec<Entry>),
    /// Changes between runs, or what was not stored before.
    Save { number: u64, is_again: bool },
    /// A record that nothing waits for.
    Note,
    /// This host has forgotten the session.
    Release,
    /// The session of this owner is not wanted any more.
    Delete(Owner, Deleted),
}

/// Called with the outcome of a [deletion](Hub::delete).
type Deleted = Box<dyn FnOnce(Result<(), StorageError>) + Send + Sync>;

/// What is asked of a storage: one of the methods of [`Storage`].
pub(crate) enum Request<'a> {
    Load,
    Append(Option<&'a Record>),
    Events(&'a [Entry]),
    Release,
    Delete(Owner),
}

/// A connection whose CONNECT waits for the storage.
pub(super) struct Entering {
    /// The number of the job.
    pub(super) number: u64,
    pub(super) owner: Owner,
    /// The size of the conversation that came with it.
    pub(super) bytes: usize,
}

impl Job {
    /// Returns the session.
    #[must_use]
    pub const fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Returns whether this informs the storage that the session is forgotten, after which another host
    /// may serve it.
    #[must_use]
    pub const fn is_release(&self) -> bool {
        matches!(self.task, Task::Release)
    }

    /// Returns what the job asks of a storage.
    pub(crate) fn request(&self) -> Request<'_> {
        match (&self.task, &self.record) {
            (Task::Enter(..) | Task::Recover, _) => Request::Load,
            (Task::Events(_, events), _) => Request::Events(events),
            (Task::Release, _) => Request::Release,
            (Task::Delete(owner, _), _) => Request::Delete(*owner),
            (_, record) => Request::Append(record.as_deref()),
        }
    }

    /// Does what the job asks of a storage. Blocks for as long as the storage does. `now` is in
    /// seconds since 1970.
    ///
    /// # Errors
    /// [`StorageError`]. The hub handles it: do not retry.
    pub fn carry_out(
        &self,
        storage: &dyn Storage,
        now: f64,
    ) -> Result<Option<Record>, StorageError> {
        let id = self.session_id.as_str();
        match self.request() {
            Request::Load => return storage.load(id, now),
            Request::Events(events) => storage.append_events(id, events)?,
            Request::Release => storage.release(id),
            Request::Delete(owner) => storage.delete(id, owner)?,
            Request::Append(record) => record.map_or(Ok(()), |it| storage.append(it))?,
        }
        Ok(None)
    }
}

impl Hub {
    /// Handles the outcome of a job: the record that was found, if it was to load one.
    pub fn done(&mut self, job: Job, outcome: Result<Option<Record>, StorageError>, now: Now) {
        self.jobs -= 1;
        let Job {
            session_id: id,
            task,
            record,
        } = job;
        let is_fenced = outcome == Err(StorageError::Fenced);
        match task {
            Task::Enter(conn, number, request) => {
                self.loaded(&id);
                let is_newest = |it: &Entering| it.number == number;
                if self.entering.get(&conn).is_some_and(is_newest) {
                    self.entering.remove(&conn);
                    match outcome {
                        Ok(record) => self.enter(conn, &request, record, now),
                        Err(_) if is_fenced => {
                            return self.reply(conn, Reply::Close(removed::elsewhere()));
                        }
                        Err(error) => {
                            let words = format!("the session is not available: {error}");
                            let error = ErrorFrame::new(words).with_retryable(true);
                            self.refuse_connect(conn, error);
                        }
                    }
                }
                self.release_unused(&id);
            }
            Task::Recover => {
                self.recovering -= 1;
                self.loaded(&id);
                if let Ok(Some(mut record)) = outcome {
                    self.begin_again(&id, &mut record, now);
                }
                self.release_unused(&id);
            }
            Task::Note | Task::Release => {}
            Task::Delete(owner, then) => {
                // It may have been loaded meanwhile.
                self.forget(&id, owner, now);
                then(outcome.map(drop));
            }
            _ if is_fenced => self.give_up(&id, now),
            Task::Prompt(prompt, run) => {
                self.prompt_stored(&id, (&prompt, run), outcome.err().as_ref(), now);
            }
            Task::End(run, closing) => {
                self.end_stored(&id, run, closing, outcome.err().zip(record), now);
            }
            Task::Events(run, _) => self.events_stored(run),
            Task::Save { number, is_again } => {
                self.saved(&id, (number, is_again), outcome.err().zip(record), now);
            }
        }
    }

    /// Asks the storage for something.
    pub(super) fn ask_storage(&mut self, id: SessionId, task: Task, record: Option<Box<Record>>) {
        if let Some(record) = &record {
            // A run may have added to the conversation.
            let size = len_of(record.session.as_ref());
            self.held.add(record.owner.unwrap_or(Owner::Unsigned), size);
        }
        self.jobs += 1;
        self.events.push_back(HubEvent::Store(Job {
            session_id: id,
            task,
            record,
        }));
    }

    /// Asks the storage for a session.
    pub(super) fn load(&mut self, id: SessionId, task: Task) {
        *self.loading.entry(id.clone()).or_default() += 1;
        self.ask_storage(id, task, None);
    }

    fn loaded(&mut self, id: &SessionId) {
        if let Some(count) = self.loading.get_mut(id) {
            *count -= 1;
            if *count == 0 {
                self.loading.remove(id);
            }
        }
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
        let unstored = session.unstored.take();
        let is_again = unstored.is_some();
        let mut record = unstored.unwrap_or_else(|| {
            session.record(id, RecordStatus::Connected, now, self.config.result_ttl)
        });
        record.session.clone_from(&session.copy);
        record.inputs.clear();
        let task = Task::Save { number, is_again };
        self.ask_storage(id.clone(), task, Some(record));
    }

    fn saved(
        &mut self,
        id: &SessionId,
        (number, is_again): (u64, bool),
        not_stored: Option<(StorageError, Box<Record>)>,
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
        self.tidy(id);
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
    #[must_use]
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
