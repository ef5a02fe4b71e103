//! Prompts: each is stored first, then starts a run or goes to the running agent.

use rpc_core::Json;

use super::bytes::len_of;
use super::event::{ConnId, HubEvent, Now, Reply, RunId};
use super::job::{NotStored, Request, Then, not_available};
use super::removed::moved;
use super::run::{Phase, Run};
use super::{Hub, Prompt};
use crate::console;
use crate::frame::{ErrorFrame, EventKind, FilesReceived, RuntimeInputAck, UserInput};
use crate::id::{EventId, SessionId, runtime_input_id};
use crate::limits::{AUTHENTICATE_FIRST, INPUT_REFUSED, PROMPT_REQUIRED, RUNTIME_INPUT_REJECTED};
use crate::storage::{RecordStatus, StorageError};
use crate::upload::without_reminder;

/// Most prompts of one session that wait to be stored or read.
const MAX_INPUTS: usize = 64;

impl Hub {
    /// Handles a prompt, which is stored first. The connection then gets exactly one reply:
    /// [`Reply::Begun`], [`Reply::Acknowledge`] or [`Reply::Refuse`]. ConnectOnion specification,
    /// *INPUT*. `session` is the conversation, from clients that only send it here.
    pub fn input(&mut self, conn: ConnId, mut prompt: Prompt, session: Option<Json>, now: Now) {
        self.touch(conn, now.instant);
        prompt.conn = Some(conn);
        let (id, session) = match self.check_prompt(&prompt, session, now) {
            Ok(checked) => checked,
            Err(error) => return self.refuse_prompt(prompt, error),
        };
        prompt.id = runtime_input_id(self.ids.next_bits());
        if let Some(entry) = self.sessions.get_mut(id.as_str()) {
            entry.is_handed |= session.is_some();
            entry.copy = session.or(entry.copy.take());
            entry.prompts.push_back(prompt);
        }
        self.next_prompt(&id, now);
    }

    /// Returns the session of a prompt and the conversation to use, if there is room for both.
    fn check_prompt(
        &mut self,
        prompt: &Prompt,
        session: Option<Json>,
        now: Now,
    ) -> Result<(SessionId, Option<Json>), Box<ErrorFrame>> {
        let conn = prompt.conn.unwrap_or(ConnId(0));
        let Some((id, entry)) = self.session_at(conn) else {
            let error = match self.moved.contains(&conn) {
                true => moved(),
                false => ErrorFrame::new(AUTHENTICATE_FIRST),
            };
            return Err(error.into());
        };
        if prompt.text.is_empty() {
            return Err(ErrorFrame::new(PROMPT_REQUIRED).into());
        }
        if entry.prompts.len() - entry.read >= MAX_INPUTS {
            let error = busy(&id, "too many inputs wait for the agent");
            // Without the code, clients would take it for the end of the run that goes on.
            return Err(error.with_code(RUNTIME_INPUT_REJECTED).into());
        }
        let is_new = entry.is_known && entry.copy.is_none() && entry.is_idle();
        let session = session.filter(|_| is_new);
        let (caller, recalled) = (entry.caller, entry.away);
        let brought = prompt.size() + len_of(session.as_ref());
        let size = entry.bytes() + brought + recalled;
        let refused = self.check_size(size);
        let reserve = || self.reserve_bytes(caller, Some(id.as_str()), brought, recalled, now);
        match refused.or_else(reserve) {
            None => Ok((id, session)),
            Some(error) => {
                let error = error.with_code(INPUT_REFUSED);
                Err(error.with_session_id(id.as_str()).into())
            }
        }
    }

    /// Refuses a prompt, whose files are not needed then.
    pub(super) fn refuse_prompt(&mut self, prompt: Prompt, error: impl Into<Box<ErrorFrame>>) {
        if !prompt.files.is_empty() {
            self.events.push_back(HubEvent::Unused(prompt.files));
        }
        if let Some(conn) = prompt.conn {
            self.refuse_input(conn, error);
        }
    }

