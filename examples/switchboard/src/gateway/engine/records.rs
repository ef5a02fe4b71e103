//! [`Records`]: where an engine keeps sessions, usage and budgets: for itself, or with other nodes.

use std::fmt;

use async_trait::async_trait;
use exoclaw_proto::net::TurnGuard;

use crate::gateway::cluster::{Cluster, SharedTurn};
use crate::gateway::memory::Turn;
use crate::gateway::store::{Commit, Forget, SessionInfo, StoreError, Totals};
use crate::gateway::usage::UsageEntry;

/// The place of sessions, usage and budgets: a [`Keeper`](crate::gateway::store::Keeper) of a gateway alone, or a
/// [`Cluster`].
#[async_trait]
pub trait Records: Send + Sync + fmt::Debug {
    /// Returns what the nodes share, if this is one. Default: this gateway is alone.
    fn cluster(&self) -> Option<&Cluster> {
        None
    }

    /// Begins a turn of a session after those of other nodes. Default: there are none.
    ///
    /// # Errors
    /// [`StoreError`] if there is no turn.
    ///
    /// # Cancel safety
    /// Dropping the future begins none.
    async fn enter(&self, _session: &str, _now: u64) -> Result<Option<SharedTurn>, StoreError> {
        Ok(None)
    }

    /// Stores the results of a run, in its turn among the nodes, and waits until they are on the disk; `settled` is
    /// the number of what it has used of their budgets. Runs of one session keep their order if each is awaited
    /// before the next.
    ///
    /// # Errors
    /// [`StoreError`] if something is not stored. The usage is kept and written later: do not commit it again.
    ///
    /// # Cancel safety
    /// Dropping the future leaves the results stored or not.
    async fn commit(
        &self,
        commit: Commit,
        turn: Option<&mut SharedTurn>,
        settled: Option<u64>,
    ) -> Result<(), StoreError>;

    /// Returns the last turns of a session, oldest first, as its `turn` among the nodes found them. Sees all
    /// earlier writes.
    ///
    /// # Errors
    /// [`StoreError`] if they cannot be read.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    async fn recall(
        &self,
        session: &str,
        turn: Option<&SharedTurn>,
        turns: usize,
    ) -> Result<Vec<Turn>, StoreError>;

    /// Returns the most recently used sessions, newest first.
    ///
    /// # Errors
    /// As for [`recall`](Self::recall).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    async fn sessions(&self, max: usize) -> Result<Vec<SessionInfo>, StoreError>;

    /// Returns the number of sessions used at or after `since`, in seconds since 1970; that of nodes may be 10 s old.
    ///
    /// # Errors
    /// As for [`recall`](Self::recall).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    async fn session_count(&self, since: u64) -> Result<u64, StoreError>;

    /// Returns the last entries of the usage log, newest first, including those not yet written here.
    ///
    /// # Errors
    /// As for [`recall`](Self::recall).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    async fn usage(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError>;

    /// Returns the tokens used, for the budgets of this gateway alone. Default: none.
    ///
    /// # Errors
    /// As for [`recall`](Self::recall).
    ///
    /// # Cancel safety
    /// Cancel-safe.
    async fn totals(&self) -> Result<Totals, StoreError> {
        Ok(Totals::default())
    }

    /// Forgets a session, or its turns; what nodes know of its user stays. Returns whether it was known.
    ///
    /// # Errors
    /// [`StoreError`] if nothing was forgotten. Trying again is safe.
    ///
    /// # Cancel safety
    /// Dropping the future leaves it done or not done.
    async fn forget(&self, session: &str, what: Forget) -> Result<bool, StoreError>;

    /// Finishes what is still to be written. Nothing is stored after it.
    ///
    /// # Cancel safety
    /// Cancel-safe.
    async fn close(&self);
}

/// The turn of a session. Dropping it begins the next one.
#[derive(Debug)]
pub(super) struct Held {
    /// Dropped last: on this node, the next one begins when the others know that this has ended.
    pub(super) shared: Option<SharedTurn>,
    pub(super) _local: TurnGuard,
}
