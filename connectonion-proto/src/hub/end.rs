//! The ends of runs, and what is stored and sent then.

use std::iter::once_with;

use rpc_core::encode::encode;
use rpc_core::text::beginning;
use rpc_core::{Json, Text};

use super::conversation::without;
use super::event::{AppError, Now, RunId};
use super::job::{NotStored, Request, Then};
use super::run::Phase;
use super::{Entry, Hub, Prompt};
use crate::chat_items::chat_items;
use crate::console;
use crate::frame::{ErrorFrame, EventKind, Output};
use crate::id::SessionId;
use crate::storage::{Record, RecordStatus, StorageError};

/// The most bytes that [`with_note`] adds.
const MAX_NOTE: usize = 1024;

impl Hub {
    /// Ends a run with a result, which is stored, and then sent as OUTPUT. Returns the prompts that
    /// were acknowledged and not read: if there are any, the run goes on, and the agent must answer
    /// them, too.
    ///
    /// # Errors
    /// [`AppError::Over`].
    pub fn finish(&mut self, id: RunId, result: &str, now: Now) -> Result<Vec<Prompt>, AppError> {
        let unread = self.session_of_run(id)?.1.take_unread();
        let (_, run) = self.run_mut(id)?;
        if !unread.is_empty() {
            // What the user says now is what the user wants.
            run.is_interrupted = false;
            if !result.is_empty() {
                run.add_answer(result);
                let event = EventKind::Assistant(result.into());
                self.emit_own(id, event, None, now);
            }
            self.read(id, &unread, now);
            return Ok(unread);
        }
        if result.is_empty() {
            self.fail(id, "Agent completed without result", now)?;
            return Ok(Vec::new());
        }
        run.add_answer(result);
        run.iteration = run.iteration.max(1);
        let elapsed = now.instant.saturating_duration_since(run.started);
        let duration_ms = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        let (session_id, session, mut record) = self.end_run(id, Some(result), now)?;
        record.duration_ms = Some(duration_ms);
        let output = self.output(&session_id, result, duration_ms, &session);
        let then: Then<_> = Box::new(move |hub, session, not_stored, now| {
            hub.end_stored(session, id, Ok(output), not_stored, now);
        });
        self.ask_storage(session_id, Request::Append(record, Some(then)));
        Ok(Vec::new())
    }

    /// Ends a run with an error: the clients get an ERROR, and may continue at once. Acknowledged
    /// prompts that were not read start another run.
    ///
    /// # Errors
    /// [`AppError::Over`].
    pub fn fail(&mut self, id: RunId, message: &str, now: Now) -> Result<(), AppError> {
        let (session_id, _, record) = self.end_run(id, None, now)?;
        self.line(console::agent_error(message));
        let error = encode(&ErrorFrame::new(message)).unwrap_or_default();
        let then: Then<_> = Box::new(move |hub, session, not_stored, now| {
            hub.end_stored(session, id, Err(error), not_stored, now);
        });
        self.ask_storage(session_id, Request::Append(record, Some(then)));
        Ok(())
    }

    /// Ends the work of an agent, with its result or with an error. Returns the session's id, the
    /// session, and the record to store.
    fn end_run(
        &mut self,
        id: RunId,
        result: Option<&str>,
        now: Now,
    ) -> Result<(SessionId, Json, Box<Record>), AppError> {
        let ttl = self.config.result_ttl;
        let (session_id, session) = self.session_of_run(id)?;
        let session_id = session_id.clone();
        session.prompts.drain(..session.read);
        session.read = 0;
        let run = session.running().ok_or(AppError::Over)?;
        run.phase = Phase::Ending;
        run.requests.clear();
        let whole = run.render(session_id.as_str(), result, now.unix);
        session.copy = Some(whole.clone());
        (session.is_unsaved, session.is_handed) = (false, false);
        let status = match result {
            Some(_) => RecordStatus::Done,
            None => RecordStatus::Failed,
        };
        let mut record = session.record(&session_id, status, now, ttl);
        record.result = result.map(Into::into);
        record.session = Some(whole.clone());
        Ok((session_id, whole, record))
    }

    /// Returns the OUTPUT, within the limit.
    fn output(&self, id: &SessionId, result: &str, duration_ms: u64, session: &Json) -> Text {
        // With room for why it was not stored.
        let max = self.config.max_output_bytes.saturating_sub(MAX_NOTE);
        let output = || Output::new(id, result, duration_ms);
        let items = chat_items(session.get());
        let with = |session: Json| {
            let mut output = output();
            output.session = Some(session);
            output.chat_items = Some(items.clone());
            output
        };
        // Each is made only if the one before it is too long.
        let forms = once_with(|| Some(with(session.clone())))
            .chain(once_with(|| without(session, "trace").map(with)))
            .chain(once_with(|| Some(output())))
            .chain(once_with(|| Some(Output::new(id, "", duration_ms))));
        let mut texts = forms.flatten().filter_map(|it| encode(&it).ok());
        texts.find(|text| text.len() <= max).unwrap_or_default()
    }

    /// Handles the end of a run that was stored, or not: tells the session's sockets.
    fn end_stored(
        &mut self,
        id: &SessionId,
        run: RunId,
        closing: Result<Text, Text>,
        not_stored: NotStored,
        now: Now,
    ) {
        // A run that was dropped meanwhile has reported it.
        if self.runs.remove(&run).is_none() {
            return;
        }
        let has_failed = closing.is_err();
        let frame = match (closing, &not_stored) {
            (Ok(output), Some((error, _))) => with_note(&output, error),
            (Ok(frame) | Err(frame), _) => frame,
        };
        self.push(id, Entry::closing(frame.clone()));
        let Some(session) = self.sessions.get_mut(id.as_str()) else {
            return;
        };
        session.failure = has_failed.then(|| (session.log.end(), frame));
        session.run = None;
        session.unstored = None;
        session.is_only_here = false;
        if let Some((error, record)) = not_stored {
            let message = format!("a result was not stored: {error}");
            self.line(console::agent_error(&message));
            self.keep_unstored(id, &error, record, now);
        }
        self.evict_if_idle(id, now.instant);
        self.next_prompt(id, now);
        self.free_unneeded(id);
        self.feed_starved(now);
    }
}

/// Adds why a result was not stored to its OUTPUT: without it the answer looks stored.
fn with_note(output: &Text, error: &StorageError) -> Text {
    let words = error.to_string();
    let encoded = encode(beginning(&words, MAX_NOTE / 8));
    let parts = output.as_str().strip_suffix('}').zip(encoded.ok());
    parts.map_or_else(
        || output.clone(),
        |(start, words)| format!("{start},\"not_stored\":{}}}", words.as_str()).into(),
    )
}
