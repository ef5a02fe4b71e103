//! [`Job`]: a request to the storage, with what follows from its outcome.

use std::fmt;

use rpc_core::Text;

use super::event::ConnectRequest;
use crate::id::{EventId, SessionId};
use crate::replay::Entry;
use crate::session::{ConnId, Owner, RunId};
use crate::storage::{Record, Storage, StorageError};

/// A request to the storage. [Carry it out](Self::carry_out), then give it back with its outcome to
/// [`Hub::done`](super::Hub::done). Keep the order of the jobs of a session.
pub struct Job {
    pub(super) session_id: SessionId,
    pub(super) task: Task,
}

/// What is stored or loaded, and why.
pub(super) enum Task {
    /// The session that a client requested; the newest request of its connection counts.
    Enter(ConnId, u64, Box<ConnectRequest>),
    /// A session whose host has died.
    Recover,
    /// A prompt: for this run, or it starts one.
    Prompt(EventId, Option<RunId>, Box<Record>),
    /// The end of a run, and its frame: OUTPUT or ERROR.
    End(RunId, Result<Text, Text>, Box<Record>),
    /// Events of a run.
    Events(RunId, Vec<Entry>),
    /// Changes between runs, or what was not stored before.
    Save {
        number: u64,
        is_again: bool,
        record: Box<Record>,
    },
    /// A record that nothing waits for.
    Note(Box<Record>),
    /// This host has forgotten the session.
    Release,
}

impl Job {
    /// Returns the session.
    #[must_use]
    pub const fn session_id(&self) -> &SessionId {
        &self.session_id
    }

    /// Returns the name of the method of [`Storage`] that this calls.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match &self.task {
            Task::Enter(..) | Task::Recover => "load",
            Task::Events(..) => "append_events",
            Task::Release => "release",
            _ => "append",
        }
    }

    /// Returns the record to store, if this stores one.
    #[must_use]
    pub const fn record(&self) -> Option<&Record> {
        match &self.task {
            Task::Prompt(_, _, record)
            | Task::End(_, _, record)
            | Task::Save { record, .. }
            | Task::Note(record) => Some(record),
            Task::Enter(..) | Task::Recover | Task::Events(..) | Task::Release => None,
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
        match &self.task {
            Task::Enter(..) | Task::Recover => return storage.load(id, now),
            Task::Events(_, events) => storage.append_events(id, events)?,
            Task::Release => storage.release(id),
            _ => {
                if let Some(record) = self.record() {
                    storage.append(record)?;
                }
            }
        }
        Ok(None)
    }
}

/// Prints no contents: they are private.
impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("name", &self.name())
            .field("session_id", &self.session_id)
            .finish_non_exhaustive()
    }
}

/// A connection whose CONNECT waits for the storage.
pub(super) struct Entering {
    /// The number of the job.
    pub(super) number: u64,
    pub(super) owner: Owner,
    /// The size of the conversation that came with it.
    pub(super) bytes: usize,
}
