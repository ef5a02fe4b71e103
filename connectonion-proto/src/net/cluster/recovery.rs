//! What a node does when another one is gone, or a session has another owner: it closes the connections that it
//! passes on there, and takes over the sessions of nodes that are gone.

use std::collections::HashSet;
use std::convert::Infallible;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join3;
use rpc_core::Str;
use rpc_core::net::entropy;
use rpc_core::store::StoreError;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::node::Node;
use crate::hub::Hub;
use crate::net::HostRuntime;

/// How many sessions are taken over at the same time.
const AT_ONCE: usize = 8;
/// How long to wait before it is looked whether there are fewer.
const PAUSE: Duration = Duration::from_millis(20);

impl Node {
    /// Looks `every` so often which nodes are alive, and does what is due for those that are gone,
    /// until it is dropped.
    pub(super) async fn watch_nodes(&self, runtime: &HostRuntime, every: Duration) -> Infallible {
        let gone = Notify::new();
        // There may be sessions of nodes that were gone before.
        gone.notify_one();
        let watching = self.watch_peers(every, &gone);
        let recovering = self.recover_sessions(runtime, every, &gone);
        let (never, _, _) = join3(watching, self.watch_owners(every), recovering).await;
        never
    }

    /// Closes the connections that are passed on for a session whenever it has another owner.
    async fn watch_owners(&self, every: Duration) -> Infallible {
        loop {
            if let Ok(mut names) = self.claims.watch().await {
                while let Some(Ok(session_id)) = names.next().await {
                    // What is reported may be older than what was found.
                    if self.forwards.has(&session_id)
                        && let Ok(owner) = self.claims.holder(&session_id).await
                    {
                        self.forwards.close_if(|id, before| {
                            id == session_id && owner.as_ref() != Some(before)
                        });
                    }
                }
            }
            sleep(every).await;
        }
    }

    /// Closes the connections that are passed on to nodes that are gone, and reports each that is gone.
    async fn watch_peers(&self, every: Duration, gone: &Notify) -> Infallible {
        let mut known = HashSet::new();
        loop {
            sleep(every).await;
            let Ok(nodes) = self.lease.nodes().await else {
                continue;
            };
            let alive: HashSet<Str> = nodes.into_iter().collect();
            self.forwards.close_if(|_, owner| !alive.contains(owner));
            if !known.is_subset(&alive) {
                gone.notify_one();
            }
            known = alive;
        }
    }

    /// Takes over the sessions of nodes that are gone, whenever one is.
    async fn recover_sessions(
        &self,
        runtime: &HostRuntime,
        every: Duration,
        gone: &Notify,
    ) -> Infallible {
        loop {
            gone.notified().await;
            // Not all nodes at once.
            sleep(every.mul_f64(random_share())).await;
            match self.recover_orphans(runtime).await {
                Ok(true) => continue,
                // Other hosts may have more room.
                Ok(false) => {}
                Err(error) => tracing::debug!(%error, "sessions were not taken over"),
            }
            sleep(every).await;
            gone.notify_one();
        }
    }

    /// Takes over the sessions whose owners are gone, a few at a time. Returns whether that were all:
    /// this host may have no room for more.
    async fn recover_orphans(&self, runtime: &HostRuntime) -> Result<bool, StoreError> {
        let mut orphans = self.claims.orphans().await?;
        // Nodes that do this at the same time share them.
        orphans.sort_by_cached_key(|_| entropy());
        for session_id in orphans {
            while runtime.read(Hub::recovering) >= AT_ONCE {
                sleep(PAUSE).await;
            }
            if !runtime.recover(&session_id) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns a random number from 0 to 1.
fn random_share() -> f64 {
    f64::from(u16::try_from(entropy() >> 48).unwrap_or_default()) / f64::from(u16::MAX)
}
