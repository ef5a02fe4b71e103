//! Prompts: each is stored first, then starts a run or goes to the running agent.

use rpc_core::{Json, Str, Text};

use super::Hub;
use super::bytes::len_of;
use super::event::{HubEvent, Now, Reply};
use super::job::Task;
use super::moved::moved;
use super::run_state::RunState;
use crate::console::Line;
use crate::frame::{ErrorFrame, EventKind, FilesReceived, RuntimeInputAck, UserInput};
use crate::id::{EventId, SessionId, runtime_input_id};
use crate::limits::{AUTHENTICATE_FIRST, INPUT_REFUSED, RUNTIME_INPUT_REJECTED};
use crate::session::{Accepted, ConnId, InputError, Prompt, RunId, RunRefused};
use crate::storage::{Record, StorageError};
use crate::upload::without_reminder;

impl Hub {
    /// Handles a prompt, which is stored first. The connection then gets exactly one reply:
    /// [`Reply::Begun`], [`Reply::Acknowledge`] or [`Reply::Refuse`]. ConnectOnion specification,
    /// *INPUT*. `session` is the conversation, from clients that only send it here.
    pub fn input(&mut self, conn: ConnId, mut prompt: Prompt, session: Option<Json>, now: Now) {
        let session_id = self.registry.session_of(conn).cloned();
        let max = self.config.max_intake;
        let found = session_id.and_then(|id| Some((self.entries.get_mut(&id)?, id)));
        let Some((entry, session_id)) = found else {
            let error = match self.moved.contains(&conn) {
                true => moved(),
                false => ErrorFrame::new(AUTHENTICATE_FIRST),
            };
            return self.refuse_input(conn, error);
        };
        if entry.intake.len() >= max {
            let error = refusal(&session_id, InputError::Running(RunRefused::Full));
            return self.refuse_input(conn, *error);
        }
        let is_known = entry.copy.is_some() || entry.work.is_some() || !entry.intake.is_empty();
        let session = session.filter(|_| !is_known);
        let (owner, before) = (entry.owner, entry.bytes());
        let size = prompt.size() + len_of(session.as_ref());
        if let Some(error) = self.hold(owner, before, size) {
            let error = error.with_code(INPUT_REFUSED);
            return self.refuse_input(conn, error.with_session_id(session_id.as_str()));
        }
        let Some(entry) = self.entries.get_mut(&session_id) else {
            return;
        };
        if session.is_some() {
            entry.copy = session;
        }
        prompt.id = runtime_input_id(self.ids.next_bits());
        prompt.conn = Some(conn);
        entry.intake.push_back(prompt);
        self.next_intake(&session_id, now);
    }

    /// Stores the next prompt of a session, unless one is being stored.
    pub(super) fn next_intake(&mut self, session_id: &SessionId, now: Now) {
        loop {
            let Some(entry) = self.entries.get_mut(session_id) else {
                return;
            };
            if entry.storing.is_some() {
                return;
            }
            let Some(prompt) = entry.intake.front() else {
                self.save(session_id, now);
                return self.forget_if_left(session_id);
            };
            let id = prompt.id.clone();
            match &entry.work {
                // The prompt begins another run when this one has ended.
                Some(work) if work.is_ending => return,
                Some(work) => {
                    let Some(run) = work.run else { return };
                    let mut inputs = work.acknowledged.clone();
                    inputs.push(prompt.clone());
                    let (owner, text, began) = (entry.owner, work.prompt.text.clone(), work.began);
                    let base = work.base().filter(|_| work.is_base_unstored).cloned();
                    let reruns = work.reruns;
                    let next = entry.intake.pop_front();
                    inputs.extend(entry.waiting());
                    entry.storing = next;
                    let record = self.record(session_id, owner, &text, began);
                    let record = record.with_session(base).with_inputs(inputs);
                    let record = Box::new(record.with_reruns(reruns));
                    let task = Task::Interject(id, run, record);
                    return self.ask_storage(session_id.clone(), task);
                }
                None if self.registry.running() + self.beginning
                    >= self.config.registry.max_running =>
                {
                    let Some(conn) = prompt.conn else {
                        // It was acknowledged, so it waits.
                        return self.starved.push_back(session_id.clone());
                    };
                    entry.intake.pop_front();
                    self.refuse_input(conn, *refusal(session_id, InputError::TooManyRuns));
                }
                None => {
                    let (copy, prompt) = (entry.copy.clone(), prompt.clone());
                    let work = match &entry.rerun {
                        None => RunState::new(copy, prompt, now.unix, now.instant),
                        Some(it) => RunState::again(copy, prompt, it.count, now.unix, now.instant),
                    };
                    let reruns = work.reruns;
                    let session = work.render(session_id.as_str(), None, now.unix);
                    let (owner, text) = (entry.owner, work.prompt.text.clone());
                    entry.work = Some(Box::new(work));
                    let next = entry.intake.pop_front();
                    let waiting = entry.waiting();
                    entry.storing = next;
                    self.beginning += 1;
                    let record = self.record(session_id, owner, &text, now.unix);
                    let record = record.with_session(Some(session)).with_inputs(waiting);
                    let task = Task::Begin(id, Box::new(record.with_reruns(reruns)));
                    return self.ask_storage(session_id.clone(), task);
                }
            }
        }
    }

