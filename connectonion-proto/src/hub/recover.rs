//! Sessions that a host has left behind: what of them goes on here, with or without a client.

use rpc_core::Json;

use super::Hub;
use super::entry::{Rerun, SessionEntry};
use super::event::Now;
use super::events::{prompt_event, traced};
use super::job::Task;
use super::run_state::{images_of_last_prompt, with_rest};
use crate::id::{SessionId, runtime_input_id};
use crate::session::Prompt;
use crate::storage::{Record, RecordStatus, StorageError};

impl Hub {
    /// Takes over the session of a host that has died: if its run was interrupted and
    /// [may be run again](super::HubConfig::max_reruns), it begins without waiting for a client, who
    /// later finds it running, or its result. Otherwise the session is released at once. A session
    /// that is here already goes on as it is.
    ///
    /// Returns `false`, and does nothing, if there is no room for another session or run: leave it to
    /// another host.
    #[must_use]
    pub fn recover(&mut self, session_id: SessionId) -> bool {
        if !self.has_room() {
            return false;
        }
        self.recovering += 1;
        self.load(session_id, Task::Recover);
        true
    }

    /// Returns the number of sessions that are being [taken over](Self::recover).
    #[cfg(feature = "nats")]
    pub(crate) const fn recovering(&self) -> usize {
        self.recovering
    }

    fn has_room(&self) -> bool {
        let recovering = self.recovering;
        let running = self.registry.running() + self.beginning + self.starved.len() + recovering;
        running < self.config.registry.max_running && self.registry.has_room(recovering)
    }

    pub(super) fn recovered(
        &mut self,
        session_id: &SessionId,
        found: Result<Option<Record>, StorageError>,
        now: Now,
    ) {
        if let Ok(Some(mut record)) = found {
            self.begin_again(session_id, &mut record, now);
        }
        self.release_unused(session_id.as_str());
    }

    /// Begins the run of a record again, if it was interrupted and may be run again, unless the
    /// session is here. Clients that connect then find it running, and its earlier events, which are
    /// taken from the record.
    pub(super) fn begin_again(&mut self, session_id: &SessionId, record: &mut Record, now: Now) {
        let is_here = self.registry.session(session_id.as_str()).is_some();
        // Whoever stores interrupted runs stores owners.
        let Some(owner) = record.owner.filter(|_| !is_here) else {
            return;
        };
        let Some(first) = self.interrupted(record) else {
            return;
        };
        if self.registry.open(session_id.clone(), owner).is_err() {
            return;
        }
        // Making room may have removed an old session.
        self.handle_timeout(now);
        let mut entry = SessionEntry::new(owner);
        entry.rerun = Some(Rerun {
            count: record.reruns + 1,
            said: prompt_event(&record.events),
        });
        self.registry
            .restore(session_id, std::mem::take(&mut record.events));
        entry.copy.clone_from(&record.session);
        entry.intake.push_back(first);
        entry.intake.extend(record.inputs.iter().cloned());
        self.entries.insert(session_id.clone(), entry);
        self.next_intake(session_id, now);
    }

    /// Returns the prompt to run again, which is the last message of its conversation, if the record is
    /// of an interrupted run.
    fn interrupted(&mut self, record: &Record) -> Option<Prompt> {
        let may_again = record.reruns < self.config.max_reruns;
        if record.status != RecordStatus::Interrupted || !may_again {
            return None;
        }
        let mut first = Prompt::new(record.prompt.clone());
        first.images = images_of_last_prompt(record.session.as_ref()?)?;
        first.id = runtime_input_id(self.ids.next_bits());
        Some(first)
    }
}

/// Returns the conversation in a record, with the prompts that were acknowledged and not answered, and
/// what is known of the interrupted run.
pub(super) fn revive(record: Record, now: f64) -> Option<Json> {
    let session = record.session?;
    let mut events = traced(&record.events).peekable();
    if record.inputs.is_empty() && events.peek().is_none() {
        return Some(session);
    }
    Some(with_rest(&session, events, &record.inputs, now))
}
