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
use crate::storage::{Record, RecordStatus, StorageError};
use crate::upload::without_reminder;

impl Hub {
    /// Handles a prompt, which is stored first. The connection then gets exactly one reply:
    /// [`Reply::Begun`], [`Reply::Acknowledge`] or [`Reply::Refuse`]. ConnectOnion specification,
    /// *INPUT*. `session` is the conversation, from clients that only send it here.
    pub fn input(&mut self, conn: ConnId, mut prompt: Prompt, session: Option<Json>, now: Now) {
        let max = self.config.max_intake;
        let Some((session_id, entry)) = self.entry_at(conn) else {
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
        prompt.id = runtime_input_id(self.ids.next_bits());
        prompt.conn = Some(conn);
        if let Some(entry) = self.entries.get_mut(&session_id) {
            entry.copy = session.or(entry.copy.take());
            entry.intake.push_back(prompt);
        }
        self.next_intake(&session_id, now);
    }

    /// Stores the next prompt of a session, unless one is being stored.
    pub(super) fn next_intake(&mut self, session_id: &SessionId, now: Now) {
        loop {
            let is_full = !self.may_begin();
            let Some(entry) = self.entries.get_mut(session_id) else {
                return;
            };
            // A prompt that comes while a run ends begins another one.
            if entry.storing.is_some() || entry.is_ending() {
                return;
            }
            let Some(prompt) = entry.intake.front().cloned() else {
                self.save(session_id, now);
                return self.forget_if_left(session_id);
            };
            let id = prompt.id.clone();
            let run = entry.run();
            if run.is_none() && is_full {
                let Some(conn) = prompt.conn else {
                    // It was acknowledged, so it waits.
                    return self.starved.push_back(session_id.clone());
                };
                entry.intake.pop_front();
                self.refuse_input(conn, *refusal(session_id, InputError::TooManyRuns));
                continue;
            }
            if run.is_none() {
                entry.work = Some(Box::new(RunState::new(
                    entry.copy.clone(),
                    prompt,
                    entry.rerun.as_ref().map(|it| it.count),
                    now,
                )));
                self.beginning += 1;
            }
            let ttl = self.config.result_ttl;
            let mut record = entry.record(session_id, RecordStatus::Running, now, ttl);
            if let Some(work) = &entry.work {
                let waits = |it: &&Prompt| match it.id == id {
                    true => run.is_some(),
                    false => it.conn.is_none(),
                };
                let waiting = entry.intake.iter().filter(waits);
                record.inputs = work.acknowledged.iter().chain(waiting).cloned().collect();
                record.reruns = work.reruns;
                record.session = match run {
                    None => Some(work.render(session_id.as_str(), None, now.unix)),
                    Some(_) => work.base().filter(|_| work.is_base_unstored).cloned(),
                };
            }
            entry.storing = Some(id.clone());
            let task = Task::Prompt(id, run, Box::new(record));
            return self.ask_storage(session_id.clone(), task);
        }
    }

    /// Handles a prompt that was stored, or not: it starts a run, or goes to this one.
    pub(super) fn prompt_stored(
        &mut self,
        session_id: &SessionId,
        (id, run): (EventId, Option<RunId>),
        outcome: Result<Option<Record>, StorageError>,
        now: Now,
    ) {
        let Some(entry) = self.entries.get_mut(session_id) else {
            return;
        };
        // Another session of this name may have been removed while the storage was at work.
        let place = entry.intake.iter().position(|it| it.id == id);
        let is_stored = entry.storing.take_if(|it| *it == id);
        let Some(place) = place.filter(|_| is_stored.is_some()) else {
            return;
        };
        let is_acknowledged = entry.intake.get(place).is_some_and(|it| it.conn.is_none());
        let is_over = run.is_some() && (entry.run() != run || entry.is_ending());
        if is_over && (outcome.is_ok() || is_acknowledged) {
            // The prompt begins another run.
            return self.next_intake(session_id, now);
        }
        let Some(mut prompt) = entry.intake.remove(place) else {
            return;
        };
        let conn = prompt.conn.take();
        let said = entry.rerun.take().and_then(|it| it.said);
        if run.is_none() {
            self.beginning -= 1;
        }
        let is_unstored = outcome.is_err();
        let taken = match outcome {
            Err(error) if !is_acknowledged => Err(not_stored(&error)),
            // What was acknowledged is stored already, but maybe not as a part of the conversation.
            _ => {
                let (now, prompt) = (now.instant, prompt.clone());
                let accepted = self.registry.input_to(session_id, prompt, now);
                accepted.map_err(|error| refusal(session_id, error))
            }
        };
        let entry = self.entries.get_mut(session_id);
        match taken {
            Ok(accepted) => {
                if let Some(work) = entry.and_then(|entry| entry.work.as_mut()) {
                    work.is_base_unstored = is_unstored && (run.is_none() || work.is_base_unstored);
                    if is_unstored || run.is_some() {
                        work.acknowledged.push(prompt.clone());
                    }
                }
                self.take_prompt(session_id, accepted, (prompt, conn), said, now);
            }
            Err(error) => {
                if let (None, Some(entry)) = (run, entry) {
                    entry.work = None;
                }
                // Who was acknowledged has nobody to be refused to; the session is gone.
                if let Some(conn) = conn {
                    self.refuse_input(conn, *error);
                }
            }
        }
        self.next_intake(session_id, now);
    }

    /// Tells of a prompt that was stored, and hands it to its agent. Clients may know the event that
    /// reports it: then only the trace of this run needs it.
    fn take_prompt(
        &mut self,
        session_id: &SessionId,
        accepted: Accepted,
        (prompt, conn): (Prompt, Option<ConnId>),
        said: Option<Text>,
        now: Now,
    ) {
        let max = self.config.max_trace_bytes;
        let Some(entry) = self.entries.get_mut(session_id) else {
            return;
        };
        let (owner, Some(work)) = (entry.owner, &mut entry.work) else {
            return;
        };
        let turn = work.turn;
        let session = session_id.as_str().to_owned();
        let words = written(&prompt).to_owned();
        let (line, reply, run) = match accepted {
            Accepted::Started(run) => {
                work.run = Some(run);
                let line = Line::Input {
                    owner,
                    session,
                    prompt: words,
                };
                (line, Reply::Begun, run)
            }
            Accepted::Queued(run) => {
                let ack = RuntimeInputAck::new(&*session, prompt.id.as_str());
                let line = Line::RuntimeInput {
                    session,
                    prompt: words,
                };
                (line, Reply::Acknowledge(ack), run)
            }
        };
        let is_known = said.is_some();
        if let Some(event) = said {
            work.push_trace(event, max);
        }
        self.line(line);
        let (images, files) = (prompt.images.len(), prompt.files.len());
        if images + files > 0 {
            self.line(Line::Attachments { images, files });
        }
        if let Some(conn) = conn {
            self.reply(conn, reply);
        }
        let is_first = matches!(accepted, Accepted::Started(_));
        if is_first && !is_known {
            let said = UserInput::new(prompt.text.clone(), turn);
            self.emit_own(run, EventKind::UserInput(said), None, now);
        }
        if files > 0
            && let Ok(files) = FilesReceived::new(&prompt.files, turn)
        {
            self.emit_own(run, EventKind::FilesReceived(files), None, now);
        }
        self.events.push_back(match is_first {
            false => HubEvent::Interjected { run },
            true => HubEvent::Start {
                run,
                session_id: session_id.clone(),
                owner,
                prompt: Prompt { conn, ..prompt },
            },
        });
    }

    /// Returns whether another run may begin.
    pub(super) fn may_begin(&self) -> bool {
        self.registry.running() + self.beginning < self.config.registry.max_running
    }

    /// Starts waiting acknowledged prompts, after an agent has ended.
    pub(super) fn feed_starved(&mut self, now: Now) {
        for _ in 0..self.starved.len() {
            if !self.may_begin() {
                return;
            }
            if let Some(session_id) = self.starved.pop_front() {
                self.next_intake(&session_id, now);
            }
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
