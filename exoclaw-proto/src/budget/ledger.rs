//! [`Ledger`]: the tokens used in each session, on this day and in this month.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use crate::session::SessionKey;

use super::date::{Date, SECONDS_PER_DAY, day_of};
use super::pools::{Pool, Pools};
use super::snapshot::{SessionTokens, Snapshot};
use super::{BudgetError, Budgets, Scope};

/// The default of [`Ledger::with_max_sessions`].
const MAX_SESSIONS: usize = 100_000;

#[derive(Debug, Default)]
struct Account {
    pool: Pool,
    /// The number of unsettled reservations.
    open: usize,
    last_used: u64,
}

/// Tokens of the budgets reserved for one run, until [`Ledger::settle`] or
/// [`SharedLedger::settle`](super::SharedLedger::settle) releases them.
///
/// A run counts for the day and the month in which it was admitted, even if it ends later.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is not settled stays reserved"]
pub struct Reservation {
    session: SessionKey,
    pub(super) day: u64,
    held: u64,
    /// Whether the session is counted.
    counted: bool,
}

impl Reservation {
    /// Creates the reservation of a run whose session is not counted in the ledger.
    pub(super) const fn uncounted(session: SessionKey, day: u64, held: u64) -> Self {
        Self {
            session,
            day,
            held,
            counted: false,
        }
    }

    /// Replaces what is reserved by what was used, as far as it goes. Returns what is released.
    pub(super) fn use_up(&mut self, tokens: u64) -> u64 {
        let released = tokens.min(self.held);
        self.held -= released;
        released
    }

    /// Returns the session that the run belongs to.
    #[must_use]
    pub const fn session(&self) -> &SessionKey {
        &self.session
    }

    /// Returns the tokens still reserved: the estimate minus the recorded tokens.
    #[must_use]
    pub const fn held(&self) -> u64 {
        self.held
    }
}

/// The use of one session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionUse<'a> {
    /// The session.
    pub session: &'a SessionKey,
    /// Its tokens.
    pub used: u64,
    /// The number of open runs.
    pub open: usize,
    /// When its last run was admitted, in seconds since 1970.
    pub last_used: u64,
}

/// The tokens of all sessions, checked against [`Budgets`]. Exoclaw specification, `chat.send`,
/// steps 5 and 9.
///
/// A run is admitted if the used tokens, the tokens reserved for other runs, and its own estimate
/// together are within every budget; reaching a budget exactly is fine. Its real usage is recorded
/// even beyond a budget, because it was spent.
///
/// Time is an argument, in seconds since 1970 (UTC). A time before the latest one seen counts as
/// the latest day, so setting back the clock does not reset or refill a budget; if the clock was
/// far ahead, its day stays until it is reached, or until a [`Snapshot`] with the right day is
/// restored.
///
/// ```
/// use exoclaw_proto::budget::{Budgets, Ledger};
/// use exoclaw_proto::session::SessionKey;
///
/// let session = SessionKey::new("default", "websocket", "ann", "main");
/// let now = 1_800_000_000; // seconds since 1970
/// let mut ledger = Ledger::new(Budgets::default().with_daily(Some(1_000)));
/// let mut reservation = ledger.reserve(&session, 600, now)?;
/// assert!(ledger.reserve(&session, 600, now).is_err());
/// ledger.record(&mut reservation, 250);
/// ledger.settle(reservation);
/// assert_eq!(ledger.daily_used(), 250);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Ledger {
    budgets: Budgets,
    max_sessions: usize,
    pools: Pools,
    sessions: HashMap<SessionKey, Account>,
}

impl Ledger {
    /// Creates a ledger without used tokens. It counts up to 100,000 sessions.
    #[must_use]
    pub fn new(budgets: Budgets) -> Self {
        Self::restore(budgets, Snapshot::default())
    }

    /// Creates a ledger that continues from a [`snapshot`](Self::snapshot). Sessions beyond the
    /// limit are kept; duplicates are added up.
    #[must_use]
    pub fn restore(budgets: Budgets, snapshot: Snapshot) -> Self {
        let mut sessions: HashMap<SessionKey, Account> = HashMap::new();
        for tokens in snapshot.sessions.into_iter().filter(|it| it.used > 0) {
            let account = sessions.entry(tokens.session).or_default();
            account.pool.take(tokens.used, 0);
            account.last_used = account.last_used.max(tokens.last_used);
        }
        Self {
            budgets,
            max_sessions: MAX_SESSIONS,
            pools: Pools {
                day: day_of(snapshot.day.saturating_mul(SECONDS_PER_DAY)),
                daily: Pool::of(snapshot.daily_used),
                monthly: Pool::of(snapshot.monthly_used),
            },
            sessions,
        }
    }

    /// Sets how many sessions are counted, with or without a budget for them.
    #[must_use]
    pub const fn with_max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// Returns the budgets.
    #[must_use]
    pub const fn budgets(&self) -> Budgets {
        self.budgets
    }

