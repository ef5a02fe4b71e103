//! Events of runs that outlive their host: on their way to the storage, and back.

use rpc_core::json::find_member;
use rpc_core::{Limits, Text};

use super::Hub;
use super::job::Task;
use crate::frame::ServerFrame;
use crate::replay::Entry;
use crate::session::RunId;

impl Hub {
    /// Keeps an event for the storage, within the bounds of a session's log: the first ones of a run.
    /// One that `waits` is stored with the next one.
    pub(super) fn keep_event(&mut self, run: RunId, event: Entry, waits: bool) {
        let limits = self.config.registry.log;
        let Some(work) = self.work_of(run) else {
            return;
        };
        work.kept_bytes = work.kept_bytes.saturating_add(event.size());
        work.kept += 1;
        if work.kept_bytes > limits.max_bytes || work.kept > limits.max_events {
            return;
        }
        work.unstored.push(event);
        if !waits {
            self.store_events(run);
        }
    }

    /// Stores the events that have come while others were being stored.
    fn store_events(&mut self, run: RunId) {
        let Some(session_id) = self.registry.session_of_run(run).cloned() else {
            return;
        };
        // The end of a run replaces its events.
        let work = self.work_of(run).filter(|work| !work.is_ending);
        let Some(work) = work.filter(|it| !it.is_storing && !it.unstored.is_empty()) else {
            return;
        };
        work.is_storing = true;
        let events = std::mem::take(&mut work.unstored);
        self.ask_storage(session_id, Task::Events(run, events));
    }

    pub(super) fn events_stored(&mut self, run: RunId) {
        if let Some(work) = self.work_of(run) {
            work.is_storing = false;
        }
        self.store_events(run);
    }
}

/// Returns the event that reports the prompt of a run.
pub(super) fn prompt_event(events: &[Entry]) -> Option<Text> {
    let mut texts = events.iter().map(Entry::text);
    let is_prompt = |text: &&Text| {
        let kind = find_member(text.as_str(), "type");
        kind.is_some_and(|kind| kind.get() == "\"user_input\"")
    };
    texts.find(is_prompt).cloned()
}

/// Returns the events that a session's trace keeps.
pub(super) fn traced(events: &[Entry]) -> impl Iterator<Item = &Text> {
    let limits = Limits::unlimited();
    events.iter().map(Entry::text).filter(move |text| {
        let frame = ServerFrame::decode(text.as_str(), &limits);
        matches!(frame, Ok(ServerFrame::Event(event)) if event.kind.kept().is_traced)
    })
}
