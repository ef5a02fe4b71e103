//! Actions of agents in their runs: events, questions, steps, members of the session.

use rpc_core::{Json, Refused, Str};

use super::conversation::user_message;
use super::event::{AppError, Now, RunId};
use super::job::Request;
use super::{Entry, Hub, Prompt};
use crate::frame::{Answer, EventKind, Mode, ModeChanged, Replay, StreamEvent, UserInput};
use crate::id::event_id;

/// The longest type of an agent's own event, in bytes.
const MAX_EVENT_NAME: usize = 128;
/// The largest number of open questions of one run.
pub(super) const MAX_QUESTIONS: usize = 64;

impl Hub {
    /// Sends an event of an agent to all connections, and keeps it for those that reconnect.
    /// Returns the event's id, a new one unless the agent passes its own (the end of a model's call
    /// has the id of its start).
    ///
    /// # Errors
    /// [`AppError`].
    pub fn emit(
        &mut self,
        run: RunId,
        kind: EventKind,
        id: Option<&str>,
        now: Now,
    ) -> Result<Str, AppError> {
        let kept = kind.kept();
        let name = kind.tag();
        if kept.replay == Replay::Never || name.len() > MAX_EVENT_NAME {
            return Err(AppError::Reserved(Str::from(name)));
        }
        let session_id = self.run_mut(run)?.0.clone();
        let id = match id {
            Some(id) => Str::from(id),
            None => event_id(self.ids.next_bits()).as_str().into(),
        };
        let is_traced = kept.is_traced;
        let is_stored = self.config.store_events && kept.outlives_its_host;
        // The prompt itself is stored already.
        let is_prompt = matches!(kind, EventKind::UserInput(_));
        let event = StreamEvent::new(kind, id.clone(), now.unix, session_id.clone());
        let entry = Entry::encode(&event)?;
        let (size, max) = (entry.text().len(), self.config.max_output_bytes);
        if size > max {
            return Err(Refused::TooLarge { size, max }.into());
        }
        let text = entry.text().clone();
        let stored = is_stored.then(|| entry.clone());
        self.push(&session_id, entry);
        self.evict_if_idle(&session_id, now.instant);
        let (limits, max) = (self.config.log, self.config.max_trace_bytes);
        let (_, state) = self.run_mut(run)?;
        if is_traced {
            state.push_trace(text, max);
        }
        if let Some(entry) = stored {
            state.kept_bytes = state.kept_bytes.saturating_add(entry.size());
            state.kept += 1;
            // Within the bounds of a session's log: the first ones of a run.
            if state.kept_bytes <= limits.max_bytes && state.kept <= limits.max_events {
                state.unstored.push(entry);
                if !is_prompt {
                    self.store_events(run);
                }
            }
        }
        Ok(id)
    }

    /// Like [`emit`](Self::emit), for events of the hub itself, which are always valid.
    pub(super) fn emit_own(&mut self, run: RunId, kind: EventKind, id: Option<&str>, now: Now) {
        // A run that is over has no listener.
        let _ = self.emit(run, kind, id, now);
    }

    /// Stores the events that have come while others were being stored.
    fn store_events(&mut self, run: RunId) {
        // The end of a run replaces its events.
        let Ok((id, state)) = self.run_mut(run) else {
            return;
        };
        if state.is_storing || state.unstored.is_empty() {
            return;
        }
        state.is_storing = true;
        let (events, id) = (std::mem::take(&mut state.unstored), id.clone());
        self.ask_storage(id, Request::Events(events, run));
    }

    pub(super) fn events_stored(&mut self, run: RunId) {
        if let Ok((_, state)) = self.run_mut(run) {
            state.is_storing = false;
            self.store_events(run);
        }
    }

