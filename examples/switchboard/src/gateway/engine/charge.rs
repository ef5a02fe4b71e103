//! [`Charge`]: the tokens and the turn of one run, counted and remembered however it ends.

use std::mem::take;
use std::sync::Arc;

use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::Usage;
use exoclaw_proto::session::SessionKey;
use serde_json::{Map, Value};

use super::memory::Lesson;
use super::{Engine, Held, Shared, Written, entry, unavailable};
use crate::gateway::memory::{Mark, Turn};
use crate::gateway::store::{Commit, NotAdmitted, Reservation};
use crate::gateway::usage::{Ending, UsageEntry};

/// The mark of a question whose answer has not ended.
const ENDED: &str = "the gateway ended before the answer was complete";

impl Engine {
    /// Admits a run, if the budgets have room for it.
    pub(super) async fn reserve(
        &self,
        turn: &Held,
        estimate: u64,
    ) -> Result<Reservation, RpcError> {
        let admitted = self.store.reserve(turn.open.tokens(), estimate).await;
        admitted.map_err(|error| match error {
            NotAdmitted::Exceeded(exceeded) if exceeded.used < exceeded.limit => {
                let why = "this message with its context, beside those of runs that are open";
                RpcError::new(format!(
                    "{exceeded}; estimates count too ({estimate} tokens for {why})"
                ))
            }
            NotAdmitted::Exceeded(exceeded) => exceeded.into(),
            NotAdmitted::Store(error) => unavailable(&error),
        })
    }
}

/// One call of the model.
#[derive(Debug)]
pub(super) struct Call {
    prompt_bytes: usize,
    /// The provider's latest report, which replaces earlier ones.
    reported: Option<Usage>,
    /// Bytes streamed since.
    streamed: usize,
}

impl Call {
    pub(super) const fn new(prompt_bytes: usize) -> Self {
        Self {
            prompt_bytes,
            reported: None,
            streamed: 0,
        }
    }

    /// Records bytes that the model has sent.
    pub(super) const fn streamed(&mut self, bytes: usize) {
        self.streamed = self.streamed.saturating_add(bytes);
    }

    /// Records the provider's report of its usage so far.
    pub(super) const fn reported(&mut self, usage: Usage) {
        self.reported = Some(usage);
        self.streamed = 0;
    }

    /// Returns whether a part of its usage is an estimate.
    pub(super) const fn is_estimated(&self) -> bool {
        self.reported.is_none() || self.streamed > 0
    }

    /// Returns its usage: what was reported, and a quarter of the bytes that no report covers.
    pub(super) fn usage(&self) -> Usage {
        let quarter = |bytes: usize| (bytes as u64).div_ceil(4);
        let guess = || Usage::new(quarter(self.prompt_bytes), 0);
        let mut usage = self.reported.unwrap_or_else(guess);
        let rest = quarter(self.streamed);
        usage.output_tokens = usage.output_tokens.saturating_add(rest);
        usage
    }
}

/// An admitted run. If it is dropped before [`close`](Self::close), because its client has left,
/// the tokens used so far are still counted, and the question and what was said so far are stored. The
/// session's turn does not end before that, because the next message needs them.
pub(super) struct Charge<'e> {
    engine: &'e Engine,
    key: SessionKey,
    reservation: Option<Reservation>,
    /// The tokens that it will take, about.
    estimate: u64,
    turn: Shared,
    question: String,
    /// When it was asked.
    asked: u64,
    /// The name of the turn.
    name: String,
    /// The model, if it is another than that of the configuration.
    pub(super) model: Option<String>,
    /// The text of the answer so far.
    reply: String,
    /// What its provider gets back with it.
    pub(super) extra: Map<String, Value>,
    /// The current call.
    call: Option<Call>,
    /// The usage of the earlier calls.
    used: Usage,
    estimated: bool,
}

impl<'e> Charge<'e> {
    pub(super) fn new(
        engine: &'e Engine,
        key: &SessionKey,
        turn: Held,
        (question, name): (&str, &str),
        (reservation, estimate): (Reservation, u64),
    ) -> Self {
        Self {
            engine,
            key: key.clone(),
            reservation: Some(reservation),
            estimate,
            turn: Arc::new(turn.into()),
            question: question.to_owned(),
            asked: engine.now(),
            name: name.to_owned(),
            model: None,
            reply: String::new(),
            extra: Map::new(),
            call: None,
            used: Usage::default(),
            estimated: false,
        }
    }

