//! Requests of users during a run, and events and questions of agents.

use rpc_core::Text;
use rpc_core::encode::encode;
use rpc_core::{Json, Str};

use super::Hub;
use super::entry::Origin;
use super::event::{AskError, EmitError, HubEvent, Now, Reply};
use super::job::Task;
use super::run_state::with_mode;
use super::unstored::NotStored;
use crate::codec::to_json;
use crate::console::Line;
use crate::error::{unknown_type, unsupported_mode};
use crate::frame::{
    Answer, ErrorFrame, EventKind, Mode, ModeChange, ModeChanged, PromptUpdate, Replay, Response,
    StreamEvent,
};
use crate::id::{SessionId, event_id};
use crate::limits::AUTHENTICATE_FIRST;
use crate::replay::Entry;
use crate::session::{AgentError, ConnId, Prompt, RunId, RunOver};
use crate::storage::{Record, RecordStatus};

/// The longest type of an agent's own event, in bytes.
const MAX_EVENT_NAME: usize = 128;

impl Hub {
    /// Handles the user's answer to a question of the agent. An answer that comes too late, or to
    /// no question, gets an ERROR.
    pub fn respond(&mut self, conn: ConnId, response: Response) {
        if let Answer::Ulw(ulw) = &response.answer
            && let Some(error) = ulw.mode.as_ref().and_then(unsupported)
        {
            // The question stays open.
            return self.tell(conn, &error);
        }
        if let Answer::Unknown { tag, .. } = &response.answer {
            return self.tell(conn, &unknown_type(tag));
        }
        let request_id = response.request_id.as_deref();
        let tag = response.answer.tag();
        match self.registry.answer(conn, tag, request_id) {
            Ok((run, request_id)) => {
                let answer = response.answer;
                self.events.push_back(HubEvent::Answer {
                    run,
                    request_id,
                    answer,
                });
            }
            Err(AgentError::Answer(error)) => {
                let mut frame = error.to_frame(request_id);
                if let Some(session_id) = self.registry.session_of(conn) {
                    frame = frame.with_session_id(session_id.as_str());
                }
                self.tell(conn, &frame);
            }
            Err(error) => self.tell(conn, &ErrorFrame::new(error.to_string())),
        }
    }

    /// Stops the agent after its current step. Replies with an ERROR if none is running.
    pub fn interrupt(&mut self, conn: ConnId) {
        match self.registry.interrupt(conn) {
            Ok(run) => self.events.push_back(HubEvent::Interrupt { run }),
            Err(error) => self.tell(conn, &ErrorFrame::new(error.to_string())),
        }
    }

    /// Changes the mode. The change applies at once, to the running agent or to the next run, and
    /// all connections of the session get `mode_changed`. An unknown mode gets an ERROR. The number
    /// of turns that the user allows in the mode `ulw` is the member
    /// [`ULW_TURNS`](crate::limits::ULW_TURNS) of the session.
    pub fn mode_change(&mut self, conn: ConnId, change: ModeChange, now: Now) {
        let unsupported = unsupported(&change.mode);
        let Some((session_id, entry)) = self.entry_at(conn) else {
            return self.tell(conn, &ErrorFrame::new(AUTHENTICATE_FIRST));
        };
        if let Some(error) = unsupported {
            return self.tell(conn, &error);
        }
        let ModeChange { mode, turns } = change;
        let turns = turns.filter(|_| mode == Mode::Ulw);
        let mut changed = ModeChanged::new(mode.clone(), "user");
        changed.turns_left = turns;
        let kind = EventKind::ModeChanged(changed);
        let value = to_json(mode.name()).unwrap_or_default();
        let allowed = turns.and_then(|turns| to_json(&turns).ok());
        if let Some(run) = entry.run().filter(|_| !entry.is_ending()) {
            if let Some(work) = &mut entry.work {
                work.set_mode(value, allowed);
            }
            return self.emit_own(run, kind, None, now);
        }
        entry.copy = with_mode(entry.copy.as_ref(), &value, allowed.as_ref(), now.unix);
        entry.is_unsaved = true;
        if let Some(work) = &mut entry.work {
            work.set_mode(value, allowed);
        }
        // No run, so nothing that is replayed.
        let id = event_id(self.ids.next_bits());
        let event = StreamEvent::new(kind, id, now.unix, session_id.clone());
        let sockets = self.registry.session(session_id.as_str());
        let sockets = sockets.map(|it| it.sockets.to_vec()).unwrap_or_default();
        if let Ok(text) = encode(&event) {
            for conn in sockets {
                self.reply(conn, Reply::Frame(text.clone()));
            }
        }
        self.save(&session_id, now);
    }

