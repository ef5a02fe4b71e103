//! [`GatewayStore`]: sessions, memory, usage and budgets of a gateway, alone or shared by several.
//!
//! A gateway that is alone is a cluster of one: the same code on a [`Store`](rpc_core::store::Store) in a file
//! or in memory, without leases and queues. Of several, any may end at any time, and the store may be away for
//! a while. What holds then:
//!
//! - The turns of a session run one after the other on whatever node, in the order of arrival. A
//!   turn waits in the queue of the session, and one of a node that is gone leaves it.
//! - A turn is stored by a write that names the last one that it knows, and says what is new. A node whose
//!   turn has left the queue, and that wakes up, is refused.
//! - A node that loses its lease begins no turn until it is back under a new id.
//! - Before a reply is done, its turn, its usage and its tokens are stored.
//! - Of runs of which a node had stored the question alone when it ended, the session, the day and the month count the
//!   estimate of their first request.

mod attempts;
mod budget;
mod error;
#[cfg(test)]
mod faults;
mod file;
mod gateway_store;
mod history;
mod import;
mod nodes;
mod record;
mod sessions;
#[cfg(test)]
mod tests;
mod usage_log;
mod writing;

use super::memory::{Entity, Turn};
use super::usage::UsageEntry;

pub use budget::{NotAdmitted, Reservation};
pub use error::StoreError;
pub use file::{FILE_NAME, empty_file, open_folder, probe};
pub(crate) use file::{make_folder, unopened};
pub use gateway_store::{GatewayStore, GatewayStoreConfig, usage};
pub use import::OLD_FILE_NAME;
pub use record::Record;
pub use sessions::OpenTurn;
pub(super) use writing::{Write, Writing};

rpc_core::config! {
    /// Limits on the stored data. The oldest data is forgotten first.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct StoreLimits {
        /// Most sessions; the least recently used ones are forgotten with their turns and used tokens
        /// within a minute. Default 10,000.
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
    }
}

/// The results of one run of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Commit {
    /// The key of the session.
    pub session: String,
    /// The time, in seconds since 1970.
    pub at: u64,
    /// The turn, unless there was no answer.
    pub turn: Option<Turn>,
    /// The usage.
    pub usage: Vec<UsageEntry>,
    /// Whether the turn goes on: what is stored of it is its question.
    pub goes_on: bool,
    /// The estimated tokens of a turn that goes on, in whose place [`usage`](Self::usage) comes when it ends; then the
    /// turn knows them.
    pub noted: u64,
    /// What was learnt of an earlier turn.
    pub learnt: Option<Learnt>,
}

/// What was learnt of a turn. It is stored if the turn is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Learnt {
    /// The [name](Turn::id) of the turn.
    pub turn: String,
    /// What is known now.
    pub entities: Vec<Entity>,
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

    /// Returns whether it only marks the session as used.
    const fn is_empty(&self) -> bool {
        self.turn.is_none() && self.usage.is_empty() && self.learnt.is_none()
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

/// What of a session is [forgotten](GatewayStore::forget). Exhaustive: there is nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forget<'a> {
    /// Its turns, and what is known from them. Its tokens stay used.
    Turns,
    /// What is known of this relation of this subject.
    Entity(&'a str, &'a str),
    /// Everything but the usage log and the tokens of days.
    All,
}