    /// Stores the question with an estimate of its tokens, and that the gateway has ended if nothing takes its place.
    pub(super) async fn note(&self) {
        let mark = Mark::Failed(ENDED.to_owned());
        let asked = Turn::marked(&*self.question, "", self.asked, mark).with_id(Some(&self.name));
        let mut commit = Commit::new(self.key.as_str(), self.asked).with_turn(Some(asked));
        (commit.goes_on, commit.noted) = (true, self.estimate);
        // Whether it is stored matters only if the gateway ends; the log has it.
        drop(self.engine.write(commit, &self.turn, None).await);
    }

    /// Records a piece of the answer's text.
    pub(super) fn add_text(&mut self, text: &str) {
        self.streamed(text.len());
        self.reply.push_str(text);
    }

    /// Returns the length of the answer's text.
    pub(super) const fn length(&self) -> usize {
        self.reply.len()
    }

    /// Shortens the answer's text: what came since then was none.
    pub(super) fn take_back(&mut self, length: usize) {
        self.reply.truncate(length);
    }

    /// Returns whether the answer has a word.
    pub(super) fn has_begun(&self) -> bool {
        !self.reply.trim().is_empty()
    }

    /// Records the start of a call.
    pub(super) fn call_started(&mut self, prompt_bytes: usize) {
        self.call_ended();
        self.call = Some(Call::new(prompt_bytes));
    }

    /// Records that the model was not reached, or refused: this costs nothing.
    pub(super) fn call_refused(&mut self) {
        self.call = None;
    }

    /// Records bytes that the model has sent beside the text.
    pub(super) fn streamed(&mut self, bytes: usize) {
        if let Some(call) = &mut self.call {
            call.streamed(bytes);
        }
    }

    /// Records the provider's report of this call's usage so far.
    pub(super) fn reported(&mut self, usage: Usage) {
        if let Some(call) = &mut self.call {
            call.reported(usage);
        }
    }

    pub(super) fn call_ended(&mut self) -> Usage {
        let Some(call) = self.call.take() else {
            return Usage::default();
        };
        self.estimated |= call.is_estimated();
        let usage = call.usage();
        self.used.add(usage);
        usage
    }

    /// Ends the run and stores its results, even if the future is dropped. An answer
    /// without a mark is whole. Returns whether they were stored, and the turn.
    pub(super) async fn close(mut self, ending: Ending, mark: Option<Mark>) -> (bool, Shared) {
        let Some(written) = self.end(ending, mark) else {
            return (true, Arc::clone(&self.turn));
        };
        (written.await.is_ok(), Arc::clone(&self.turn))
    }

    /// Starts to store the results. Returns `None` if that was done before.
    fn end(&mut self, ending: Ending, mark: Option<Mark>) -> Option<Written> {
        let reservation = self.reservation.take()?;
        let (question, reply) = (take(&mut self.question), take(&mut self.reply));
        let at = self.engine.now();
        let turn = match mark {
            Some(mark) => Turn::marked(question, reply, at, mark),
            None => Turn::new(&*question, reply, at).unwrap_or_else(|| {
                let empty = Mark::Failed("the answer is empty".to_owned());
                Turn::marked(question, "", at, empty)
            }),
        };
        let usage = self.settle(reservation, ending, at);
        // It takes the place of the question that was stored.
        let turn = Turn {
            asked: Some(self.asked),
            extra: take(&mut self.extra),
            usage: (usage.tokens() > 0).then_some((usage.input_tokens, usage.output_tokens)),
            ..turn.with_id(Some(&self.name))
        };
        let lesson = Lesson::of(&self.key, &turn);
        let commit = Commit::new(self.key.as_str(), at)
            .with_usage(usage)
            .with_turn(Some(turn));
        Some(self.engine.write(commit, &self.turn, lesson))
    }

    /// Settles the run with the budgets.
    fn settle(&mut self, reservation: Reservation, ending: Ending, at: u64) -> UsageEntry {
        self.call_ended();
        reservation.settle(self.used.total());
        let entry = entry(&self.engine.parts.agent.model, &self.key, at, self.used);
        UsageEntry {
            model: self.model.take().unwrap_or(entry.model),
            estimated: self.estimated,
            ending,
            ..entry
        }
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        let (ending, mark) = if std::thread::panicking() {
            let mark = Mark::failed("the gateway has failed", self.has_begun());
            (Ending::Aborted, mark)
        } else {
            (Ending::Cancelled, Mark::Stopped)
        };
        drop(self.end(ending, Some(mark)));
    }
}