    /// Stores changes between runs: one job at a time, however many changes there are. A run stores
    /// them with its prompt.
    pub(super) fn save(&mut self, session_id: &SessionId, now: Now) {
        let Some(entry) = self.entries.get_mut(session_id) else {
            return;
        };
        let is_at_rest = entry.work.is_none() && entry.intake.is_empty() && entry.saving.is_none();
        if !is_at_rest || !std::mem::take(&mut entry.is_unsaved) {
            return;
        }
        self.last_job += 1;
        entry.saving = Some(self.last_job);
        let unstored = entry.unstored.take();
        let is_again = unstored.is_some();
        let mut record = unstored.unwrap_or_else(|| {
            let status = RecordStatus::Connected;
            Box::new(entry.record(session_id, status, now, self.config.result_ttl))
        });
        record.session.clone_from(&entry.copy);
        record.inputs.clear();
        let task = Task::Save {
            number: self.last_job,
            is_again,
            record,
        };
        self.ask_storage(session_id.clone(), task);
    }

    pub(super) fn saved(
        &mut self,
        (number, is_again): (u64, bool),
        session_id: &SessionId,
        outcome: Result<Option<Record>, NotStored>,
        now: Now,
    ) {
        let entry = self.entries.get_mut(session_id);
        let Some(entry) = entry.filter(|entry| entry.saving == Some(number)) else {
            return;
        };
        entry.saving = None;
        entry.origin = Origin::Elsewhere;
        if let Err(not_stored) = outcome {
            if !is_again {
                self.line(Line::AgentError {
                    message: format!("a mode was not stored: {}", not_stored.0),
                });
            }
            self.keep_unstored(session_id, not_stored, now);
        }
        self.save(session_id, now);
        self.forget_if_left(session_id);
    }

    /// Changes the goal of the running agent. Replies with an ERROR if none is running.
    pub fn prompt_update(&mut self, conn: ConnId, update: PromptUpdate) {
        let entry = self.entry_at(conn);
        match entry.and_then(|(_, entry)| entry.run()) {
            Some(run) => {
                let prompt = update.prompt;
                self.events.push_back(HubEvent::Goal { run, prompt });
            }
            None => {
                let error = ErrorFrame::new("prompt_update requires an active turn");
                self.tell(conn, &error);
            }
        }
    }

    /// Sends an event of an agent to all connections, and keeps it for those that reconnect.
    /// Returns the event's id, a new one unless the agent passes its own (the end of a model's call
    /// has the id of its start).
    ///
    /// # Errors
    /// [`EmitError`].
    pub fn emit(
        &mut self,
        run: RunId,
        kind: EventKind,
        id: Option<&str>,
        now: Now,
    ) -> Result<Str, EmitError> {
        let kept = kind.kept();
        let name = kind.tag();
        if kept.replay == Replay::Never || name.len() > MAX_EVENT_NAME {
            let name = Str::from(name);
            return Err(EmitError::Reserved { name });
        }
        let session_id = self.registry.session_of_run(run).ok_or(RunOver)?.clone();
        let id = match id {
            Some(id) => Str::from(id),
            None => event_id(self.ids.next_bits()).as_str().into(),
        };
        let is_traced = kept.is_traced;
        let is_stored = self.config.store_events && kept.outlives_its_host;
        // The prompt itself is stored already.
        let is_prompt = matches!(kind, EventKind::UserInput(_));
        let event = StreamEvent::new(kind, id.clone(), now.unix, session_id);
        let entry = Entry::encode(&event)?;
        let text = entry.text().clone();
        let (size, max) = (text.len(), self.config.max_output_bytes);
        if size > max {
            return Err(rpc_core::Refused::TooLarge { size, max }.into());
        }
        let stored = is_stored.then(|| entry.clone());
        self.registry.event(run, entry, now.instant)?;
        if let Some(event) = stored {
            self.keep_event(run, event, is_prompt);
        }
        let max = self.config.max_trace_bytes;
        if let Some(work) = self.work_of(run).filter(|_| is_traced) {
            work.push_trace(text, max);
        }
        Ok(id)
    }

    /// Like [`emit`](Self::emit), for events of the hub itself, which are always valid.
    pub(super) fn emit_own(&mut self, run: RunId, kind: EventKind, id: Option<&str>, now: Now) {
        // A run that is over has nobody to tell.
        let _ = self.emit(run, kind, id, now);
    }

