//! [`Snapshot`]: the counts of a [`Ledger`](super::Ledger), as plain data for a store.

use serde::{Deserialize, Serialize};

use crate::session::SessionKey;

/// The counts of a ledger. Absent members are zero.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Snapshot {
    /// The latest day seen, in days since 1970-01-01 (UTC).
    pub day: u64,
    /// Tokens used on that day.
    pub daily_used: u64,
    /// Tokens used in that day's month.
    pub monthly_used: u64,
    /// Sessions that have used tokens, in the order of their keys.
    pub sessions: Vec<SessionTokens>,
}

/// The tokens of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SessionTokens {
    /// The session.
    pub session: SessionKey,
    /// Its tokens.
    pub used: u64,
    /// When its last run was admitted, in seconds since 1970.
    #[serde(default)]
    pub last_used: u64,
}

impl SessionTokens {
    /// Creates the entry of a session.
    #[must_use]
    pub const fn new(session: SessionKey, used: u64, last_used: u64) -> Self {
        Self {
            session,
            used,
            last_used,
        }
    }
}
