//! [`Ledger`]: what was used in each session, on this day and in this month.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;

use crate::session::SessionKey;

use super::date::{Date, SECONDS_PER_DAY, day_of};
use super::snapshot::{SessionTokens, Snapshot};
use super::{BudgetError, Budgets, Exceeded, Scope};

/// Sessions that a ledger counts unless told otherwise.
const MAX_SESSIONS: usize = 100_000;

/// Tokens used, and tokens kept free for runs that go on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pool {
    used: u64,
    reserved: u64,
}

impl Pool {
    fn check(self, scope: Scope, limit: Option<u64>, estimate: u64) -> Result<(), Exceeded> {
        let wanted = self
            .used
            .saturating_add(self.reserved)
            .saturating_add(estimate);
        match limit {
            Some(limit) if wanted > limit => Err(Exceeded {
                scope,
                used: self.used,
                limit,
            }),
            _ => Ok(()),
        }
    }

    const fn reserve(&mut self, tokens: u64) {
        self.reserved = self.reserved.saturating_add(tokens);
    }

    const fn take(&mut self, used: u64, released: u64) {
        self.used = self.used.saturating_add(used);
        self.reserved = self.reserved.saturating_sub(released);
    }
}

#[derive(Debug, Default)]
struct Account {
    pool: Pool,
    /// Reservations that are not settled.
    open: usize,
    last_used: u64,
}

/// Room in the budgets that is kept for one run, until it is given to [`Ledger::settle`].
///
/// A run counts for the day and the month in which it was let in, also if it ends in the next.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "what is not settled stays reserved"]
pub struct Reservation {
    session: SessionKey,
    day: u64,
    held: u64,
    /// Whether the session has an account.
    counted: bool,
}

impl Reservation {
    /// The session that the run belongs to.
    #[must_use]
    pub const fn session(&self) -> &SessionKey {
        &self.session
    }

    /// The tokens that are still kept free: the estimate without what was recorded.
    #[must_use]
    pub const fn held(&self) -> u64 {
        self.held
    }
}

/// What one session used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionUse<'a> {
    /// The session.
    pub session: &'a SessionKey,
    /// Its tokens.
    pub used: u64,
    /// Runs that go on.
    pub open: usize,
    /// When its last run was let in, in seconds since 1970.
    pub last_used: u64,
}

/// The tokens of all sessions, held against [`Budgets`]. Exoclaw specification, `chat.send`, steps 5
/// and 9.
///
/// A run is let in if what was used, what is reserved for other runs, and its own estimate together
/// are within every budget; reaching a budget exactly is fine. What it then really uses is recorded
/// even beyond a budget: it was spent.
///
/// Time is an argument, in seconds since 1970 (UTC). A time before the latest one seen counts as
/// that latest day, so a clock that is set back neither empties a budget nor fills another one; a
/// clock that was far ahead keeps its day until it comes, or until a [`Snapshot`] with the right
/// day is restored.
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
    /// Days since 1970, the latest seen.
    day: u64,
    daily: Pool,
    monthly: Pool,
    sessions: HashMap<SessionKey, Account>,
}

impl Ledger {
    /// A ledger in which nothing was used. It counts up to 100,000 sessions.
    #[must_use]
    pub fn new(budgets: Budgets) -> Self {
        Self::restore(budgets, Snapshot::default())
    }

    /// A ledger that goes on from a [`snapshot`](Self::snapshot). Sessions beyond the limit are
    /// kept too; those that are named twice are added up.
    #[must_use]
    pub fn restore(budgets: Budgets, snapshot: Snapshot) -> Self {
        let pool = |used| Pool { used, reserved: 0 };
        let mut sessions: HashMap<SessionKey, Account> = HashMap::new();
        for tokens in snapshot.sessions.into_iter().filter(|it| it.used > 0) {
            let account = sessions.entry(tokens.session).or_default();
            account.pool.take(tokens.used, 0);
            account.last_used = account.last_used.max(tokens.last_used);
        }
        Self {
            budgets,
            max_sessions: MAX_SESSIONS,
            day: day_of(snapshot.day.saturating_mul(SECONDS_PER_DAY)),
            daily: pool(snapshot.daily_used),
            monthly: pool(snapshot.monthly_used),
            sessions,
        }
    }

