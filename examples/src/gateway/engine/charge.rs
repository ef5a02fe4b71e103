//! [`Charge`]: the tokens and the turn of one run, counted and remembered however it ends.

use std::mem::take;

use exoclaw_proto::budget::{
    BudgetError, Date, Ledger, Meter, Reservation, SessionTokens, Snapshot,
};
use exoclaw_proto::error::RpcError;
use exoclaw_proto::frame::Usage;
use exoclaw_proto::session::SessionKey;

use super::records::{Held, Records};
#[cfg(feature = "nats")]
use super::unavailable;
use super::{Engine, Written};
#[cfg(feature = "nats")]
use crate::gateway::cluster::NotAdmitted;
use crate::gateway::memory::{Mark, Turn, extract};
use crate::gateway::store::{Commit, Totals};
use crate::gateway::usage::{Ending, UsageEntry};

const SECONDS_PER_DAY: u64 = 86_400;

/// Returns the snapshot from which a ledger continues: the tokens of all sessions, of today and of
/// this month.
pub(super) fn snapshot(totals: &Totals, now: u64) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let today = now / SECONDS_PER_DAY;
    let this_month = |day| Date::from_day(day).same_month(Date::from_day(today));
    snapshot.day = today;
    for (day, tokens) in &totals.days {
        if *day == today {
            snapshot.daily_used = snapshot.daily_used.saturating_add(*tokens);
        }
        if this_month(*day) {
            snapshot.monthly_used = snapshot.monthly_used.saturating_add(*tokens);
        }
    }
    let sessions = totals.sessions.iter().filter_map(|(key, used)| {
        let key = SessionKey::parse(key).ok()?;
        Some(SessionTokens::new(key, *used, now))
    });
    snapshot.sessions = sessions.collect();
    snapshot
}

/// Admits a run, if the budgets have room for it.
///
/// When the limit of sessions is reached, the least recently used ones are forgotten, as in the
/// store; otherwise a stranger with many names could lock out new sessions.
fn reserve(
    ledger: &mut Ledger,
    key: &SessionKey,
    estimate: u64,
    now: u64,
) -> Result<Reservation, BudgetError> {
    match ledger.reserve(key, estimate, now) {
        Err(BudgetError::TooManySessions { max }) => {
            forget_oldest(ledger, max / 10 + 1);
            ledger.reserve(key, estimate, now)
        }
        outcome => outcome,
    }
}

fn forget_oldest(ledger: &mut Ledger, count: usize) {
    let idle = ledger.sessions().filter(|it| it.open == 0);
    let mut idle: Vec<_> = idle.map(|it| (it.last_used, it.session.clone())).collect();
    if count < idle.len() {
        idle.select_nth_unstable(count);
        idle.truncate(count);
    }
    for (_, key) in idle {
        ledger.forget(&key);
    }
}

impl Engine {
    /// Admits a run, if the budgets have room for it.
    #[allow(clippy::unused_async, reason = "without feature `nats` nothing waits")]
    pub(super) async fn reserve(
        &self,
        key: &SessionKey,
        turn: &Held,
        estimate: u64,
    ) -> Result<Reservation, RpcError> {
        #[cfg(feature = "nats")]
        if let (Records::Shared(cluster), Some(turn)) = (&*self.store, &turn.shared) {
            let admitted = cluster.reserve(key, turn, estimate).await;
            return admitted.map_err(|error| match error {
                NotAdmitted::Exceeded(exceeded) => RpcError::new(exceeded.to_string()),
                NotAdmitted::Store(error) => unavailable(&error),
            });
        }
        let _ = turn;
        let reserved = reserve(&mut self.ledger(), key, estimate, self.now());
        reserved.map_err(|error| RpcError::new(error.to_string()))
    }

    /// Adds a turn to a commit, and what the question says about the user.
    pub(super) fn remember(&self, commit: Commit, turn: Option<Turn>) -> Commit {
        let facts = match &turn {
            Some(turn) if self.memory.semantic_enabled => extract(&turn.user, turn.at),
            _ => Vec::new(),
        };
        commit.with_turn(turn).with_facts(facts)
    }

    /// Settles a run with the budgets. Returns the number by which nodes wait until it is written.
    fn settle(&self, mut reservation: Reservation, tokens: u64) -> Option<u64> {
        match &*self.store {
            Records::Own(_) => {
                let mut ledger = self.ledger();
                ledger.record(&mut reservation, tokens);
                ledger.settle(reservation);
                None
            }
            #[cfg(feature = "nats")]
            Records::Shared(cluster) => Some(cluster.settle(reservation, tokens)),
        }
    }
}

/// One call of the model.
#[derive(Debug)]
struct Call {
    meter: Meter,
    prompt_bytes: usize,
    reported: Option<Usage>,
    /// Whether the provider's last report covers everything.
    exact: bool,
}

