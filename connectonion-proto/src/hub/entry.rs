//! [`SessionEntry`]: what a hub holds of a session while somebody watches it or an agent works on it.

use std::collections::VecDeque;

use rpc_core::Json;

use super::event::{JobId, NewInput};
use super::run_state::RunState;
use crate::id::EventId;
use crate::session::{ConnId, Owner, RunId, RuntimeInput};

/// Where else a copy of a session is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// In the storage, or with the client that handed it over: it may be forgotten here.
    Elsewhere,
    /// Nowhere: the storage did not take it.
    Here,
}

/// A prompt on its way to the storage.
pub(super) struct Intake {
    /// Who is told; none for what was acknowledged before.
    pub(super) conn: Option<ConnId>,
    /// What it is called, if an agent works already.
    pub(super) id: EventId,
    pub(super) input: NewInput,
}

pub(super) struct SessionEntry {
    pub(super) owner: Owner,
    /// The conversation, as it is between runs.
    pub(super) copy: Option<Json>,
    pub(super) origin: Origin,
    /// The copy was changed between runs, and no job was given it.
    pub(super) is_unsaved: bool,
    /// The job that stores what was changed between runs.
    pub(super) saving: Option<JobId>,
    /// The run, or the one that begins when its prompt is stored.
    pub(super) work: Option<Box<RunState>>,
    /// Prompts that wait, in order.
    pub(super) intake: VecDeque<Intake>,
    /// The prompt that is being stored.
    pub(super) storing: Option<Intake>,
}

impl Intake {
    /// As an agent that works already gets it.
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
            is_unsaved: false,
            saving: None,
            work: None,
            intake: VecDeque::new(),
            storing: None,
        }
    }

    /// The run that goes on.
    pub(super) fn run(&self) -> Option<RunId> {
        self.work.as_ref()?.run
    }

    /// Whether the result of the run is being stored.
    pub(super) fn is_ending(&self) -> bool {
        self.work.as_ref().is_some_and(|work| work.is_ending)
    }

    /// The session that a client without events has to know: as it was before the run.
    pub(super) fn settled(&self) -> Option<&Json> {
        match self.work.as_ref().filter(|work| work.run.is_some()) {
            Some(work) => work.base(),
            None => self.copy.as_ref(),
        }
    }

    /// Prompts that were acknowledged and that no run has yet, in order. Every record that is stored
    /// while they wait says them again, because the last one counts.
    pub(super) fn waiting(&self) -> Vec<RuntimeInput> {
        let waiting = self.storing.iter().chain(&self.intake);
        let acknowledged = waiting.filter(|it| it.conn.is_none());
        acknowledged.map(Intake::runtime_input).collect()
    }

    /// The prompt that was being stored, if it is this one: another session of this name may have
    /// been removed while the storage was at work.
    pub(super) fn take_stored(&mut self, id: &EventId) -> Option<Intake> {
        self.storing.take_if(|intake| intake.id == *id)
    }

    /// Puts a prompt back that was being stored, behind those that were acknowledged before it.
    pub(super) fn put_back(&mut self, intake: Intake) {
        let older = self
            .intake
            .iter()
            .take_while(|it| it.conn.is_none())
            .count();
        self.intake.insert(older, intake);
    }

    /// Whether nothing is lost when it is forgotten.
    pub(super) fn is_idle(&self) -> bool {
        self.work.is_none()
            && self.intake.is_empty()
            && self.storing.is_none()
            && self.saving.is_none()
            && self.origin == Origin::Elsewhere
    }
}
