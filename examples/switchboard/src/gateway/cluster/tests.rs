//! What tests do to a node of a cluster.

use super::Cluster;

impl Cluster {
    /// Stops the signs of life, as if this process were paused.
    pub(in crate::gateway) fn pause(&self) {
        self.life.abort();
    }

    /// Drops the sessions beyond the limits. Returns how many.
    pub(in crate::gateway) async fn sweep(&self) -> u64 {
        self.sessions.sweep().await.unwrap()
    }

    /// Returns the id of this node, as soon as it counts as alive.
    pub(in crate::gateway) async fn node(&self) -> rpc_core::Str {
        let lease = self.sessions.nodes.joined(self.patience).await;
        lease.unwrap().node().clone()
    }

    /// Waits until this node does not count as alive.
    pub(in crate::gateway) async fn lost(&self) {
        while let Some(lease) = self.sessions.nodes.member.current() {
            lease.lost().await;
        }
    }

    /// Stops everything, as if this process were killed.
    pub(in crate::gateway) fn kill(&self) {
        let tasks = self.tasks.lock();
        { tasks }.abort_all();
    }
}
