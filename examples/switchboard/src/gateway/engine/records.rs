//! [`Records`]: where an engine keeps sessions, usage and budgets: for itself, or with other nodes.

use std::sync::Arc;

use exoclaw_proto::net::TurnGuard;

use crate::gateway::cluster::{Cluster, SharedTurn};
use crate::gateway::memory::Turn;
use crate::gateway::store::{Commit, Forget, Keeper, SessionInfo, StoreError};
use crate::gateway::usage::UsageEntry;

/// The place of sessions, usage and budgets. Exhaustive: an engine is alone, or a node.
#[derive(Debug)]
pub enum Records {
    /// A store of this engine alone.
    Own(Keeper),
    /// What the nodes of a cluster share.
    Shared(Arc<Cluster>),
}

impl From<Keeper> for Records {
    fn from(keeper: Keeper) -> Self {
        Self::Own(keeper)
    }
}

impl From<Arc<Cluster>> for Records {
    fn from(cluster: Arc<Cluster>) -> Self {
        Self::Shared(cluster)
    }
}

/// The turn of a session. Dropping it begins the next one.
#[derive(Debug)]
pub(super) struct Held {
    /// Dropped last: on this node, the next one begins when the others know that this has ended.
    pub(super) shared: Option<SharedTurn>,
    pub(super) _local: TurnGuard,
}

impl Held {
    fn shared(held: Option<&Self>) -> Option<&SharedTurn> {
        held.and_then(|held| held.shared.as_ref())
    }
}

impl Records {
    /// Stores the results of a run, the settled one with this number.
    pub(super) async fn commit(
        &self,
        commit: Commit,
        held: Option<&mut Held>,
        settled: Option<u64>,
    ) -> Result<(), StoreError> {
        match self {
            Self::Own(keeper) => keeper.commit(commit).await,
            Self::Shared(cluster) => {
                let turn = held.and_then(|held| held.shared.as_mut());
                cluster.commit(commit, turn, settled).await
            }
        }
    }

    /// Returns the last turns of a session, oldest first.
    pub(super) async fn recall(
        &self,
        session: &str,
        held: Option<&Held>,
        turns: usize,
    ) -> Result<Vec<Turn>, StoreError> {
        match self {
            Self::Own(keeper) => keeper.recall(session, turns).await,
            Self::Shared(cluster) => cluster.recall(session, Held::shared(held), turns).await,
        }
    }

    /// Waits until no turn of a session runs on another node, as far as can be seen.
    pub(super) async fn ended(&self, session: &str) {
        match self {
            Self::Own(_) => {}
            Self::Shared(cluster) => cluster.ended(session).await,
        }
    }

    /// Returns whether turns can begin: not while NATS is out of reach for longer than the lease.
    pub(super) fn is_ready(&self) -> bool {
        match self {
            Self::Own(_) => true,
            Self::Shared(cluster) => cluster.is_joined(),
        }
    }

    /// Waits until this gateway cannot come back into its cluster by itself.
    pub(super) async fn failed(&self) -> rpc_core::cluster::StoreError {
        match self {
            Self::Own(_) => std::future::pending().await,
            Self::Shared(cluster) => cluster.failed().await,
        }
    }

    /// Returns the most recently used sessions, newest first.
    pub(super) async fn sessions(&self, max: usize) -> Result<Vec<SessionInfo>, StoreError> {
        match self {
            Self::Own(keeper) => keeper.sessions(max).await,
            Self::Shared(cluster) => cluster.sessions(max).await,
        }
    }

    /// Returns the number of sessions used at or after `since`.
    pub(super) async fn session_count(&self, since: u64) -> Result<u64, StoreError> {
        match self {
            Self::Own(keeper) => keeper.session_count(since).await,
            Self::Shared(cluster) => cluster.session_count(since).await,
        }
    }

    /// Returns the last entries of the usage log, newest first.
    pub(super) async fn usage(&self, max: usize) -> Result<Vec<UsageEntry>, StoreError> {
        match self {
            Self::Own(keeper) => keeper.usage(max).await,
            Self::Shared(cluster) => cluster.usage(max).await,
        }
    }

    /// Forgets a session, or its turns. What a cluster knows about its user stays.
    pub(super) async fn forget(&self, session: &str, what: Forget) -> Result<bool, StoreError> {
        match self {
            Self::Own(keeper) => keeper.forget(session, what).await,
            Self::Shared(cluster) => cluster.forget(session).await,
        }
    }

    /// Finishes what is still to be written.
    pub(super) async fn close(&self) {
        match self {
            Self::Own(keeper) => keeper.close().await,
            Self::Shared(cluster) => cluster.close().await,
        }
    }
}