    /// Asks a question of an agent: `ask_user`, `approval_needed`, `plan_review`,
    /// `ulw_turns_reached`. Returns the question's id, which comes with the
    /// [answer](HubEvent::Answer).
    ///
    /// # Errors
    /// [`AskError`].
    pub fn ask(&mut self, run: RunId, question: EventKind, now: Now) -> Result<Str, AskError> {
        let answer = question.awaits().ok_or(AskError::NoRoom)?;
        let id = event_id(self.ids.next_bits());
        let state = self.registry.run_mut(run)?;
        state
            .ask(answer, id.as_str())
            .map_err(|_| AskError::NoRoom)?;
        match self.emit(run, question, Some(id.as_str()), now) {
            Ok(id) => Ok(id),
            Err(error) => {
                self.withdraw(run, id.as_str());
                Err(match error {
                    EmitError::Over(over) => over.into(),
                    _ => AskError::NoRoom,
                })
            }
        }
    }

    /// Withdraws a question.
    pub fn withdraw(&mut self, run: RunId, request_id: &str) {
        if let Ok(state) = self.registry.run_mut(run) {
            state.withdraw(request_id);
        }
    }

    /// Starts a step of an agent, and returns the inputs that came meanwhile. Each becomes a
    /// message of the conversation, and all connections are told that it was read.
    ///
    /// # Errors
    /// [`RunOver`].
    pub fn next_inputs(&mut self, run: RunId, now: Now) -> Result<Vec<Prompt>, RunOver> {
        let inputs = self.registry.run_mut(run)?.take_inputs();
        let work = self.work_of(run).ok_or(RunOver)?;
        work.iteration += 1;
        self.read(run, &inputs, now);
        Ok(inputs)
    }

    /// Adds a message to the conversation.
    ///
    /// # Errors
    /// [`RunOver`].
    pub fn push_message(&mut self, run: RunId, message: Json) -> Result<(), RunOver> {
        self.working(run)?.push_message(message);
        Ok(())
    }

    /// Sets a member of the session.
    ///
    /// # Errors
    /// [`RunOver`].
    pub fn set_member(&mut self, run: RunId, name: &str, value: Json) -> Result<(), RunOver> {
        self.working(run)?.set(name, value);
        Ok(())
    }

    /// Returns a current member of the session, other than `messages` and `trace`.
    ///
    /// # Errors
    /// [`RunOver`].
    pub fn member(&mut self, run: RunId, name: &str) -> Result<Option<Json>, RunOver> {
        Ok(self.working(run)?.get(name))
    }

    /// Changes the mode on the agent's behalf.
    ///
    /// # Errors
    /// [`EmitError`].
    pub fn set_mode(&mut self, run: RunId, mode: Mode, now: Now) -> Result<(), EmitError> {
        let value = to_json(mode.name())?;
        self.working(run)?.set_mode(value, None);
        let changed = ModeChanged::new(mode, "agent");
        self.emit(run, EventKind::ModeChanged(changed), None, now)?;
        Ok(())
    }

    /// Returns the current conversation.
    ///
    /// # Errors
    /// [`RunOver`].
    pub fn session(&mut self, run: RunId, now: Now) -> Result<Json, RunOver> {
        let session_id = self.registry.session_of_run(run).ok_or(RunOver)?.clone();
        let work = self.working(run)?;
        Ok(work.render(session_id.as_str(), None, now.unix))
    }

    /// Returns whether the user wants the agent to stop; `false` for a run that is over.
    #[must_use]
    pub fn is_interrupted(&mut self, run: RunId) -> bool {
        let state = self.registry.run_mut(run);
        state.is_ok_and(|state| state.is_interrupted())
    }

    /// Returns whether inputs of the user wait for the agent.
    #[must_use]
    pub fn has_inputs(&mut self, run: RunId) -> bool {
        let state = self.registry.run_mut(run);
        state.is_ok_and(|state| state.inputs().len() > 0)
    }

    /// Returns the frame for a connection that has missed events of a run.
    pub(super) fn snapshot(&mut self, conn: ConnId, now: Now) -> Option<Text> {
        let session_id = self.registry.session_of(conn)?.clone();
        let work = self.entries.get(&session_id)?.work.as_ref()?;
        let session = work.render(session_id.as_str(), None, now.unix);
        let id = event_id(self.ids.next_bits());
        let kind = EventKind::SessionSync(session);
        let event = StreamEvent::new(kind, id, now.unix, session_id.clone());
        encode(&event).ok()
    }

    pub(super) fn working(
        &mut self,
        run: RunId,
    ) -> Result<&mut super::run_state::RunState, RunOver> {
        self.work_of(run)
            .filter(|work| !work.is_ending)
            .ok_or(RunOver)
    }
}

/// Returns the ERROR for a mode that the protocol does not know, and so no agent does.
fn unsupported(mode: &Mode) -> Option<ErrorFrame> {
    match mode {
        Mode::Other(word) => Some(unsupported_mode(word)),
        _ => None,
    }
}