    /// Asks a question of an agent: `ask_user`, `approval_needed`, `plan_review`,
    /// `ulw_turns_reached`. Returns the question's id, for [`take_answer`](Self::take_answer). It stays
    /// open until it is answered, [withdrawn](Self::withdraw), or the run ends: a human may be thinking.
    ///
    /// # Errors
    /// [`AppError`].
    pub fn ask(&mut self, run: RunId, question: EventKind, now: Now) -> Result<Str, AppError> {
        let answer = question.awaits().ok_or(AppError::NoRoom)?;
        let (_, state) = self.run_mut(run)?;
        if state.requests.len() >= MAX_QUESTIONS {
            return Err(AppError::NoRoom);
        }
        let id = self.emit(run, question, None, now)?;
        let (_, state) = self.run_mut(run)?;
        state.requests.push((id.clone(), answer));
        Ok(id)
    }

    /// Takes the answer to a question, if the user has given it.
    ///
    /// # Errors
    /// [`AppError::Over`].
    pub fn take_answer(&mut self, run: RunId, id: &str) -> Result<Option<Answer>, AppError> {
        let (_, state) = self.run_mut(run)?;
        let mut answers = state.answers.iter();
        let place = answers.position(|(question, _)| question == id);
        Ok(place.map(|place| state.answers.remove(place).1))
    }

    /// Withdraws a question.
    pub fn withdraw(&mut self, run: RunId, id: &str) {
        if let Ok((_, state)) = self.run_mut(run) {
            state.requests.retain(|(open, _)| open != id);
            state.answers.retain(|(question, _)| question != id);
        }
    }

    /// Takes the goal that the user has set last.
    pub fn take_goal(&mut self, run: RunId) -> Option<Str> {
        self.run_mut(run).ok()?.1.goal.take()
    }

    /// Starts a step of an agent, and returns the prompts that came meanwhile. Each becomes a
    /// message of the conversation, and all connections learn that it was read.
    ///
    /// # Errors
    /// [`AppError::Over`].
    pub fn next_inputs(&mut self, run: RunId, now: Now) -> Result<Vec<Prompt>, AppError> {
        self.run_mut(run)?.1.iteration += 1;
        let inputs = self.session_of_run(run)?.1.take_unread();
        self.read(run, &inputs, now);
        Ok(inputs)
    }

    /// Adds prompts that the agent has read.
    pub(super) fn read(&mut self, run: RunId, prompts: &[Prompt], now: Now) {
        for prompt in prompts {
            let Ok((_, state)) = self.run_mut(run) else {
                return;
            };
            state.push_message(user_message(prompt));
            let event = UserInput::interjected(prompt.text.clone(), state.turn, state.iteration);
            let kind = EventKind::UserInput(event);
            self.emit_own(run, kind, Some(prompt.id.as_str()), now);
        }
    }

    /// Changes the mode on the agent's behalf.
    ///
    /// # Errors
    /// [`AppError`].
    pub fn set_mode(&mut self, run: RunId, mode: Mode, now: Now) -> Result<(), AppError> {
        let value = Json::of(mode.name())?;
        self.run_mut(run)?.1.set_mode(value, None);
        let changed = ModeChanged::new(mode, "agent");
        let changed = self.emit(run, EventKind::ModeChanged(changed), None, now);
        changed.map(drop)
    }

    /// Returns the current conversation.
    ///
    /// # Errors
    /// [`AppError::Over`].
    pub fn session(&mut self, run: RunId, now: Now) -> Result<Json, AppError> {
        let (id, state) = self.run_mut(run)?;
        Ok(state.render(id.as_str(), None, now.unix))
    }

    /// Returns whether the user wants the agent to stop; `false` for a run that is over.
    pub fn is_interrupted(&mut self, run: RunId) -> bool {
        self.run_mut(run)
            .is_ok_and(|(_, state)| state.is_interrupted)
    }

    /// Returns whether prompts of the user wait for the agent.
    pub fn has_inputs(&mut self, run: RunId) -> bool {
        let session = self.session_of_run(run);
        session.is_ok_and(|(_, session)| session.unread().next().is_some())
    }
}