    /// Sets how many sessions are counted, with or without a budget for them.
    #[must_use]
    pub const fn with_max_sessions(mut self, sessions: usize) -> Self {
        self.max_sessions = sessions;
        self
    }

    /// The budgets.
    #[must_use]
    pub const fn budgets(&self) -> Budgets {
        self.budgets
    }

    /// Lets a run in, and keeps room for its estimate.
    ///
    /// A session that is new when as many as possible are counted is refused only if sessions have a
    /// budget; else its run counts for the day and the month alone.
    ///
    /// # Errors
    /// [`BudgetError`]. Of several budgets without room, the session's is named first, then the
    /// daily one.
    pub fn reserve(
        &mut self,
        session: &SessionKey,
        estimate: u64,
        unix_seconds: u64,
    ) -> Result<Reservation, BudgetError> {
        self.advance(unix_seconds);
        let Budgets {
            session: in_session,
            daily,
            monthly,
        } = self.budgets;
        let known = self.sessions.get(session).map(|account| account.pool);
        let pool = known.unwrap_or_default();
        pool.check(Scope::Session, in_session, estimate)?;
        self.daily.check(Scope::Daily, daily, estimate)?;
        self.monthly.check(Scope::Monthly, monthly, estimate)?;
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
        self.daily.reserve(estimate);
        self.monthly.reserve(estimate);
        Ok(Reservation {
            session: session.clone(),
            day: self.day,
            held: estimate,
            counted,
        })
    }

    /// Records tokens that a run has used, now and then or all at its end. They are taken from what
    /// is kept free for it.
    pub fn record(&mut self, reservation: &mut Reservation, tokens: u64) {
        let released = tokens.min(reservation.held);
        reservation.held -= released;
        self.take(reservation, tokens, released);
    }

    /// Ends a run: what is still kept free for it is free for others.
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
        if reservation.day == self.day {
            self.daily.take(used, released);
        }
        if Date::from_day(reservation.day).same_month(Date::from_day(self.day)) {
            self.monthly.take(used, released);
        }
    }

    /// Begins a new day or month if this time is in one. [`reserve`](Self::reserve) does so itself.
    pub fn advance(&mut self, unix_seconds: u64) {
        let day = day_of(unix_seconds);
        if day <= self.day {
            return;
        }
        if !Date::from_day(day).same_month(Date::from_day(self.day)) {
            self.monthly = Pool::default();
        }
        self.daily = Pool::default();
        self.day = day;
    }

    /// The latest day seen; 1970-01-01 if there was none.
    #[must_use]
    pub fn date(&self) -> Date {
        Date::from_day(self.day)
    }

    /// The tokens used on [`date`](Self::date).
    #[must_use]
    pub const fn daily_used(&self) -> u64 {
        self.daily.used
    }

    /// The tokens used in the month of [`date`](Self::date).
    #[must_use]
    pub const fn monthly_used(&self) -> u64 {
        self.monthly.used
    }

    /// The tokens that a session used; 0 if it is not counted.
    #[must_use]
    pub fn session_used(&self, session: &SessionKey) -> u64 {
        self.sessions
            .get(session)
            .map_or(0, |account| account.pool.used)
    }

    /// Every session that is counted, in no order.
    pub fn sessions(&self) -> impl ExactSizeIterator<Item = SessionUse<'_>> {
        self.sessions.iter().map(|(session, account)| SessionUse {
            session,
            used: account.pool.used,
            open: account.open,
            last_used: account.last_used,
        })
    }

    /// Forgets what a session used, and returns it. Its budget is whole again but for what runs now
    /// have reserved. The day and the month keep their tokens. Nothing else is ever forgotten.
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

    /// What was used so far, for a store. Reservations are not part of it: record what running
    /// turns have used before taking one that has to be complete.
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
            day: self.day,
            daily_used: self.daily.used,
            monthly_used: self.monthly.used,
            sessions,
        }
    }
}

impl fmt::Debug for Ledger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ledger")
            .field("budgets", &self.budgets)
            .field("date", &self.date())
            .field("daily", &self.daily)
            .field("monthly", &self.monthly)
            .field("sessions", &self.sessions.len())
            .finish_non_exhaustive()
    }
}
