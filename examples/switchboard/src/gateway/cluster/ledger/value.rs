//! [`Value`]: what all nodes know of the tokens used and reserved, as it is stored.

use std::collections::BTreeMap;

use exoclaw_proto::budget::pools::Pools;
use serde::{Deserialize, Serialize};

use super::pools::Merge;

/// Most nodes whose tokens are kept apart although they are gone.
const MAX_GONE: usize = 64;

/// The stored value. Each node writes its own totals, never a difference, so that the same write
/// twice counts once.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Value {
    /// What nodes used that are gone.
    rest: Pools,
    nodes: BTreeMap<String, Pools>,
}

impl Value {
    pub(super) fn get(&self, node: &str) -> Option<Pools> {
        self.nodes.get(node).copied()
    }

    /// Returns the latest day that any node has seen.
    pub(super) fn day(&self) -> u64 {
        let days = self.nodes.values().map(|pools| pools.day);
        days.fold(self.rest.day, u64::max)
    }

    /// Returns the sum of all nodes but one.
    pub(super) fn others(&self, node: &str) -> Pools {
        let others = self.nodes.iter().filter(|(name, _)| *name != node);
        others.fold(self.rest, |sum, (_, pools)| sum.plus(*pools))
    }

    /// Returns the other nodes with reservations.
    pub(super) fn holders(&self, node: &str) -> Vec<String> {
        let day = self.day();
        let holds = |pools: &Pools| {
            let mut pools = *pools;
            pools.advance(day);
            pools.daily.reserved > 0 || pools.monthly.reserved > 0
        };
        let holders = self
            .nodes
            .iter()
            .filter(|(name, pools)| *name != node && holds(pools));
        holders.map(|(name, _)| name.clone()).collect()
    }

    /// Releases what these nodes have reserved. What they used stays.
    pub(super) fn release(&mut self, gone: &[String]) {
        for name in gone {
            if let Some(pools) = self.nodes.get_mut(name) {
                *pools = pools.released();
            }
        }
        let mut surplus = self.nodes.len().saturating_sub(MAX_GONE);
        for name in gone {
            if surplus == 0 {
                break;
            }
            surplus -= usize::from(self.fold(name));
        }
    }

    /// Adds what a node used to the rest, and removes the node.
    pub(super) fn fold(&mut self, node: &str) -> bool {
        let gone = self.nodes.remove(node);
        if let Some(pools) = gone {
            self.rest = self.rest.plus(pools.released());
        }
        gone.is_some()
    }

    /// Gives a node another name.
    pub(super) fn rename(&mut self, former: &str, node: &str) {
        if let Some(pools) = self.nodes.remove(former) {
            self.nodes.insert(node.to_owned(), pools);
        }
    }

    /// Sets the totals of a node, and forgets nodes without tokens in this month.
    pub(super) fn put(&mut self, node: &str, pools: Pools) {
        self.rest.advance(pools.day);
        self.nodes
            .retain(|name, pools| name != node && !pools.is_empty_on(self.rest.day));
        if !pools.is_empty_on(self.rest.day) {
            self.nodes.insert(node.to_owned(), pools);
        }
    }
}
