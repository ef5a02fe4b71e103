//! Sessions that a host has left behind: what of them goes on here, with or without a client.

use rpc_core::json::find_member;
use rpc_core::{Json, Limits, Text};

use super::bytes::len_of;
use super::conversation::{images_of_last_prompt, with_rest};
use super::event::{HubEvent, Now};
use super::job::{Loaded, Request, Then};
use super::run::Phase;
use super::{Entry, Hub, Prompt, Rerun};
use crate::console;
use crate::frame::{ErrorFrame, ServerFrame};
use crate::id::{SessionId, runtime_input_id};
use crate::storage::{Record, RecordStatus};

impl Hub {
    /// Takes over the session of a host that has died: if its run was interrupted and
    /// [may be run again](super::HubConfig::max_reruns), it begins without waiting for a client, who
    /// later finds it running, or its result. Otherwise the session is released at once. A session
    /// that is here already goes on as it is.
    ///
    /// Returns `false`, and does nothing, if there is no room for another session or run: leave it to
    /// another host.
    pub fn recover(&mut self, session_id: SessionId) -> bool {
        let recovering = self.recovering;
        let running = self.runs.len() + self.waiting_for_room.len() + recovering;
        let free = self.config.max_sessions.saturating_sub(self.sessions.len());
        let has_room = running < self.config.max_running && free + self.parked.len() > recovering;
        if has_room {
            self.recovering += 1;
            let then: Then<Loaded> = Box::new(|hub, id, found, now| {
                hub.recovering -= 1;
                if let Ok(Some(mut record)) = found {
                    hub.begin_again(id, &mut record, now);
                }
                hub.release_unused(id);
            });
            self.ask_storage(session_id, Request::Load(then));
        }
        has_room
    }

    /// Returns the number of sessions that are being [taken over](Self::recover).
    pub(crate) const fn recovering(&self) -> usize {
        self.recovering
    }

    /// Begins the run of a record again, if it was interrupted and may be run again, unless the
    /// session is here. Clients that connect then find it running, and its earlier events, which are
    /// taken from the record.
    pub(super) fn begin_again(&mut self, id: &SessionId, record: &mut Record, now: Now) {
        let is_here = self.sessions.get(id.as_str()).is_some();
        // A store of interrupted runs stores owners.
        let Some(owner) = record.owner.filter(|_| !is_here) else {
            return;
        };
        let Some(first) = self.interrupted(record) else {
            return;
        };
        if self.open(id.clone(), owner, now).is_err() {
            return;
        }
        let prompt = prompt_event(&record.events);
        for event in std::mem::take(&mut record.events) {
            self.push(id, event);
        }
        if let Some(session) = self.sessions.get_mut(id.as_str()) {
            session.log.begin_again();
            session.is_known = true;
            session.copy.clone_from(&record.session);
            session.stored = len_of(record.session.as_ref());
            session.prompts.push_back(first);
            session.prompts.extend(record.inputs.iter().cloned());
            let count = record.reruns + 1;
            session.rerun = Some(Rerun { count, prompt });
        }
        self.next_prompt(id, now);
    }

    /// Stops a run that was begun again: its conversation has gone on elsewhere. Acknowledged prompts stay.
    pub(super) fn stop_rerun(&mut self, id: &SessionId) {
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return;
        };
        if session.rerun.take().is_some() {
            session.prompts.pop_front();
        }
        session.prompts.drain(..session.read);
        session.read = 0;
        session.storing = None;
        let sockets = session.sockets.clone();
        if let Some(run) = session.run.take() {
            self.runs.remove(&run.id);
            if run.phase != Phase::Beginning {
                self.events.push_back(HubEvent::Cancel(run.id));
            }
            let words = "the agent was stopped: its conversation has gone on elsewhere";
            for conn in sockets {
                self.send_to(conn, &ErrorFrame::new(words));
            }
            self.line(console::agent_error(words));
        }
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
pub(super) fn restore(record: Record, now: f64) -> Option<Json> {
    let session = record.session?;
    let mut events = traced(&record.events).peekable();
    if record.inputs.is_empty() && events.peek().is_none() {
        return Some(session);
    }
    Some(with_rest(&session, events, &record.inputs, now))
}

/// Returns the event that reports the prompt of a run.
fn prompt_event(events: &[Entry]) -> Option<Text> {
    let mut texts = events.iter().map(Entry::text);
    let is_prompt = |text: &&Text| {
        let kind = find_member(text.as_str(), "type");
        kind.is_some_and(|kind| kind.get() == "\"user_input\"")
    };
    texts.find(is_prompt).cloned()
}

/// Returns the events that a session's trace keeps.
fn traced(events: &[Entry]) -> impl Iterator<Item = &Text> {
    let limits = Limits::unlimited();
    events.iter().map(Entry::text).filter(move |text| {
        let frame = ServerFrame::decode(text.as_str(), &limits);
        matches!(frame, Ok(ServerFrame::Event(event)) if event.kind.kept().is_traced)
    })
}
