//! The registry's methods for runs: inputs, events, questions and answers, the end.

use rpc_core::Text;
use rpc_core::{Instant, Str};

use super::event::{Accepted, AgentError, InputError, RunOver};
use super::prompt::Prompt;
use super::run::{AnswerError, Finished, Run, RunId};
use super::{ConnId, SessionRegistry};
use crate::id::SessionId;
use crate::replay::Entry;

impl SessionRegistry {
    /// Handles a prompt that is stored: it starts a run, or waits for the running agent. ConnectOnion
    /// specification, *INPUT*.
    ///
    /// # Errors
    /// [`InputError`]; nothing changed.
    pub(crate) fn input_to(
        &mut self,
        id: &SessionId,
        input: Prompt,
        now: Instant,
    ) -> Result<Accepted, InputError> {
        let session = self.sessions.get_mut(id.as_str());
        let session = session.ok_or(InputError::NotConnected)?;
        if input.text.is_empty() {
            return Err(InputError::NoPrompt);
        }
        let accepted = if let Some((run, state)) = &mut session.run {
            state.push_input(input).map_err(InputError::Running)?;
            Accepted::Queued(*run)
        } else {
            if self.runs.len() >= self.config.max_running {
                return Err(InputError::TooManyRuns);
            }
            let run = RunId(self.next_run);
            self.next_run += 1;
            self.runs.insert(run, id.clone());
            session.run = Some((run, Box::new(Run::new(self.config.run))));
            session.used = true;
            session.failure = None;
            if !std::mem::take(&mut session.begins_again) {
                session.log.begin();
            }
            Accepted::Started(run)
        };
        self.rest(id, now);
        Ok(accepted)
    }

    /// Handles the answer to a question of the agent, and returns the run and the question's id.
    /// Only the position of the question is kept here: pass the answer to the agent. An answer
    /// without a `request_id`, as old clients send it, is for the only open question of its kind.
    ///
    /// # Errors
    /// [`AgentError::NotConnected`], [`AgentError::Answer`]; nothing changed.
    pub(crate) fn answer(
        &mut self,
        conn: ConnId,
        answer: &str,
        request_id: Option<&str>,
    ) -> Result<(RunId, Str), AgentError> {
        let run = self.run_at(conn)?;
        let (run, state) = run.ok_or(AnswerError::Stale)?;
        let request_id = state.answer(answer, request_id)?;
        Ok((*run, request_id))
    }

    /// Asks the agent to stop after its current step.
    ///
    /// # Errors
    /// [`AgentError::NotConnected`], [`AgentError::Idle`].
    pub(crate) fn interrupt(&mut self, conn: ConnId) -> Result<RunId, AgentError> {
        let run = self.run_at(conn)?;
        let (run, state) = run.ok_or(AgentError::Idle)?;
        state.interrupt();
        Ok(*run)
    }

    /// Returns a run, to take inputs, ask questions and check for an interrupt.
    ///
    /// # Errors
    /// [`RunOver`].
    pub(crate) fn run_mut(&mut self, run: RunId) -> Result<&mut Run, RunOver> {
        let id = self.runs.get(&run).ok_or(RunOver)?;
        let session = self.sessions.get_mut(id.as_str()).ok_or(RunOver)?;
        let state = session.run.as_mut().filter(|(running, _)| *running == run);
        state.map(|(_, state)| &mut **state).ok_or(RunOver)
    }

    /// Returns the session of a run.
    pub(crate) fn session_of_run(&self, run: RunId) -> Option<&SessionId> {
        self.runs.get(&run)
    }

    /// Adds an event of the agent, for every socket of the session, and for those that reconnect
    /// during the run.
    ///
    /// # Errors
    /// [`RunOver`].
    pub(crate) fn event(&mut self, run: RunId, entry: Entry, now: Instant) -> Result<(), RunOver> {
        let id = self.runs.get(&run).cloned().ok_or(RunOver)?;
        self.push(&id, entry);
        self.rest(&id, now);
        Ok(())
    }

    /// Ends a run with its OUTPUT, if no input waits. Otherwise the agent must continue with the
    /// returned inputs, and the OUTPUT is dropped. Store the result before: OUTPUT is a promise.
    ///
    /// # Errors
    /// [`RunOver`].
    pub(crate) fn finish(
        &mut self,
        run: RunId,
        output: Text,
        now: Instant,
    ) -> Result<Finished, RunOver> {
        let finish = self.run_mut(run)?.finish();
        if finish == Finished::Done {
            self.end_run(run, output, now);
        }
        Ok(finish)
    }

    /// Ends a run with an ERROR. The session can be used again at once. Returns the acknowledged,
    /// unread inputs: start a run with them, or report them to the client.
    ///
    /// The ERROR goes to the session's sockets. If there is none, the next one gets it with
    /// [`Joined::failure`](super::Joined::failure).
    ///
    /// # Errors
    /// [`RunOver`].
    pub(crate) fn fail(
        &mut self,
        run: RunId,
        error: Text,
        now: Instant,
    ) -> Result<Vec<Prompt>, RunOver> {
        let unread = self.run_mut(run)?.take_inputs();
        if let Some(id) = self.end_run(run, error.clone(), now)
            && let Some(session) = self.sessions.get_mut(id.as_str())
        {
            session.failure = Some((session.log.end(), error));
        }
        Ok(unread)
    }

    fn end_run(&mut self, run: RunId, closing: Text, now: Instant) -> Option<SessionId> {
        let id = self.runs.remove(&run)?;
        self.push(&id, Entry::closing(closing));
        if let Some(session) = self.sessions.get_mut(id.as_str()) {
            session.run = None;
        }
        self.rest(&id, now);
        self.tidy(&id);
        Some(id)
    }

    /// Adds a frame for all sockets of a session.
    pub(super) fn push(&mut self, id: &SessionId, entry: Entry) {
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return;
        };
        self.log_bytes -= session.log.bytes();
        session.log.push(entry);
        let over = (self.log_bytes + session.log.bytes()).saturating_sub(self.config.max_log_bytes);
        if over > 0 {
            let keep = session.log.bytes().saturating_sub(over);
            session.log.shrink_to(keep);
        }
        self.log_bytes += session.log.bytes();
        for conn in &session.sockets {
            if let Some(entry) = self.connections.get_mut(conn)
                && !entry.is_ready
            {
                entry.is_ready = true;
                self.ready.push_back(*conn);
            }
        }
    }

    /// Returns the run in the session of a socket.
    fn run_at(&mut self, conn: ConnId) -> Result<Option<&mut (RunId, Box<Run>)>, AgentError> {
        let entry = self
            .connections
            .get(&conn)
            .ok_or(AgentError::NotConnected)?;
        let session = self.sessions.get_mut(entry.session.as_str());
        let session = session.ok_or(AgentError::NotConnected)?;
        Ok(session.run.as_mut())
    }
}
