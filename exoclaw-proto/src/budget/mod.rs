//! Token budgets: [`Budgets`] and [`Exceeded`], and the [`Ledger`] that keeps them.
//!
//! ```
//! use exoclaw_proto::budget::{Budgets, Ledger, estimate};
//! use exoclaw_proto::session::SessionKey;
//!
//! let ledger = Ledger::new(Budgets { session: Some(100), ..Budgets::default() });
//! let session = SessionKey::new("default", "websocket", "acc", "main");
//! let now = 1_800_000_000; // seconds since 1970, UTC
//! let mut reservation = ledger.reserve(&session, estimate("How are you?".len()), now)?;
//! reservation.record(85); // as the model reports
//! drop(reservation); // however the run ends
//!
//! let refused = ledger.reserve(&session, 16, now).unwrap_err();
//! assert_eq!(refused.to_string(), "token budget exceeded (session: 85/100)");
//! # Ok::<(), exoclaw_proto::budget::Exceeded>(())
//! ```

mod ledger;
#[doc(hidden)]
pub mod pools;
#[cfg(test)]
mod tests;

use std::fmt;

pub use ledger::{Ledger, Reservation};

use crate::error::BUDGET_EXCEEDED;

rpc_core::config! {
    /// Limits on tokens; `None` means no limit, which is the default.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Budgets {
        /// The limit of one session, from its first message on.
        pub session: Option<u64> = None,
        /// The limit of all sessions together on one day (UTC).
        pub daily: Option<u64> = None,
        /// The limit of all sessions together in one calendar month (UTC).
        pub monthly: Option<u64> = None,
    }
}

/// The scope of a budget. Exhaustive: the protocol's error text has these three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BudgetScope {
    /// One session.
    Session,
    /// One day, all sessions.
    Daily,
    /// One calendar month, all sessions.
    Monthly,
}

impl fmt::Display for BudgetScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Session => "session",
            Self::Daily => "daily",
            Self::Monthly => "monthly",
        })
    }
}

/// The error if a budget has no room for another run. Retry a daily or monthly one on the next day
/// or month (UTC); a session's budget stays exhausted unless the gateway resets it.
///
/// ```
/// use exoclaw_proto::budget::{Exceeded, BudgetScope};
///
/// let text = "token budget exceeded (session: 9500/10000)";
/// let exceeded = Exceeded::parse(text).unwrap();
/// assert_eq!((exceeded.scope, exceeded.used, exceeded.limit), (BudgetScope::Session, 9_500, 10_000));
/// assert_eq!(exceeded.to_string(), text);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("token budget exceeded ({scope}: {used}/{limit})")]
pub struct Exceeded {
    /// The scope of the budget.
    pub scope: BudgetScope,
    /// The tokens used so far, without the estimate of the refused run.
    pub used: u64,
    /// The budget.
    pub limit: u64,
}

impl Exceeded {
    /// Parses the text of an error. Returns `None` for any other error.
    ///
    /// Some gateways name the session, as in `token budget exceeded
    /// (session:default:websocket:acc:main: 39/40)`, or explain the numbers behind them; all forms are accepted.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let inner = text.strip_prefix(BUDGET_EXCEEDED)?;
        let explained = || Self::read(inner.rsplit_once("); ")?.0);
        (inner.strip_suffix(')').and_then(Self::read)).or_else(explained)
    }

    /// Parses what stands in the parentheses.
    fn read(inner: &str) -> Option<Self> {
        // The name of a session may hold anything, so the numbers are looked for from the end.
        let (scope, numbers) = inner.rsplit_once(": ")?;
        let scope = match scope {
            "session" => BudgetScope::Session,
            "daily" => BudgetScope::Daily,
            "monthly" => BudgetScope::Monthly,
            _ if scope.starts_with("session:") => BudgetScope::Session,
            _ => return None,
        };
        let (used, limit) = numbers.split_once('/')?;
        let (used, limit) = (number(used)?, number(limit)?);
        Some(Self { scope, used, limit })
    }
}

/// Parses digits only; `u64::from_str` accepts a sign too.
fn number(text: &str) -> Option<u64> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok())?
}

/// Estimates the tokens of a prompt from the bytes of its contents: a quarter of them, plus one.
#[must_use]
pub const fn estimate(bytes: usize) -> u64 {
    // A `usize` is at most 64 bits wide.
    bytes as u64 / 4 + 1
}
