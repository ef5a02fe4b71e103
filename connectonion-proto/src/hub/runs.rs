//! The ends of runs, and what is stored and sent then.

use rpc_core::encode::encode;
use rpc_core::text::beginning;
use rpc_core::{Json, Text};

use super::Hub;
use super::chat::chat_items;
use super::entry::Origin;
use super::event::Now;
use super::job::Task;
use super::run_state::{RunState, without};
use super::unstored::NotStored;
use crate::console::Line;
use crate::frame::{ErrorFrame, EventKind, Output, UserInput};
use crate::id::SessionId;
use crate::limits::NO_RESULT;
use crate::session::{self, Finished, Prompt, RunId, RunOver};
use crate::storage::{Record, RecordStatus, StorageError};

/// The most bytes that [`with_note`] adds.
const MAX_NOTE: usize = 1024;

impl Hub {
    /// Ends a run with a result. If no acknowledged input is unread, the result is stored, then the
    /// OUTPUT sent.
    ///
    /// # Errors
    /// [`RunOver`].
    pub fn finish(&mut self, run: RunId, result: &str, now: Now) -> Result<Finished, RunOver> {
        let state = self.registry.run_mut(run)?;
        let unread = match state.finish() {
            Finished::Done => Vec::new(),
            Finished::More(inputs) => inputs,
        };
        let work = self.working(run)?;
        if result.is_empty() && unread.is_empty() {
            return self.fail(run, NO_RESULT, now).map(|()| Finished::Done);
        }
        if !unread.is_empty() {
            // What the user says now is what the user wants.
            let _ = self.registry.run_mut(run).map(session::Run::take_interrupt);
            let work = self.work_of(run).ok_or(RunOver)?;
            if !result.is_empty() {
                work.say(result);
                let said = EventKind::Assistant(result.into());
                self.emit_own(run, said, None, now);
            }
            self.read(run, &unread, now);
            return Ok(Finished::More(unread));
        }
        work.say(result);
        work.iteration = work.iteration.max(1);
        let elapsed = now.instant.saturating_duration_since(work.started);
        let duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let (session_id, session, mut record) = self.end(run, Some(result), now)?;
        record.duration_ms = Some(duration_ms);
        let closing = self.output(&session_id, result, duration_ms, &session);
        self.ask_storage(session_id, Task::End(run, Ok(closing), record));
        Ok(Finished::Done)
    }

    /// Ends a run, with its result or with an error. Returns its session and the record to store.
    fn end(
        &mut self,
        run: RunId,
        result: Option<&str>,
        now: Now,
    ) -> Result<(SessionId, Json, Box<Record>), RunOver> {
        let ttl = self.config.result_ttl;
        let session_id = self.registry.session_of_run(run).ok_or(RunOver)?.clone();
        let entry = self.entries.get_mut(&session_id).ok_or(RunOver)?;
        let work = entry.work.as_mut().ok_or(RunOver)?;
        work.is_ending = true;
        let session = work.render(session_id.as_str(), result, now.unix);
        entry.copy = Some(session.clone());
        entry.is_unsaved = false;
        let status = match result {
            Some(_) => RecordStatus::Done,
            None => RecordStatus::Failed,
        };
        let mut record = entry.record(&session_id, status, now, ttl);
        record.result = result.map(Into::into);
        record.session = Some(session.clone());
        Ok((session_id, session, Box::new(record)))
    }

    /// Returns the OUTPUT, within the limit.
    fn output(
        &self,
        session_id: &SessionId,
        result: &str,
        duration_ms: u64,
        session: &Json,
    ) -> Text {
        // With room for why it was not stored.
        let max = self.config.max_output_bytes.saturating_sub(MAX_NOTE);
        let output = || Output::new(result, session_id.as_str(), duration_ms);
        let items = chat_items(session.get());
        let with = |session: Json| {
            let mut output = output();
            output.session = Some(session);
            output.chat_items = Some(items.clone());
            output
        };
        let smaller = || without(session, "trace").map(with);
        let forms = [
            Some(with(session.clone())),
            smaller(),
            Some(output()),
            Some(Output::new("", session_id.as_str(), duration_ms)),
        ];
        let mut texts = forms
            .into_iter()
            .flatten()
            .filter_map(|it| encode(&it).ok());
        texts.find(|text| text.len() <= max).unwrap_or_default()
    }

