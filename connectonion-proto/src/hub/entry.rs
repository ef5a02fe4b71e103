//! [`SessionEntry`]: a hub's state of a session with connections or a running agent.

use std::collections::VecDeque;

use rpc_core::{Json, Text};

use super::run_state::RunState;
use crate::id::EventId;
use crate::session::{Owner, Prompt, RunId};
use crate::storage::Record;

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
    /// The prompt that is being stored.
    pub(super) storing: Option<Prompt>,
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

    /// Returns the acknowledged prompts that no run has read yet, in order. Every record that is
    /// stored while they wait repeats them, because the last record counts.
    pub(super) fn waiting(&self) -> Vec<Prompt> {
        let waiting = self.storing.iter().chain(&self.intake);
        waiting.filter(|it| it.conn.is_none()).cloned().collect()
    }

    /// Takes the prompt that was being stored, if it has this id: another session of this name may
    /// have been removed while the storage was at work.
    pub(super) fn take_stored(&mut self, id: &EventId) -> Option<Prompt> {
        self.storing.take_if(|prompt| prompt.id == *id)
    }

    /// Puts a prompt back that was being stored, behind those acknowledged before it.
    pub(super) fn put_back(&mut self, prompt: Prompt) {
        let older = self
            .intake
            .iter()
            .take_while(|it| it.conn.is_none())
            .count();
        self.intake.insert(older, prompt);
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
