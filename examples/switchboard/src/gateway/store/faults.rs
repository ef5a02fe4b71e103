//! What tests do to a gateway's store.

use super::GatewayStore;

impl GatewayStore {
    /// Stops the signs of life, as if this process were paused.
    pub(in crate::gateway) fn pause(&self) {
        if let Some(life) = &self.life {
            life.abort();
        }
    }

    /// Drops the sessions beyond the limits. Returns how many.
    pub(in crate::gateway) async fn sweep(&self) -> u64 {
        self.drop_surplus().await.unwrap()
    }

    /// Returns the id of this node, as soon as it counts as alive.
    pub(in crate::gateway) async fn node(&self) -> rpc_core::Str {
        let member = self.nodes.member.as_ref().unwrap();
        member.joined().await.node().clone()
    }

    /// Waits until this node does not count as alive.
    pub(in crate::gateway) async fn lost(&self) {
        let member = self.nodes.member.as_ref().unwrap();
        while let Some(lease) = member.current() {
            lease.lost().await;
        }
    }

    /// Stops everything, as if this process were killed.
    pub(in crate::gateway) fn kill(&self) {
        let tasks = self.tasks.lock();
        { tasks }.abort_all();
    }
}
