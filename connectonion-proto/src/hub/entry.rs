//! [`SessionEntry`]: a hub's state of a session with connections or a running agent.

use std::collections::VecDeque;

use rpc_core::{Json, Text};

use super::event::{JobId, NewInput};
use super::run_state::RunState;
use crate::id::EventId;
use crate::session::{ConnId, Owner, RunId, RuntimeInput};
use crate::storage::Record;

/// Where else a copy of a session exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// In the storage, or at the client that sent it: it may be forgotten here.
    Elsewhere,
    /// Nowhere: storing it failed.
    Here,
}

/// A prompt that is about to be stored.
pub(super) struct Intake {
    /// The connection that gets the reply; `None` if the prompt was already acknowledged.
    pub(super) conn: Option<ConnId>,
    /// The id of the prompt, if an agent is already running.
    pub(super) id: EventId,
    pub(super) input: NewInput,
    /// If the prompt is the last message of the conversation already, because a host ended during
    /// its run: how many times it is run again, this one included.
    pub(super) rerun: Option<u32>,
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
    /// The job that stores changes between runs.
    pub(super) saving: Option<JobId>,
    /// The current run, or the one that starts when its prompt is stored.
    pub(super) work: Option<Box<RunState>>,
    /// The waiting prompts, in order.
    pub(super) intake: VecDeque<Intake>,
    /// The prompt that is being stored.
    pub(super) storing: Option<Intake>,
}

impl Intake {
    /// Returns the intake of a prompt that was acknowledged before.
    pub(super) fn acknowledged(input: &RuntimeInput) -> Self {
        Self {
            conn: None,
            id: input.id.clone(),
            input: NewInput::new(input.prompt.clone()).with_images(input.images.clone()),
            rerun: None,
            said: None,
        }
    }

    /// Returns the prompt as an input for a running agent.
    pub(super) fn runtime_input(&self) -> RuntimeInput {
        let input = RuntimeInput::new(self.id.clone(), self.input.prompt.clone());
        input.with_images(self.input.images.clone())
    }
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

    /// Returns whether an interrupted run begins again.
    pub(super) fn is_rerunning(&self) -> bool {
        let waiting = self.storing.iter().chain(&self.intake);
        waiting.into_iter().any(|it| it.rerun.is_some())
    }

    /// Returns the session as it was before the run, for a client without its events.
    pub(super) fn settled(&self) -> Option<&Json> {
        match self.work.as_ref().filter(|work| work.run.is_some()) {
            Some(work) => work.base(),
            None => self.copy.as_ref(),
        }
    }

    /// Returns the acknowledged prompts that no run has read yet, in order. Every record that is
    /// stored while they wait repeats them, because the last record counts.
    pub(super) fn waiting(&self) -> Vec<RuntimeInput> {
        let waiting = self.storing.iter().chain(&self.intake);
        let acknowledged = waiting.filter(|it| it.conn.is_none());
        acknowledged.map(Intake::runtime_input).collect()
    }

    /// Takes the prompt that was being stored, if it has this id: another session of this name may
    /// have been removed while the storage was at work.
    pub(super) fn take_stored(&mut self, id: &EventId) -> Option<Intake> {
        self.storing.take_if(|intake| intake.id == *id)
    }

    /// Puts a prompt back that was being stored, behind those acknowledged before it.
    pub(super) fn put_back(&mut self, intake: Intake) {
        let older = self
            .intake
            .iter()
            .take_while(|it| it.conn.is_none())
            .count();
        self.intake.insert(older, intake);
    }

    /// Returns whether the entry can be forgotten without loss.
    pub(super) fn is_idle(&self) -> bool {
        self.work.is_none()
            && self.intake.is_empty()
            && self.storing.is_none()
            && self.saving.is_none()
            && self.origin == Origin::Elsewhere
            && self.unstored.is_none()
    }
}