    pub(super) fn begin_stored(
        &mut self,
        session_id: &SessionId,
        id: &EventId,
        outcome: Result<Option<Record>, StorageError>,
        now: Now,
    ) {
        let entry = self.entries.get_mut(session_id);
        let stored = entry.and_then(|entry| {
            let taken = (entry.take_stored(id)?, entry.work.take()?);
            Some((taken, entry.rerun.take()))
        });
        // None, if the session was removed meanwhile.
        let Some(((prompt, mut work), rerun)) = stored else {
            return;
        };
        self.beginning -= 1;
        let conn = prompt.conn;
        let begun = match outcome {
            Ok(_) => self.begin_run(session_id, prompt, now),
            // What was acknowledged is stored already, but not as a part of the conversation.
            Err(_) if conn.is_none() => {
                work.acknowledged.push(prompt.clone());
                work.is_base_unstored = true;
                self.begin_run(session_id, prompt, now)
            }
            Err(error) => Err(not_stored(&error)),
        };
        match begun {
            Ok(run) => {
                work.run = Some(run);
                let Some(entry) = self.entries.get_mut(session_id) else {
                    return;
                };
                let owner = entry.owner;
                let prompt = work.prompt.clone();
                let turn = work.turn;
                entry.work = Some(work);
                self.line(Line::Input {
                    owner,
                    session: session_id.as_str().to_owned(),
                    prompt: written(&prompt).to_owned(),
                });
                self.attachments(&prompt);
                if let Some(conn) = conn {
                    self.reply(conn, Reply::Begun);
                }
                self.emit_prompt(run, rerun.and_then(|it| it.said), now);
                self.emit_files(run, &prompt, turn, now);
                self.events.push_back(HubEvent::Start {
                    run,
                    session_id: session_id.clone(),
                    owner,
                    conn,
                    prompt,
                });
            }
            Err(error) => self.refuse_intake(conn, *error),
        }
        self.next_intake(session_id, now);
    }

    /// Reports the prompt of a run, unless clients know it: then only the trace of this run needs it.
    fn emit_prompt(&mut self, run: RunId, said: Option<Text>, now: Now) {
        let max = self.config.max_trace_bytes;
        let Some(work) = self.work_of(run) else {
            return;
        };
        match said {
            Some(event) => work.push_trace(event, max),
            None => {
                let said = UserInput::new(work.prompt.text.clone(), work.turn);
                self.emit_own(run, EventKind::UserInput(said), None, now);
            }
        }
    }

    /// Starts the run in the registry, for a stored prompt.
    fn begin_run(
        &mut self,
        session_id: &SessionId,
        prompt: Prompt,
        now: Now,
    ) -> Result<RunId, Box<ErrorFrame>> {
        let accepted = self.registry.input_to(session_id, prompt, now.instant);
        match accepted {
            Ok(Accepted::Started(run) | Accepted::Queued(run)) => Ok(run),
            Err(error) => Err(refusal(session_id, error)),
        }
    }