    /// Reads the conversation again for the prompts that wait, or refuses them.
    fn recall_for_prompts(&mut self, id: &SessionId) {
        self.recall(id, |hub, id, error, now| {
            let Some(session) = hub.sessions.get_mut(id.as_str()) else {
                return;
            };
            session.is_recalled = false;
            let Some(error) = error else {
                return hub.next_prompt(id, now);
            };
            // Nothing was acknowledged meanwhile.
            for prompt in std::mem::take(&mut session.prompts) {
                let error = not_available(&error).with_code(INPUT_REFUSED);
                hub.refuse_prompt(prompt, error);
            }
        });
    }

    /// Stores the next prompt of a session, unless one is being stored.
    pub(super) fn next_prompt(&mut self, id: &SessionId, now: Now) {
        loop {
            let is_full = self.runs.len() >= self.config.max_running;
            let ttl = self.config.result_ttl;
            let Some(session) = self.sessions.get_mut(id.as_str()) else {
                return;
            };
            // A prompt that comes while a run ends begins another one.
            if session.storing.is_some() || session.is_ending() {
                return;
            }
            // A running agent has those that were acknowledged.
            let mut prompts = session.prompts.iter();
            let next = prompts.find(|it| session.run.is_none() || it.conn.is_some());
            let Some(prompt) = next.cloned() else {
                self.save(id, now);
                return self.free_unneeded(id);
            };
            if !session.is_known {
                if !std::mem::replace(&mut session.is_recalled, true) {
                    self.recall_for_prompts(id);
                }
                return;
            }
            if session.run.is_none() && is_full {
                if prompt.conn.is_none() {
                    // It was acknowledged, so it waits.
                    return self.waiting_for_room.push_back(id.clone());
                }
                session.prompts.pop_front();
                self.refuse_prompt(prompt, busy(id, "too many agents are running"));
                continue;
            }
            let mut record = session.record(id, RecordStatus::Running, now, ttl);
            let prompt_id = prompt.id.clone();
            let run = match &session.run {
                Some(run) => {
                    let keeps = |it: &&Prompt| it.id == prompt_id || it.conn.is_none();
                    record.inputs = session.prompts.iter().filter(keeps).cloned().collect();
                    record.session = run.base().filter(|_| run.is_base_unstored).cloned();
                    run
                }
                None => {
                    self.last_number += 1;
                    let run = RunId(self.last_number);
                    self.runs.insert(run, id.clone());
                    let reruns = session.rerun.as_ref().map(|it| it.count);
                    let run = Run::new(run, session.copy.clone(), prompt, reruns, now);
                    record.prompt.clone_from(&run.prompt.text);
                    record.inputs.retain(|it| it.id != prompt_id);
                    record.session = Some(run.render(id.as_str(), None, now.unix));
                    session.run.insert(Box::new(run))
                }
            };
            record.reruns = run.reruns;
            let run = run.id;
            session.storing = Some(prompt_id.clone());
            let then: Then<NotStored> = Box::new(move |hub, id, not_stored, now| {
                let not_stored = not_stored.map(|(error, _)| error);
                hub.prompt_stored(id, (&prompt_id, run), not_stored, now);
            });
            return self.ask_storage(id.clone(), Request::Append(record, Some(then)));
        }
    }

