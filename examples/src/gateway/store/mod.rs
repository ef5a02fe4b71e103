//! [`Store`]: what the gateway remembers beyond its end. [`EmbeddedStore`] keeps it in one file or
//! in memory, [`Keeper`] keeps the file system off the async workers.

mod backlog;
mod embedded;
mod engine;
mod error;
mod keeper;
mod row;
#[cfg(test)]
pub(crate) mod scratch;
mod tables;
#[cfg(test)]
mod tests;

use std::fmt;

use super::memory::{Fact, Turn};
use super::usage::UsageEntry;

pub use embedded::{EmbeddedStore, FILE_NAME, empty_file, probe};
pub use error::StoreError;
pub use keeper::Keeper;

rpc_core::config! {
    /// How much is kept. What is older is forgotten first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct StoreLimits {
        /// Most sessions; the one that was silent longest goes with its turns, facts and the tokens
        /// that it has used. Default 10,000.
        pub sessions: u64 = 10_000 => with_sessions,
        /// Most turns of a session. Default 200.
        pub turns: u64 = 200 => with_turns,
        /// Most bytes of the turns of a session, of which the last is kept in any case. Default 4 MiB.
        pub session_bytes: u64 = 4 * 1024 * 1024 => with_session_bytes,
        /// Most bytes of the turns of all sessions; beyond them sessions go as if there were too many.
        /// Default 1 GiB.
        pub total_bytes: u64 = 1024 * 1024 * 1024 => with_total_bytes,
        /// Most bytes of one question and of one answer; the rest is cut off. Default 256 KiB.
        pub text_bytes: usize = 256 * 1024 => with_text_bytes,
        /// Most facts of a session. Default 100.
        pub facts: usize = 100 => with_facts,
        /// Most entries of the log of usage. Default 100,000.
        pub usage: u64 = 100_000 => with_usage,
        /// Most days whose tokens are known. Default 400.
        pub days: u64 = 400 => with_days,
    }
}

/// What one run of a session leaves behind. It is written as a whole or not at all.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Commit {
    /// The key of the session.
    pub session: String,
    /// The agent, to whom the facts were told. If this and the session are empty, the usage counts
    /// for its day alone.
    pub agent: String,
    /// The time, in seconds since 1970.
    pub at: u64,
    /// The turn, unless there was no answer.
    pub turn: Option<Turn>,
    /// What was learnt of the user.
    pub facts: Vec<Fact>,
    /// What was used.
    pub usage: Vec<UsageEntry>,
}

impl Commit {
    /// A sign of life of a session, and nothing else yet.
    pub fn new(session: impl Into<String>, agent: impl Into<String>, at: u64) -> Self {
        Self {
            session: session.into(),
            agent: agent.into(),
            at,
            ..Self::default()
        }
    }

    /// Sets [`turn`](Self::turn).
    #[must_use]
    pub fn with_turn(mut self, turn: Option<Turn>) -> Self {
        self.turn = turn;
        self
    }

    /// Sets [`facts`](Self::facts).
    #[must_use]
    pub fn with_facts(mut self, facts: Vec<Fact>) -> Self {
        self.facts = facts;
        self
    }

    /// Adds an entry to [`usage`](Self::usage).
    #[must_use]
    pub fn with_usage(mut self, entry: UsageEntry) -> Self {
        self.usage.push(entry);
        self
    }
}

/// A session that is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its key.
    pub session: String,
    /// When it began, in seconds since 1970.
    pub created: u64,
    /// When it was last heard of, in seconds since 1970.
    pub active: u64,
    /// How many turns it had. Not all of them need still be there.
    pub turns: u64,
    /// How many tokens it used.
    pub tokens: u64,
}

/// What is known of a session with one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Recalled {
    /// The last turns, oldest first.
    pub turns: Vec<Turn>,
    /// The facts, oldest first.
    pub facts: Vec<Fact>,
}

/// The tokens that were used, for budgets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Totals {
    /// Of each session, by its key.
    pub sessions: Vec<(String, u64)>,
    /// Of each day on which any were, oldest first. Days are counted from the first of 1970, in
    /// UTC: seconds divided by 86,400.
    pub days: Vec<(u64, u64)>,
}

/// A place for sessions and usage. Every method blocks until it is done, and may be called by many
/// threads at once. After `Ok` of a writing method its effect survives the end of the process.
///
/// After a [`StoreError`] of a writing method nothing of it was written and it may be repeated. Only
/// after [`StoreError::Io`] it is not sure: the disk may have failed after the last byte.
pub trait Store: Send + Sync + fmt::Debug {
    /// Writes runs, in their order, all of them or none.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be written.
    fn commit(&self, commits: &[Commit]) -> Result<(), StoreError>;

    /// The last turns of a session, so many at most, and its facts. Empty if it is not known.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    fn recall(&self, session: &str, agent: &str, turns: usize) -> Result<Recalled, StoreError>;

    /// The sessions that were heard of last, newest first, so many at most.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    fn sessions(&self, max: usize) -> Result<Vec<SessionInfo>, StoreError>;

    /// How many sessions were heard of at this second, in seconds since 1970, or later.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be counted.
    fn session_count(&self, since: u64) -> Result<u64, StoreError>;

    /// The last entries of the log of usage, newest first, so many at most.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    fn usage(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError>;

    /// The tokens that were used.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    fn totals(&self) -> Result<Totals, StoreError>;

    /// Forgets the turns of a session. Its facts stay known and its tokens used. Returns whether it
    /// was known.
    ///
    /// # Errors
    /// [`StoreError`] if that cannot be written.
    fn forget(&self, session: &str) -> Result<bool, StoreError>;
}