    /// Ends a run with an error: the clients get an ERROR, and may continue at once. Acknowledged
    /// inputs that were not read start another run.
    ///
    /// # Errors
    /// [`RunOver`].
    pub fn fail(&mut self, run: RunId, message: &str, now: Now) -> Result<(), RunOver> {
        let unread = self.registry.run_mut(run)?.take_inputs();
        self.working(run)?;
        self.line(Line::AgentError {
            message: message.to_owned(),
        });
        let session_id = self.registry.session_of_run(run).ok_or(RunOver)?;
        if let Some(entry) = self.entries.get_mut(session_id) {
            for prompt in unread.into_iter().rev() {
                entry.intake.push_front(prompt);
            }
        }
        let (session_id, _, record) = self.end(run, None, now)?;
        let closing = encode(&ErrorFrame::new(message)).unwrap_or_default();
        self.ask_storage(session_id, Task::End(run, Err(closing), record));
        Ok(())
    }

    pub(super) fn end_stored(
        &mut self,
        session_id: &SessionId,
        run: RunId,
        closing: Result<Text, Text>,
        outcome: Result<Option<Record>, NotStored>,
        now: Now,
    ) {
        // A run that was given up meanwhile has told so.
        let ended = match (closing, &outcome) {
            (Err(error), _) => self.registry.fail(run, error, now.instant).map(drop),
            (Ok(output), Ok(_)) => self.registry.finish(run, output, now.instant).map(drop),
            (Ok(output), Err((error, _))) => {
                let output = with_note(&output, error);
                self.registry.finish(run, output, now.instant).map(drop)
            }
        };
        let Some(entry) = self.entries.get_mut(session_id).filter(|_| ended.is_ok()) else {
            return;
        };
        entry.work = None;
        entry.unstored = None;
        entry.origin = Origin::Elsewhere;
        if let Err(not_stored) = outcome {
            self.line(Line::AgentError {
                message: format!("a result was not stored: {}", not_stored.0),
            });
            self.keep_unstored(session_id, not_stored, now);
        }
        self.next_intake(session_id, now);
        self.feed_starved(now);
    }

    /// Returns the conversation of a run.
    pub(super) fn work_of(&mut self, run: RunId) -> Option<&mut RunState> {
        let session_id = self.registry.session_of_run(run)?;
        let work = self.entries.get_mut(session_id)?.work.as_mut()?;
        (work.run == Some(run)).then_some(&mut **work)
    }

    /// Adds inputs that the agent has read.
    pub(super) fn read(&mut self, run: RunId, prompts: &[Prompt], now: Now) {
        for prompt in prompts {
            let Some(work) = self.work_of(run) else {
                return;
            };
            work.push_message(super::run_state::user_message(prompt));
            let said = UserInput::interjected(prompt.text.clone(), work.turn, work.iteration);
            self.emit_own(
                run,
                EventKind::UserInput(said),
                Some(prompt.id.as_str()),
                now,
            );
        }
    }
}

/// Adds why a result was not stored to its OUTPUT: to whoever sees the answer it looks stored.
fn with_note(output: &Text, error: &StorageError) -> Text {
    let words = error.to_string();
    let encoded = encode(beginning(&words, MAX_NOTE / 8));
    let parts = output.as_str().strip_suffix('}').zip(encoded.ok());
    parts.map_or_else(
        || output.clone(),
        |(start, words)| format!("{start},\"not_stored\":{}}}", words.as_str()).into(),
    )
}
