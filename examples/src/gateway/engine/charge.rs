//! [`Charge`]: the tokens of one run, counted however it ends.

use std::sync::Arc;

use exoclaw_proto::Usage;
use exoclaw_proto::budget::{BudgetError, Date, Meter, Reservation, SessionTokens, Snapshot};
use exoclaw_proto::session::SessionKey;

use super::Engine;
use crate::gateway::memory::{Fact, Turn};
use crate::gateway::store::{Commit, StoreError, Totals};
use crate::gateway::usage::{Ending, UsageEntry};

const SECONDS_PER_DAY: u64 = 86_400;

/// What a ledger goes on from: the tokens of all sessions, of today and of this month.
pub(super) fn snapshot(totals: &Totals, now: u64) -> Snapshot {
    let mut snapshot = Snapshot::default();
    let today = now / SECONDS_PER_DAY;
    let month = |day| {
        let date = Date::from_day(day);
        (date.year(), date.month())
    };
    snapshot.day = today;
    for (day, tokens) in &totals.days {
        if *day == today {
            snapshot.daily_used = snapshot.daily_used.saturating_add(*tokens);
        }
        if month(*day) == month(today) {
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

/// A run that was let in. If it is dropped before [`close`](Self::close), because its client has
/// gone, what it has used by then is counted and written down all the same.
pub(super) struct Charge<'e> {
    engine: &'e Engine,
    key: SessionKey,
    reservation: Option<Reservation>,
    meter: Meter,
    /// What the model said of the calls that have ended, and of the one that goes on.
    reported: Usage,
    latest: Usage,
}

impl<'e> Charge<'e> {
    /// Lets a run in, if the budgets have room for it.
    pub(super) fn begin(
        engine: &'e Engine,
        key: &SessionKey,
        estimate: u64,
    ) -> Result<Self, BudgetError> {
        let now = engine.now();
        let reservation = engine.ledger().reserve(key, estimate, now)?;
        Ok(Self {
            engine,
            key: key.clone(),
            reservation: Some(reservation),
            meter: Meter::new(),
            reported: Usage::default(),
            latest: Usage::default(),
        })
    }

    /// The model is asked.
    pub(super) fn call_started(&mut self, prompt_bytes: usize) {
        self.meter.call_started(prompt_bytes);
        self.reported.add(std::mem::take(&mut self.latest));
    }

    /// The model has said more.
    pub(super) fn streamed(&mut self, bytes: usize) {
        self.meter.streamed(bytes);
    }

    /// The provider has said what this call has cost so far.
    pub(super) fn call_cost(&mut self, usage: Usage) {
        self.meter.reported(usage.input_tokens, usage.output_tokens);
        self.latest = usage;
    }

    /// Ends the run and writes down what it leaves behind, in one piece.
    pub(super) async fn close(
        mut self,
        turn: Option<Turn>,
        facts: Vec<Fact>,
        ending: Ending,
    ) -> Result<(), StoreError> {
        let Some(commit) = self.settle(ending) else {
            return Ok(());
        };
        let commit = commit.with_turn(turn).with_facts(facts);
        self.engine.store.commit(commit).await
    }

    /// Takes the tokens out of the budgets. `None` if that was done before.
    fn settle(&mut self, ending: Ending) -> Option<Commit> {
        let mut reservation = self.reservation.take()?;
        let tokens = std::mem::replace(&mut self.meter, Meter::new()).settle();
        {
            let mut ledger = self.engine.ledger();
            ledger.record(&mut reservation, tokens);
            ledger.settle(reservation);
        }
        self.reported.add(std::mem::take(&mut self.latest));
        let (engine, at) = (self.engine, self.engine.now());
        let input = self.reported.input_tokens.min(tokens);
        let entry = UsageEntry::new(at, self.key.as_str(), self.key.agent())
            .with_model(&*engine.agent.provider, &*engine.agent.model)
            .with_tokens(input, tokens - input, engine.price)
            .with_ending(ending);
        let entry = if tokens == self.reported.total() {
            entry
        } else {
            entry.estimated()
        };
        let commit = Commit::new(self.key.as_str(), self.key.agent(), at);
        Some(commit.with_usage(entry))
    }
}

impl Drop for Charge<'_> {
    fn drop(&mut self) {
        let Some(commit) = self.settle(Ending::Cancelled) else {
            return;
        };
        let store = Arc::clone(&self.engine.store);
        let written = async move {
            if let Err(error) = store.commit(commit).await {
                tracing::error!(%error, "the usage of a chat was not written down");
            }
        };
        // Without a runtime the process is at its end.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(written);
        }
    }
}
