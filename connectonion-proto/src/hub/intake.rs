//! Prompts: each is stored first, then starts a run or goes to the running agent.

use rpc_core::{Str, Text};

use super::entry::Intake;
use super::event::{HubEvent, NewInput, Now, Reply};
use super::moved::moved;
use super::run_state::RunState;
use super::{Hub, Job};
use crate::console::Line;
use crate::frame::{
    ErrorFrame, EventKind, FilesReceived, ReceivedFile, RuntimeInputAck, UserInput,
};
use crate::id::{EventId, SessionId, runtime_input_id};
use crate::limits::{AUTHENTICATE_FIRST, INPUT_REFUSED, RUNTIME_INPUT_REJECTED};
use crate::session::{Accepted, ConnId, InputError, RunId, RunRefused, RuntimeInput};
use crate::storage::StorageError;
use crate::upload::without_reminder;

impl Hub {
    /// Handles a prompt, which is stored first. The connection then gets exactly one reply:
    /// [`Reply::Begun`], [`Reply::Acknowledge`] or [`Reply::Refuse`]. ConnectOnion specification,
    /// *INPUT*.
    pub fn input(&mut self, conn: ConnId, mut input: NewInput, now: Now) {
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
        if entry.copy.is_some() || entry.work.is_some() || !entry.intake.is_empty() {
            // The conversation is known.
            input.session = None;
        }
        let (owner, before) = (entry.owner, entry.bytes());
        if let Some(error) = self.hold(owner, before, input.bytes()) {
            let error = error.with_code(INPUT_REFUSED);
            return self.refuse_input(conn, error.with_session_id(session_id.as_str()));
        }
        let Some(entry) = self.entries.get_mut(&session_id) else {
            return;
        };
        let id = runtime_input_id(self.ids.next_bits());
        entry.intake.push_back(Intake {
            conn: Some(conn),
            id,
            input,
            rerun: None,
            said: None,
        });
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
            let Some(intake) = entry.intake.front() else {
                self.save(session_id, now);
                return self.forget_if_left(session_id);
            };
            let id = intake.id.clone();
            match &entry.work {
                // The prompt begins another run when this one has ended.
                Some(work) if work.is_ending => return,
                Some(work) => {
                    let Some(run) = work.run else { return };
                    let mut inputs = work.acknowledged.clone();
                    inputs.push(intake.runtime_input());
                    let (owner, prompt, began) =
                        (entry.owner, work.input.prompt.clone(), work.began);
                    let base = work.base().filter(|_| work.is_base_unstored).cloned();
                    let reruns = work.reruns;
                    let next = entry.intake.pop_front();
                    inputs.extend(entry.waiting());
                    entry.storing = next;
                    let record = self.record(session_id, owner, &prompt, began);
                    let session_id = session_id.clone();
                    let job = Job::Interject {
                        session_id,
                        id,
                        run,
                    };
                    let record = record.with_session(base).with_inputs(inputs);
                    self.store(job, record.with_reruns(reruns));
                    return;
                }
                None if self.registry.running() + self.beginning
                    >= self.config.registry.max_running =>
                {
                    let Some(conn) = intake.conn else {
                        // It was acknowledged, so it waits.
                        return self.starved.push_back(session_id.clone());
                    };
                    entry.intake.pop_front();
                    self.refuse_input(conn, *refusal(session_id, InputError::TooManyRuns));
                }
                None => {
                    let mut input = intake.input.clone();
                    let handed = input.session.take();
                    if entry.copy.is_none() {
                        entry.copy = handed;
                    }
                    let copy = entry.copy.clone();
                    let work = match intake.rerun {
                        None => RunState::new(copy, input, now.unix, now.instant),
                        Some(reruns) => RunState::again(copy, input, reruns, now.unix, now.instant),
                    };
                    let reruns = work.reruns;
                    let session = work.render(session_id.as_str(), None, now.unix);
                    let (owner, prompt) = (entry.owner, work.input.prompt.clone());
                    entry.work = Some(Box::new(work));
                    let next = entry.intake.pop_front();
                    let waiting = entry.waiting();
                    entry.storing = next;
                    self.beginning += 1;
                    let record = self.record(session_id, owner, &prompt, now.unix);
                    let record = record.with_session(Some(session)).with_inputs(waiting);
                    let record = record.with_reruns(reruns);
                    let session_id = session_id.clone();
                    self.store(Job::Begin { session_id, id }, record);
                    return;
                }
            }
        }
    }

    pub(super) fn begin_stored(
        &mut self,
        session_id: &SessionId,
        id: &EventId,
        outcome: Result<(), StorageError>,
        now: Now,
    ) {
        let entry = self.entries.get_mut(session_id);
        let stored = entry.and_then(|entry| Some((entry.take_stored(id)?, entry.work.take()?)));
        // None, if the session was removed meanwhile.
        let Some((intake, mut work)) = stored else {
            return;
        };
        self.beginning -= 1;
        let begun = match outcome {
            Ok(()) => self.begin_run(session_id, intake.runtime_input(), now),
            // What was acknowledged is stored already, but not as a part of the conversation.
            Err(_) if intake.conn.is_none() => {
                work.acknowledged.push(intake.runtime_input());
                work.is_base_unstored = true;
                self.begin_run(session_id, intake.runtime_input(), now)
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
                let input = work.input.clone();
                let turn = work.turn;
                entry.work = Some(work);
                self.line(Line::Input {
                    owner,
                    session: session_id.as_str().to_owned(),
                    prompt: written(&input).to_owned(),
                });
                self.attachments(&input);
                if let Some(conn) = intake.conn {
                    self.reply(conn, Reply::Begun);
                }
                self.emit_prompt(run, intake.said, now);
                self.emit_files(run, &input, turn, now);
                self.events.push_back(HubEvent::Start {
                    run,
                    session_id: session_id.clone(),
                    owner,
                    conn: intake.conn,
                    input,
                });
            }
            Err(error) => self.refuse_intake(intake.conn, *error),
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
                let said = UserInput::new(work.input.prompt.clone(), work.turn);
                self.emit_own(run, EventKind::UserInput(said), None, now);
            }
        }
    }

    /// Starts the run in the registry, for a stored prompt.
    fn begin_run(
        &mut self,
        session_id: &SessionId,
        input: RuntimeInput,
        now: Now,
    ) -> Result<RunId, Box<ErrorFrame>> {
        let accepted = self.registry.input_to(session_id, input, now.instant);
        match accepted {
            Ok(Accepted::Started(run) | Accepted::Queued(run)) => Ok(run),
            Err(error) => Err(refusal(session_id, error)),
        }
    }

    pub(super) fn interjection_stored(
        &mut self,
        session_id: &SessionId,
        (id, run): (&EventId, RunId),
        outcome: Result<(), StorageError>,
        now: Now,
    ) {
        let Some(entry) = self.entries.get_mut(session_id) else {
            return;
        };
        let Some(intake) = entry.take_stored(id) else {
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
            Err(error) if intake.conn.is_some() => Err(not_stored(&error)),
            _ if !still_runs => {
                // The run has ended meanwhile, so the prompt begins another one.
                entry.put_back(intake);
                return self.next_intake(session_id, now);
            }
            _ => {
                let input = intake.runtime_input();
                let accepted = self.registry.input_to(session_id, input, now.instant);
                accepted.map_err(|error| refusal(session_id, error))
            }
        };
        match taken {
            Ok(_) => {
                if let Some(work) = self.work_of(run) {
                    work.acknowledged.push(intake.runtime_input());
                }
                self.line(Line::RuntimeInput {
                    session: session_id.as_str().to_owned(),
                    prompt: written(&intake.input).to_owned(),
                });
                self.attachments(&intake.input);
                if let Some(conn) = intake.conn {
                    let ack = RuntimeInputAck::new(session_id.as_str(), intake.id.as_str());
                    self.reply(conn, Reply::Acknowledge(ack));
                }
                let turn = self.work_of(run).map_or(0, |work| work.turn);
                self.emit_files(run, &intake.input, turn, now);
                self.events.push_back(HubEvent::Interjected { run });
            }
            Err(error) => self.refuse_intake(intake.conn, *error),
        }
        self.next_intake(session_id, now);
    }

    fn attachments(&mut self, input: &NewInput) {
        let (images, files) = (input.images.len(), input.files.len());
        if images + files > 0 {
            self.line(Line::Attachments { images, files });
        }
    }

    /// Tells all connections which files came.
    fn emit_files(&mut self, run: RunId, input: &NewInput, turn: u64, now: Now) {
        if input.files.is_empty() {
            return;
        }
        let files = input.files.iter();
        let files: Vec<ReceivedFile> = files
            .map(|file| ReceivedFile {
                name: file.name.clone(),
                path: Some(file.path.clone()),
            })
            .collect();
        if let Ok(files) = FilesReceived::new(&files, turn) {
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
fn written(input: &NewInput) -> &str {
    match input.files.is_empty() {
        true => &input.prompt,
        false => without_reminder(&input.prompt),
    }
}
