//! [`SessionEntry`]: a hub's state of a session with connections or a running agent.

use std::collections::VecDeque;
use std::time::Duration;

use rpc_core::{Json, Text};

use super::event::Now;
use super::run_state::RunState;
use crate::id::{EventId, SessionId};
use crate::session::{Owner, Prompt, RunId};
use crate::storage::{Record, RecordStatus};

/// Where else a copy of a session exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// In the storage, or at the client that sent it: it may be forgotten here.
    Elsewhere,
    /// Nowhere: storing it failed.
    Here,
}

/// An interrupted run that begins again: its prompt is the last message of the conversation already.
pub(super) struct Rerun {
    /// How many times it has begun again, this one included.
    pub(super) count: u32,
    /// The event that has reported the prompt before, if clients can still see it.
    pub(super) said: Option<Text>,
}

pub(super) struct SessionEntry {
    pub(super) owner: Owner,
    /// The conversation between runs.
    pub(super) copy: Option<Json>,
    pub(super) origin: Origin,
    /// The last record, if it was not stored and may be stored later.
    pub(super) unstored: Option<Box<Record>>,
    /// The copy was changed between runs and is not being stored.
    pub(super) is_unsaved: bool,
    /// The number of the job that stores changes between runs.
    pub(super) saving: Option<u64>,
    /// The current run, or the one that starts when its prompt is stored.
    pub(super) work: Option<Box<RunState>>,
    /// The waiting prompts, in order.
    pub(super) intake: VecDeque<Prompt>,
    /// The one among them that is being stored.
    pub(super) storing: Option<EventId>,
    /// The interrupted run that the first of them begins again.
    pub(super) rerun: Option<Rerun>,
}

impl SessionEntry {
    pub(super) const fn new(owner: Owner) -> Self {
        Self {
            owner,
            copy: None,
            origin: Origin::Elsewhere,
            unstored: None,
            is_unsaved: false,
            saving: None,
            work: None,
            intake: VecDeque::new(),
            storing: None,
            rerun: None,
        }
    }

    /// Returns the current run.
    pub(super) fn run(&self) -> Option<RunId> {
        self.work.as_ref()?.run
    }

    /// Returns whether the result of the run is being stored.
    pub(super) fn is_ending(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.is_ending)
    }

    /// Returns the session as it was before the run, for a client without its events.
    pub(super) fn settled(&self) -> Option<&Json> {
        match self.work.as_ref().filter(|work| work.run.is_some()) {
            Some(work) => work.base(),
            None => self.copy.as_ref(),
        }
    }

    /// Returns the record of the current run, or of the session between two. Acknowledged prompts that no
    /// run has read are in every record that is stored while they wait, because the last one counts.
    pub(super) fn record(
        &self,
        session_id: &SessionId,
        status: RecordStatus,
        now: Now,
        ttl: Duration,
    ) -> Record {
        let work = self.work.as_ref();
        let prompt = work.map(|work| work.prompt.text.clone());
        let began = work.map_or(now.unix, |work| work.began);
        let mut record = Record::new(
            session_id.as_str(),
            status,
            prompt.unwrap_or_default(),
            began,
        );
        record.owner = Some(self.owner);
        record.expires = Some(began + ttl.as_secs_f64());
        let waiting = self.intake.iter().filter(|it| it.conn.is_none());
        record.inputs = waiting.cloned().collect();
        record
    }

    /// Returns whether the entry can be forgotten without loss.
    pub(super) fn is_idle(&self) -> bool {
        self.work.is_none()
            && self.intake.is_empty()
            && self.saving.is_none()
            && self.origin == Origin::Elsewhere
            && self.unstored.is_none()
    }
}
