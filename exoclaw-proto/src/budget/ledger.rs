//! [`Ledger`]: the tokens used in each session, on this day and in this month.

use std::collections::HashMap;
use std::sync::Arc;

use rpc_core::sync::Mutex;

use crate::frame::{BudgetStatus, BudgetUse};
use crate::session::SessionKey;

use super::pools::{Pool, Pools, day_of};
use super::{BudgetScope, Budgets, Exceeded};

/// Most sessions that are counted, unless more have open runs.
const MAX_SESSIONS: usize = 100_000;

/// The tokens of all sessions, checked against [`Budgets`]. Exoclaw specification, `chat.send`,
/// steps 5 and 9. Cheap to clone; clones share the tokens.
///
/// A run is admitted if the used tokens, the tokens reserved for other runs, and its own estimate
/// together are within every budget; reaching a budget exactly is fine. Its real usage is recorded
/// even beyond a budget, because it was spent.
///
/// Time is an argument, in seconds since 1970 (UTC). A time before the latest one seen counts as
/// the latest day, so setting back the clock does not reset or refill a budget.
///
/// A ledger counts 100,000 sessions, and then forgets those that were idle for longest, so that a
/// stranger with many names locks no one out. Their whole budget is available again.
///
/// ```
/// use exoclaw_proto::budget::{Budgets, Ledger};
/// use exoclaw_proto::session::SessionKey;
///
/// let session = SessionKey::new("default", "websocket", "ann", "main");
/// let now = 1_800_000_000; // seconds since 1970
/// let ledger = Ledger::new(Budgets { daily: Some(1_000), ..Budgets::default() });
/// let mut reservation = ledger.reserve(&session, 600, now)?;
/// assert!(ledger.reserve(&session, 600, now).is_err());
/// reservation.record(250);
/// drop(reservation);
/// assert_eq!(ledger.status(None, now).daily.used, 250);
/// # Ok::<(), exoclaw_proto::budget::Exceeded>(())
/// ```
#[derive(Clone)]
pub struct Ledger(pub(super) Arc<Mutex<State>>);

pub(super) struct State {
    budgets: Budgets,
    pub(super) max_sessions: usize,
    pools: Pools,
    pub(super) sessions: HashMap<SessionKey, Account>,
}

#[derive(Debug, Default)]
pub(super) struct Account {
    pool: Pool,
    /// The number of unsettled reservations.
    open: usize,
    last_used: u64,
}

/// Tokens of the budgets reserved for one run. Dropping it ends the run and releases what was not
/// [recorded](Self::record).
///
/// A run counts for the day and the month in which it was admitted, even if it ends later.
#[must_use = "the run ends when its reservation is dropped"]
pub struct Reservation {
    ledger: Ledger,
    session: SessionKey,
    day: u64,
    held: u64,
}

impl Ledger {
    /// Creates a ledger without used tokens.
    #[must_use]
    pub fn new(budgets: Budgets) -> Self {
        Self::restore(budgets, [], [], 0)
    }

    /// Creates a ledger that continues from the tokens that a store has of each day, in days since
    /// 1970-01-01 (UTC), and of each session. Several numbers of one are added up.
    #[must_use]
    pub fn restore(
        budgets: Budgets,
        days: impl IntoIterator<Item = (u64, u64)>,
        sessions: impl IntoIterator<Item = (SessionKey, u64)>,
        unix_seconds: u64,
    ) -> Self {
        let mut pools = Pools::default();
        pools.advance(day_of(unix_seconds));
        for (day, tokens) in days {
            pools.take(day, tokens, 0);
        }
        let mut accounts: HashMap<SessionKey, Account> = HashMap::new();
        for (session, tokens) in sessions.into_iter().filter(|(_, tokens)| *tokens > 0) {
            let account = accounts.entry(session).or_default();
            account.pool.take(tokens, 0);
            account.last_used = unix_seconds;
        }
        Self(Arc::new(Mutex::new(State {
            budgets,
            max_sessions: MAX_SESSIONS,
            pools,
            sessions: accounts,
        })))
    }

    /// Admits a run and reserves its estimate.
    ///
    /// # Errors
    /// [`Exceeded`]; nothing changed. Of several exhausted budgets, the session's comes first, then
    /// the daily one.
    pub fn reserve(
        &self,
        session: &SessionKey,
        estimate: u64,
        unix_seconds: u64,
    ) -> Result<Reservation, Exceeded> {
        let mut state = self.0.lock();
        state.pools.advance(day_of(unix_seconds));
        let pool = state.pool_of(session);
        pool.check(BudgetScope::Session, state.budgets.session, estimate)?;
        state.pools.check(state.budgets, estimate)?;
        if state.sessions.len() >= state.max_sessions && !state.sessions.contains_key(session) {
            state.forget_oldest();
        }
        let account = state.sessions.entry(session.clone()).or_default();
        account.pool.reserve(estimate);
        account.open += 1;
        account.last_used = account.last_used.max(unix_seconds);
        state.pools.reserve(estimate);
        Ok(Reservation {
            ledger: self.clone(),
            session: session.clone(),
            day: state.pools.day,
            held: estimate,
        })
    }

    /// Returns the tokens used in a session, on this day and in this month, with their budgets: the
    /// answer to `budget.status`.
    #[must_use]
    pub fn status(&self, session: Option<&SessionKey>, unix_seconds: u64) -> BudgetStatus {
        let mut state = self.0.lock();
        state.pools.advance(day_of(unix_seconds));
        let of = |pool: Pool, limit| BudgetUse {
            used: pool.used,
            limit,
        };
        let budgets = state.budgets;
        BudgetStatus {
            session: session.map(|key| of(state.pool_of(key), budgets.session)),
            daily: of(state.pools.daily, budgets.daily),
            monthly: of(state.pools.monthly, budgets.monthly),
        }
    }
}

impl State {
    fn pool_of(&self, session: &SessionKey) -> Pool {
        let account = self.sessions.get(session);
        account.map(|account| account.pool).unwrap_or_default()
    }

    /// Forgets a tenth of the sessions, of those without an open run.
    fn forget_oldest(&mut self) {
        let count = self.max_sessions / 10 + 1;
        let idle = self
            .sessions
            .iter()
            .filter(|(_, account)| account.open == 0);
        let mut idle: Vec<_> = idle
            .map(|(session, account)| (account.last_used, session.clone()))
            .collect();
        if count < idle.len() {
            idle.select_nth_unstable(count);
            idle.truncate(count);
        }
        for (_, session) in idle {
            self.sessions.remove(&session);
        }
    }
}

impl Reservation {
    /// Records tokens that the run has used, from time to time or all at its end. They reduce what
    /// is reserved.
    pub fn record(&mut self, tokens: u64) {
        let released = tokens.min(self.held);
        self.held -= released;
        let mut state = self.ledger.0.lock();
        if let Some(account) = state.sessions.get_mut(&self.session) {
            account.pool.take(tokens, released);
        }
        state.pools.take(self.day, tokens, released);
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.ledger.0.lock();
        state.pools.take(self.day, 0, self.held);
        if let Some(account) = state.sessions.get_mut(&self.session) {
            account.pool.take(0, self.held);
            account.open -= 1;
            if account.open == 0 && account.pool.used == 0 {
                state.sessions.remove(&self.session);
            }
        }
    }
}

rpc_core::debug_fields!([] Ledger, this => { sessions: this.0.lock().sessions.len() });

rpc_core::debug_fields!([] Reservation, this => { session: this.session, held: this.held });