    /// Handles a prompt that was stored, or not: it starts a run, or goes to this one.
    fn prompt_stored(
        &mut self,
        id: &SessionId,
        (prompt, run): (&EventId, RunId),
        not_stored: Option<StorageError>,
        now: Now,
    ) {
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return;
        };
        // Another session of this name may have been removed while the storage was at work.
        let place = session.prompts.iter().position(|it| it.id == *prompt);
        let is_it = session.storing.take_if(|it| *it == *prompt).is_some();
        let Some(place) = place.filter(|_| is_it) else {
            return;
        };
        let asked = session.prompts.get(place).filter(|it| it.conn.is_some());
        let is_unstored = not_stored.is_some();
        let refused = not_stored.zip(asked.cloned());
        let current = session.run.as_ref().map(|it| (it.id, it.phase));
        if refused.is_none() && current.is_none_or(|it| it.0 != run || it.1 == Phase::Ending) {
            // The prompt begins another run.
            return self.next_prompt(id, now);
        }
        match refused {
            Some((error, prompt)) => {
                session.prompts.remove(place);
                if current == Some((run, Phase::Beginning)) {
                    session.run = None;
                    self.runs.remove(&run);
                }
                let frame = ErrorFrame::new(format!("the prompt was not stored: {error}"));
                // Without the code, clients would take it for the end of the run that goes on.
                let frame = frame.with_code(INPUT_REFUSED);
                self.refuse_prompt(prompt, frame.with_retryable(error.is_retryable()));
            }
            // What was acknowledged is stored already, but maybe not as a part of the conversation.
            None => {
                let events = self.announce(id, place, is_unstored, now);
                self.events.extend(events);
            }
        }
        self.next_prompt(id, now);
    }

    /// Announces a stored prompt to the clients. Returns what its agent is told.
    fn announce(
        &mut self,
        id: &SessionId,
        place: usize,
        is_unstored: bool,
        now: Now,
    ) -> Option<HubEvent> {
        let max = self.config.max_trace_bytes;
        let session = self.sessions.get_mut(id.as_str())?;
        let owner = session.owner;
        let rerun = session.rerun.take();
        let run = session.run.as_mut()?;
        let prompt = session.prompts.get_mut(place)?;
        let (conn, prompt) = (prompt.conn.take(), prompt.clone());
        let (run_id, turn) = (run.id, run.turn);
        let is_first = run.phase == Phase::Beginning;
        run.is_base_unstored = is_unstored;
        let words = written(&prompt);
        // Clients may know the event that reports it: then only the trace of this run needs it.
        let prompt_event = rerun.as_ref().and_then(|it| it.prompt.clone());
        let has_prompt_event = prompt_event.is_some();
        let (line, reply) = if is_first {
            run.phase = Phase::Running;
            if let Some(event) = prompt_event {
                run.push_trace(event, max);
            }
            session.used = true;
            session.failure = None;
            // Clients that reconnect read from here, unless the run begins again.
            if rerun.is_none() {
                session.log.begin();
            }
            if is_unstored {
                session.read = 1;
            } else {
                session.prompts.remove(place);
            }
            (console::input(owner, id.as_str(), words), Reply::Begun)
        } else {
            let ack = RuntimeInputAck::new(id.as_str(), prompt.id.as_str());
            let line = console::runtime_input(id.as_str(), words);
            (line, Reply::Acknowledge(ack))
        };
        self.evict_if_idle(id, now.instant);
        self.line(line);
        let (images, files) = (prompt.images.len(), prompt.files.len());
        if images + files > 0 {
            self.line(console::attachments(images, files));
        }
        if let Some(conn) = conn {
            self.reply(conn, reply);
        }
        if is_first && !has_prompt_event {
            let event = UserInput::new(prompt.text.clone(), turn);
            self.emit_own(run_id, EventKind::UserInput(event), None, now);
        }
        if files > 0
            && let Ok(files) = FilesReceived::new(&prompt.files, turn)
        {
            self.emit_own(run_id, EventKind::FilesReceived(files), None, now);
        }
        Some(match is_first {
            false => HubEvent::Told(run_id),
            true => HubEvent::Start {
                run: run_id,
                session_id: id.clone(),
                owner,
                prompt: Prompt { conn, ..prompt },
            },
        })
    }

    /// Starts waiting acknowledged prompts, after an agent has ended.
    pub(super) fn feed_starved(&mut self, now: Now) {
        for _ in 0..self.waiting_for_room.len() {
            if self.runs.len() >= self.config.max_running {
                return;
            }
            if let Some(id) = self.waiting_for_room.pop_front() {
                self.next_prompt(&id, now);
            }
        }
    }
}

/// Returns the ERROR for a prompt that there is no room for now.
fn busy(id: &SessionId, words: &'static str) -> ErrorFrame {
    let frame = ErrorFrame::new(words).with_session_id(id.as_str());
    frame.with_retryable(true)
}

/// Returns what the user has written: a prompt with files has a reminder of their paths at its end.
fn written(prompt: &Prompt) -> &str {
    match prompt.files.is_empty() {
        true => &prompt.text,
        false => without_reminder(&prompt.text),
    }
}
