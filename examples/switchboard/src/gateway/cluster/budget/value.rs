//! [`Value`]: what all nodes know of the tokens used and reserved, as it is stored.

use std::collections::{BTreeMap, VecDeque};

use exoclaw_proto::budget::pools::{Pool, Pools};
use serde::{Deserialize, Serialize};

/// Most processes whose tokens are kept apart although they are gone.
const MAX_GONE: usize = 64;
/// Most processes remembered that are not kept apart any more, in case one of them was only slow.
const MAX_FOLDED: usize = 256;

/// The stored value.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Value {
    /// What processes used that are gone.
    rest: Pools,
    /// The last of those processes.
    folded: VecDeque<String>,
    /// By the id of the process.
    nodes: BTreeMap<String, Share>,
}

/// The totals of one process.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Share {
    /// The node that it was when it wrote this.
    node: String,
    pools: Pools,
}

impl Value {
    pub(super) fn get(&self, process: &str) -> Option<Pools> {
        self.nodes.get(process).map(|it| it.pools)
    }

    /// Returns whether what this process used is counted with that of those that are gone.
    pub(super) fn is_folded(&self, process: &str) -> bool {
        self.folded.iter().any(|it| it == process)
    }

    /// Returns the latest day that any process has seen.
    pub(super) fn day(&self) -> u64 {
        let days = self.nodes.values().map(|it| it.pools.day);
        days.fold(self.rest.day, u64::max)
    }

    /// Returns the sum of all processes but one.
    pub(super) fn others(&self, process: &str) -> Pools {
        let others = self.nodes.iter().filter(|(name, _)| *name != process);
        others.fold(self.rest, |sum, (_, it)| plus(sum, it.pools))
    }

    /// Returns the nodes of the other processes with reservations.
    pub(super) fn holders(&self, process: &str) -> Vec<String> {
        let day = self.day();
        let holds = |mut pools: Pools| {
            pools.advance(day);
            pools.daily.reserved > 0 || pools.monthly.reserved > 0
        };
        let others = self.nodes.iter().filter(|(name, _)| *name != process);
        let holders = others.filter(|(_, it)| holds(it.pools));
        holders.map(|(_, it)| it.node.clone()).collect()
    }

    /// Releases what these nodes have reserved. What they used stays.
    pub(super) fn release(&mut self, gone: &[String]) {
        let mut surplus = self.nodes.len().saturating_sub(MAX_GONE);
        self.nodes.retain(|process, it| {
            if !gone.contains(&it.node) {
                return true;
            }
            it.pools = released(it.pools);
            if surplus == 0 {
                return true;
            }
            surplus -= 1;
            self.rest = plus(self.rest, it.pools);
            self.folded.push_back(process.clone());
            false
        });
        let surplus = self.folded.len().saturating_sub(MAX_FOLDED);
        self.folded.drain(..surplus);
    }

    /// Sets the totals of a process, and forgets those without tokens in this month. `node`: which node the
    /// process is, if it is one now.
    pub(super) fn put(&mut self, process: &str, node: Option<&str>, pools: Pools) {
        let day = pools.day;
        self.rest.advance(day);
        self.folded.retain(|it| it != process);
        let before = self.nodes.remove(process).unwrap_or_default();
        let node = node.map_or(before.node, str::to_owned);
        self.nodes.insert(process.to_owned(), Share { node, pools });
        self.nodes.retain(|_, it| !is_empty_on(it.pools, day));
    }
}

pub(super) const fn used(used: u64) -> Pool {
    Pool { used, reserved: 0 }
}

/// Adds up both on the later of their days.
pub(super) fn plus(mut one: Pools, mut other: Pools) -> Pools {
    let sum = |one: Pool, other: Pool| Pool {
        used: one.used.saturating_add(other.used),
        reserved: one.reserved.saturating_add(other.reserved),
    };
    one.advance(other.day);
    other.advance(one.day);
    Pools {
        day: one.day,
        daily: sum(one.daily, other.daily),
        monthly: sum(one.monthly, other.monthly),
    }
}

/// Takes off what another has used.
pub(super) fn minus_used(mut one: Pools, mut other: Pools) -> Pools {
    one.advance(other.day);
    other.advance(one.day);
    one.daily.used = one.daily.used.saturating_sub(other.daily.used);
    one.monthly.used = one.monthly.used.saturating_sub(other.monthly.used);
    one
}

/// Returns it without reservations.
const fn released(pools: Pools) -> Pools {
    Pools {
        day: pools.day,
        daily: used(pools.daily.used),
        monthly: used(pools.monthly.used),
    }
}

/// Returns whether nothing is used or reserved in this day's month.
fn is_empty_on(mut pools: Pools, day: u64) -> bool {
    pools.advance(day);
    pools.daily == Pool::default() && pools.monthly == Pool::default()
}
