//! What results carry: [`Status`], [`Plugin`], and the results of the future methods.

use serde::{Deserialize, Serialize};

/// The result of `status`. Exoclaw specification, *Methods*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// The gateway's version.
    pub version: String,
    /// How many plugins are loaded.
    pub plugins: u64,
    /// How many sessions there are.
    pub sessions: u64,
}

impl Status {
    /// A status.
    pub fn new(version: impl Into<String>, plugins: u64, sessions: u64) -> Self {
        Self {
            version: version.into(),
            plugins,
            sessions,
        }
    }
}

/// A plugin, in the result of `plugin.list`. Exoclaw specification, *Methods*.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Plugin {
    /// Its name.
    pub name: String,
}

impl Plugin {
    /// A plugin of this name.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }
}

/// A turn of a session, in the result of `chat.history`: what the user said and what was answered.
/// Not in the specification, which only reserves the method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Turn {
    /// What the user said.
    pub user: String,
    /// What the model answered.
    pub assistant: String,
    /// When the turn ended, in seconds since 1970.
    pub at: u64,
}

impl Turn {
    /// A turn.
    pub fn new(user: impl Into<String>, assistant: impl Into<String>, at: u64) -> Self {
        Self {
            user: user.into(),
            assistant: assistant.into(),
            at,
        }
    }
}

/// A session, in the result of `session.list`. Not in the specification, which only reserves the
/// method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Session {
    /// The [key](crate::session::SessionKey).
    pub key: String,
    /// How many turns are remembered.
    pub turns: u64,
    /// When the last turn ended, in seconds since 1970; 0 if there was none.
    pub last_active: u64,
}

impl Session {
    /// A session.
    pub fn new(key: impl Into<String>, turns: u64, last_active: u64) -> Self {
        Self {
            key: key.into(),
            turns,
            last_active,
        }
    }
}

/// The result of `session.clear`. Not in the specification, which only reserves the method.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cleared {
    /// How many turns were forgotten.
    pub turns: u64,
}

impl Cleared {
    /// So many turns.
    #[must_use]
    pub const fn new(turns: u64) -> Self {
        Self { turns }
    }
}

/// One token budget, in the result of `budget.status`. Not in the specification, which only
/// reserves the method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BudgetUse {
    /// Tokens that are used.
    pub used: u64,
    /// Tokens that may be used; absent if there is no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

impl BudgetUse {
    /// So many of so many.
    #[must_use]
    pub const fn new(used: u64, limit: Option<u64>) -> Self {
        Self { used, limit }
    }
}

/// The result of `budget.status`. Not in the specification, which only reserves the method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct BudgetStatus {
    /// The session's budget, if a session was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<BudgetUse>,
    /// The day's budget.
    pub daily: BudgetUse,
    /// The month's budget.
    pub monthly: BudgetUse,
}

impl BudgetStatus {
    /// The budgets of the day and the month, and of a session if one was named.
    #[must_use]
    pub const fn new(session: Option<BudgetUse>, daily: BudgetUse, monthly: BudgetUse) -> Self {
        Self {
            session,
            daily,
            monthly,
        }
    }
}

/// Something that is remembered about a session's user, in the result of `memory.search`. Not in
/// the specification, which only reserves the method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fact {
    /// What is remembered, as a sentence.
    pub text: String,
    /// When it was said, in seconds since 1970.
    pub at: u64,
}

impl Fact {
    /// A fact.
    pub fn new(text: impl Into<String>, at: u64) -> Self {
        Self {
            text: text.into(),
            at,
        }
    }
}