    /// Admits a run and reserves its estimate.
    ///
    /// When the limit of sessions is reached, a new session is refused only if sessions have a
    /// budget; otherwise its run counts only for the day and the month.
    ///
    /// # Errors
    /// [`BudgetError`]. Of several exhausted budgets, the session's comes first, then the daily
    /// one.
    pub fn reserve(
        &mut self,
        session: &SessionKey,
        estimate: u64,
        unix_seconds: u64,
    ) -> Result<Reservation, BudgetError> {
        self.advance(unix_seconds);
        let in_session = self.budgets.session;
        let known = self.sessions.get(session).map(|account| account.pool);
        let pool = known.unwrap_or_default();
        pool.check(Scope::Session, in_session, estimate)?;
        self.pools.check(self.budgets, estimate)?;
        let counted = known.is_some() || self.sessions.len() < self.max_sessions;
        if !counted && in_session.is_some() {
            let max = self.max_sessions;
            return Err(BudgetError::TooManySessions { max });
        }
        if counted {
            let account = self.sessions.entry(session.clone()).or_default();
            account.pool.reserve(estimate);
            account.open += 1;
            account.last_used = account.last_used.max(unix_seconds);
        }
        self.pools.reserve(estimate);
        Ok(Reservation {
            session: session.clone(),
            day: self.pools.day,
            held: estimate,
            counted,
        })
    }

    /// Records tokens that a run has used, from time to time or all at its end. They reduce its
    /// reservation.
    pub fn record(&mut self, reservation: &mut Reservation, tokens: u64) {
        let released = reservation.use_up(tokens);
        self.take(reservation, tokens, released);
    }

    /// Ends a run and releases the rest of its reservation.
    pub fn settle(&mut self, reservation: Reservation) {
        self.take(&reservation, 0, reservation.held);
        if let Entry::Occupied(mut entry) = self.sessions.entry(reservation.session)
            && reservation.counted
        {
            let account = entry.get_mut();
            account.open = account.open.saturating_sub(1);
            if account.open == 0 && account.pool.used == 0 {
                entry.remove();
            }
        }
    }

    fn take(&mut self, reservation: &Reservation, used: u64, released: u64) {
        let account = self.sessions.get_mut(&reservation.session);
        if let Some(account) = account.filter(|_| reservation.counted) {
            account.pool.take(used, released);
        }
        self.pools.take(reservation.day, used, released);
    }

    /// Begins a new day or month if the time is in one. [`reserve`](Self::reserve) does this too.
    pub fn advance(&mut self, unix_seconds: u64) {
        self.pools.advance(day_of(unix_seconds));
    }

    /// Returns the latest day seen; 1970-01-01 if there was none.
    #[must_use]
    pub fn date(&self) -> Date {
        Date::from_day(self.pools.day)
    }

    /// Returns the tokens used on [`date`](Self::date).
    #[must_use]
    pub const fn daily_used(&self) -> u64 {
        self.pools.daily.used
    }

    /// Returns the tokens used in the month of [`date`](Self::date).
    #[must_use]
    pub const fn monthly_used(&self) -> u64 {
        self.pools.monthly.used
    }

    /// Returns the tokens that a session used; 0 if it is not counted.
    #[must_use]
    pub fn session_used(&self, session: &SessionKey) -> u64 {
        self.sessions
            .get(session)
            .map_or(0, |account| account.pool.used)
    }

    /// Returns every counted session, in no particular order.
    pub fn sessions(&self) -> impl ExactSizeIterator<Item = SessionUse<'_>> {
        self.sessions.iter().map(|(session, account)| SessionUse {
            session,
            used: account.pool.used,
            open: account.open,
            last_used: account.last_used,
        })
    }

    /// Resets the tokens of a session, and returns them. Its whole budget is available again,
    /// except for the reservations of open runs. The day and the month keep their tokens. The
    /// ledger never forgets a session by itself.
    pub fn forget(&mut self, session: &SessionKey) -> u64 {
        let Some(account) = self.sessions.get_mut(session) else {
            return 0;
        };
        let used = std::mem::take(&mut account.pool.used);
        if account.open == 0 {
            self.sessions.remove(session);
        }
        used
    }

    /// Returns the tokens used so far, for a store. Reservations are not part of it: for a complete
    /// snapshot, first record what open runs have used.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        let used = self.sessions().filter(|it| it.used > 0);
        let mut sessions: Vec<_> = used
            .map(|it| SessionTokens {
                session: it.session.clone(),
                used: it.used,
                last_used: it.last_used,
            })
            .collect();
        sessions.sort_unstable_by(|a, b| a.session.cmp(&b.session));
        Snapshot {
            day: self.pools.day,
            daily_used: self.pools.daily.used,
            monthly_used: self.pools.monthly.used,
            sessions,
        }
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("budgets", &self.budgets)
            .field("date", &self.date())
            .field("daily", &self.pools.daily)
            .field("monthly", &self.pools.monthly)
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}