impl Call {
    /// Returns its usage: what was reported, and an estimate of the rest.
    fn usage(self) -> Usage {
        let guess = (self.prompt_bytes as u64).div_ceil(4);
        let input = self.reported.map_or(guess, |usage| usage.input_tokens);
        let tokens = self.meter.settle();
        Usage::new(input.min(tokens), tokens.saturating_sub(input))
    }
}

/// An admitted run. If it is dropped before [`close`](Self::close), because its client has left,
/// the tokens used so far are still counted, and the question and what was said so far are stored. The
/// session's turn does not end before that, because the next message needs them.
pub(super) struct Charge<'e> {
    engine: &'e Engine,
    key: SessionKey,
    reservation: Option<Reservation>,
    turn: Option<Held>,
    question: String,
    /// The text of the answer so far.
    said: String,
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
        question: &str,
        reservation: Reservation,
    ) -> Self {
        Self {
            engine,
            key: key.clone(),
            reservation: Some(reservation),
            turn: Some(turn),
            question: question.to_owned(),
            said: String::new(),
            call: None,
            used: Usage::default(),
            estimated: false,
        }
    }

    /// Records a piece of the answer's text.
    pub(super) fn said(&mut self, text: &str) {
        self.streamed(text.len());
        self.said.push_str(text);
    }

    /// Returns whether the answer has a word.
    pub(super) fn has_begun(&self) -> bool {
        !self.said.trim().is_empty()
    }

    /// Records the start of a call.
    pub(super) fn call_started(&mut self, prompt_bytes: usize) {
        self.call_ended();
        let mut meter = Meter::new();
        meter.call_started(prompt_bytes);
        self.call = Some(Call {
            meter,
            prompt_bytes,
            reported: None,
            exact: false,
        });
    }

    /// Records that the model was not reached, or refused: this costs nothing.
    pub(super) fn call_refused(&mut self) {
        self.call = None;
    }

    /// Records bytes that the model has sent beside the text.
    pub(super) fn streamed(&mut self, bytes: usize) {
        if let Some(call) = &mut self.call {
            call.meter.streamed(bytes);
            call.exact = false;
        }
    }

    /// Records the provider's report of this call's usage so far.
    pub(super) fn reported(&mut self, usage: Usage) {
        if let Some(call) = &mut self.call {
            call.meter.reported(usage.input_tokens, usage.output_tokens);
            call.reported = Some(usage);
            call.exact = true;
        }
    }

    /// Ends the call and returns its usage.
    pub(super) fn call_ended(&mut self) -> Usage {
        let Some(call) = self.call.take() else {
            return Usage::default();
        };
        self.estimated |= !call.exact;
        let usage = call.usage();
        self.used.add(usage);
        usage
    }

    /// Ends the run and stores its results in one transaction, even if the future is dropped. An answer
    /// without a mark is whole. Returns whether they were stored, and the turn.
    pub(super) async fn close(
        mut self,
        ending: Ending,
        mark: Option<Mark>,
    ) -> (bool, Option<Held>) {
        let Some(written) = self.end(ending, mark) else {
            return (true, None);
        };
        match written.await {
            Ok((written, turn)) => (written.is_ok(), turn),
            // The runtime ends.
            Err(_) => (false, None),
        }
    }

    /// Starts to store the results. Returns `None` if that was done before.
    fn end(&mut self, ending: Ending, mark: Option<Mark>) -> Option<Written> {
        let reservation = self.reservation.take()?;
        let (question, said) = (take(&mut self.question), take(&mut self.said));
        let at = self.engine.now();
        let turn = match mark {
            Some(mark) => Some(Turn::marked(question, said, at, mark)),
            None => Turn::new(question, said, at),
        };
        let (usage, settled) = self.settle(reservation, ending, at);
        let commit = Commit::new(self.key.as_str(), self.key.agent(), at).with_usage(usage);
        let commit = self.engine.remember(commit, turn);
        Some(self.engine.write(commit, self.turn.take(), settled))
    }

    /// Settles the run with the budgets.
    fn settle(
        &mut self,
        reservation: Reservation,
        ending: Ending,
        at: u64,
    ) -> (UsageEntry, Option<u64>) {
        self.call_ended();
        let settled = self.engine.settle(reservation, self.used.total());
        let engine = self.engine;
        let Usage {
            input_tokens,
            output_tokens,
            ..
        } = self.used;
        let entry = UsageEntry::new(at, self.key.as_str(), self.key.agent())
            .with_model(
                engine.agent.model.provider().as_str(),
                engine.agent.model.model_name(),
            )
            .with_tokens(input_tokens, output_tokens, engine.price)
            .with_ending(ending);
        let entry = if self.estimated {
            entry.estimated()
        } else {
            entry
        };
        (entry, settled)
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