    pub(super) fn interjection_stored(
        &mut self,
        session_id: &SessionId,
        (id, run): (&EventId, RunId),
        outcome: Result<Option<Record>, StorageError>,
        now: Now,
    ) {
        let Some(entry) = self.entries.get_mut(session_id) else {
            return;
        };
        let Some(mut prompt) = entry.take_stored(id) else {
            return;
        };
        let still_runs = entry.run() == Some(run) && !entry.is_ending();
        if let Some(work) = entry
            .work
            .as_mut()
            .filter(|_| still_runs && outcome.is_ok())
        {
            work.is_base_unstored = false;
        }
        let taken = match outcome {
            // What was acknowledged is stored already.
            Err(error) if prompt.conn.is_some() => Err(not_stored(&error)),
            _ if !still_runs => {
                // The run has ended meanwhile, so the prompt begins another one.
                entry.put_back(prompt);
                return self.next_intake(session_id, now);
            }
            _ => {
                let acknowledged = Prompt {
                    conn: None,
                    ..prompt.clone()
                };
                let accepted = self
                    .registry
                    .input_to(session_id, acknowledged, now.instant);
                accepted.map_err(|error| refusal(session_id, error))
            }
        };
        let conn = prompt.conn.take();
        match taken {
            Ok(_) => {
                if let Some(work) = self.work_of(run) {
                    work.acknowledged.push(prompt.clone());
                }
                self.line(Line::RuntimeInput {
                    session: session_id.as_str().to_owned(),
                    prompt: written(&prompt).to_owned(),
                });
                self.attachments(&prompt);
                if let Some(conn) = conn {
                    let ack = RuntimeInputAck::new(session_id.as_str(), prompt.id.as_str());
                    self.reply(conn, Reply::Acknowledge(ack));
                }
                let turn = self.work_of(run).map_or(0, |work| work.turn);
                self.emit_files(run, &prompt, turn, now);
                self.events.push_back(HubEvent::Interjected { run });
            }
            Err(error) => self.refuse_intake(conn, *error),
        }
        self.next_intake(session_id, now);
    }

    fn attachments(&mut self, prompt: &Prompt) {
        let (images, files) = (prompt.images.len(), prompt.files.len());
        if images + files > 0 {
            self.line(Line::Attachments { images, files });
        }
    }

    /// Tells all connections which files came.
    fn emit_files(&mut self, run: RunId, prompt: &Prompt, turn: u64, now: Now) {
        if prompt.files.is_empty() {
            return;
        }
        if let Ok(files) = FilesReceived::new(&prompt.files, turn) {
            self.emit_own(run, EventKind::FilesReceived(files), None, now);
        }
    }

    /// Starts waiting acknowledged prompts, after an agent has ended.
    pub(super) fn feed_starved(&mut self, now: Now) {
        for _ in 0..self.starved.len() {
            if self.registry.running() + self.beginning >= self.config.registry.max_running {
                return;
            }
            if let Some(session_id) = self.starved.pop_front() {
                self.next_intake(&session_id, now);
            }
        }
    }

    /// A prompt that was acknowledged has nobody to be refused to; its session is gone.
    fn refuse_intake(&mut self, conn: Option<ConnId>, error: ErrorFrame) {
        if let Some(conn) = conn {
            self.refuse_input(conn, error);
        }
    }
}

fn not_stored(error: &StorageError) -> Box<ErrorFrame> {
    let frame = ErrorFrame::new(format!("the prompt was not stored: {error}"));
    // Without the code, clients would take it for the end of the run that goes on.
    let frame = frame.with_code(INPUT_REFUSED);
    Box::new(frame.with_retryable(error.is_retryable()))
}

fn refusal(session_id: &SessionId, error: InputError) -> Box<ErrorFrame> {
    let frame = ErrorFrame::new(Str::from(error.to_string()));
    // Without the code, clients would take it for the end of the run that goes on.
    let frame = match error {
        InputError::Running(RunRefused::Full) => frame.with_code(RUNTIME_INPUT_REJECTED),
        _ => frame,
    };
    Box::new(match error {
        InputError::Running(_) | InputError::TooManyRuns => frame
            .with_session_id(session_id.as_str())
            .with_retryable(error.is_retryable()),
        _ => frame,
    })
}

/// Returns what the user has written: a prompt with files has a reminder of their paths at its end.
fn written(prompt: &Prompt) -> &str {
    match prompt.files.is_empty() {
        true => &prompt.text,
        false => without_reminder(&prompt.text),
    }
}
