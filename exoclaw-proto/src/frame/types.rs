//! The types of results: [`Status`], [`Plugin`], and those of the future methods.

use rpc_core::Str;
use serde::{Deserialize, Serialize};

/// The result of `status`. Exoclaw specification, *Methods*.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Status {
    /// The gateway's version.
    pub version: Str,
    /// The number of loaded plugins.
    pub plugins: u64,
    /// The number of active sessions.
    pub sessions: u64,
}

impl Status {
    /// Creates a status.
    pub fn new(version: impl Into<Str>, plugins: u64, sessions: u64) -> Self {
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
    pub name: Str,
}

impl Plugin {
    /// Creates a plugin with this name.
    pub fn new(name: impl Into<Str>) -> Self {
        Self { name: name.into() }
    }
}

/// A turn of a session, in the result of `chat.history`: the user's message and the answer. Not in
/// the specification, which only reserves the method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "made of all its members")]
pub struct Turn {
    /// The user's message.
    pub user: Str,
    /// The model's answer.
    pub assistant: Str,
    /// When the turn ended, in seconds since 1970.
    pub at: u64,
    /// The outcome of an answer that is not whole, in words, such as `stopped`. `None` if it is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mark: Option<Str>,
}

/// A session, in the result of `session.list`. Not in the specification, which only reserves the
/// method.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "made of all its members")]
pub struct Session {
    /// The [key](crate::session::SessionKey).
    pub key: Str,
    /// The number of remembered turns.
    pub turns: u64,
    /// When it was last used, in seconds since 1970.
    pub last_active: u64,
}

/// The result of `session.clear`. Not in the specification, which only reserves the method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "made of all its members")]
pub struct Cleared {
    /// The number of forgotten turns.
    pub turns: u64,
    /// The number of forgotten [facts](Fact).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub facts: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "for serde")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// One token budget, in the result of `budget.status`. Not in the specification, which only
/// reserves the method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "made of all its members")]
pub struct BudgetUse {
    /// The tokens used.
    pub used: u64,
    /// The limit; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// The result of `budget.status`. Not in the specification, which only reserves the method.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "made of all its members")]
pub struct BudgetStatus {
    /// The session's budget, if a session was named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<BudgetUse>,
    /// The day's budget.
    pub daily: BudgetUse,
    /// The month's budget.
    pub monthly: BudgetUse,
}

/// Something remembered of a session, in the result of `memory.search`: a fact, or what the user said. Not in the
/// specification, which only reserves the method.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::exhaustive_structs, reason = "made of all its members")]
pub struct Fact {
    /// The fact as a sentence, or the user's message.
    pub text: Str,
    /// When the user said it, in seconds since 1970.
    pub at: u64,
    /// What the fact is about, such as `user`. `None` if it is a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Str>,
    /// What it says of the subject, such as `name`. `None` if it is a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation: Option<Str>,
}
