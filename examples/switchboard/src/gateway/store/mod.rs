//! [`Store`]: the gateway's persistent data. [`EmbeddedStore`] keeps it in one file or in memory;
//! [`Keeper`] keeps blocking work off the async workers.

mod backlog;
mod embedded;
mod engine;
mod error;
mod keeper;
mod row;
#[cfg(test)]
#[path = "tests/scratch.rs"]
pub(crate) mod scratch;
mod tables;
#[cfg(test)]
mod tests;

use std::fmt;

use super::memory::Turn;
use super::usage::UsageEntry;

pub use embedded::{EmbeddedStore, FILE_NAME, empty_file, probe};
pub use error::StoreError;
pub use keeper::Keeper;

rpc_core::config! {
    /// Limits on the stored data. The oldest data is forgotten first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct StoreLimits {
        /// Most sessions; the least recently used one is forgotten with its turns and used tokens.
        /// Default 10,000.
        pub sessions: u64 = 10_000 => with_sessions,
        /// Most turns of a session. Default 200.
        pub turns: u64 = 200 => with_turns,
        /// Most bytes of the turns of a session, of which the last is always kept. Default 4 MiB.
        pub session_bytes: u64 = 4 * 1024 * 1024 => with_session_bytes,
        /// Most bytes of the turns of all sessions; beyond it, sessions are forgotten as if there
        /// were too many. Default 1 GiB.
        pub total_bytes: u64 = 1024 * 1024 * 1024 => with_total_bytes,
        /// Most bytes of one question and of one answer; the rest is cut off. Default 16 MiB: more
        /// than a model can say.
        pub text_bytes: usize = 16 * 1024 * 1024 => with_text_bytes,
        /// Most entries of the usage log. Default 100,000.
        pub usage: u64 = 100_000 => with_usage,
        /// Most days whose tokens are stored. Default 400.
        pub days: u64 = 400 => with_days,
    }
}

/// The results of one run of a session. They are written completely or not at all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commit {
    /// The key of the session. If it is empty, the usage counts only for its day.
    pub session: String,
    /// The time, in seconds since 1970.
    pub at: u64,
    /// The turn, unless there was no answer.
    pub turn: Option<Turn>,
    /// The usage.
    pub usage: Vec<UsageEntry>,
    /// Whether the turn goes on: what is stored of it is its question.
    pub goes_on: bool,
}

impl Commit {
    /// Creates a commit that only marks the session as used.
    pub fn new(session: impl Into<String>, at: u64) -> Self {
        Self {
            session: session.into(),
            at,
            ..Self::default()
        }
    }

    /// Sets [`turn`](Self::turn).
    pub fn with_turn(mut self, turn: Option<Turn>) -> Self {
        self.turn = turn;
        self
    }

    /// Adds an entry to [`usage`](Self::usage).
    pub fn with_usage(mut self, entry: UsageEntry) -> Self {
        self.usage.push(entry);
        self
    }
}

/// A known session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionInfo {
    /// Its key.
    pub session: String,
    /// When it began, in seconds since 1970.
    pub created: u64,
    /// When it was last used, in seconds since 1970.
    pub active: u64,
    /// How many turns it had. Some may be forgotten already.
    pub turns: u64,
    /// How many of its turns are stored.
    pub kept: u64,
    /// How many tokens it used.
    pub tokens: u64,
}

/// What of a session is [forgotten](Store::forget). Exhaustive: there is nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forget {
    /// Its turns. Its tokens stay used.
    Turns,
    /// Everything but the usage log and the tokens of days.
    All,
}

/// The tokens used, for budgets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// The tokens of each session, by its key.
    pub sessions: Vec<(String, u64)>,
    /// The tokens of each day with any, oldest first. Days are counted from 1970-01-01 in UTC:
    /// seconds divided by 86,400.
    pub days: Vec<(u64, u64)>,
}

/// A store of sessions and usage. Every method blocks until it is done, and many threads may call
/// it at once. After `Ok` of a writing method its effect survives the end of the process.
///
/// After a [`StoreError`] of a writing method nothing was written and it may be repeated, except
/// after [`StoreError::Io`]: the disk may have failed after the last byte.
pub trait Store: Send + Sync + fmt::Debug {
    /// Writes runs in order, all of them or none.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be written.
    fn commit(&self, commits: &[Commit]) -> Result<(), StoreError>;

    /// Returns the last turns of a session, oldest first, at most `turns`. Empty for an unknown
    /// session.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    fn recall(&self, session: &str, turns: usize) -> Result<Vec<Turn>, StoreError>;

    /// Returns the most recently used sessions, newest first, at most `max`.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    fn sessions(&self, max: usize) -> Result<Vec<SessionInfo>, StoreError>;

    /// Returns the number of sessions used at or after `since`, in seconds since 1970.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be counted.
    fn session_count(&self, since: u64) -> Result<u64, StoreError>;

    /// Returns the last entries of the usage log, newest first, at most `max`.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    fn usage(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError>;

    /// Returns the tokens used.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    fn totals(&self) -> Result<Totals, StoreError>;

    /// Forgets a session, or its turns. Returns whether it was known.
    ///
    /// # Errors
    /// [`StoreError`] if this cannot be written.
    fn forget(&self, session: &str, what: Forget) -> Result<bool, StoreError>;
}
