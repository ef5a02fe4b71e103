//! [`Deadlines`]: one deadline per key, the earliest first.

use rpc_core::Instant;
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// Keys with a deadline each.
pub(super) struct Deadlines<K> {
    by_time: BTreeSet<(Instant, K)>,
    by_key: HashMap<K, Instant>,
}

impl<K: Clone + Eq + Hash + Ord> Deadlines<K> {
    pub(super) fn new() -> Self {
        Self {
            by_time: BTreeSet::new(),
            by_key: HashMap::new(),
        }
    }

    /// Replaces the deadline of a key.
    pub(super) fn set(&mut self, key: &K, at: Option<Instant>) {
        if self.by_key.get(key).copied() == at {
            return;
        }
        if let Some(before) = self.by_key.remove(key) {
            self.by_time.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.by_key.insert(key.clone(), at);
            self.by_time.insert((at, key.clone()));
        }
    }

    /// Removes and returns a key whose deadline has come.
    pub(super) fn pop(&mut self, now: Instant) -> Option<K> {
        let (at, _) = self.by_time.first()?;
        if *at > now {
            return None;
        }
        let (_, key) = self.by_time.pop_first()?;
        self.by_key.remove(&key);
        Some(key)
    }

    pub(super) fn first(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    pub(super) fn clear(&mut self) {
        self.by_time.clear();
        self.by_key.clear();
    }
}
