//! [`Deadlines`]: one deadline per key, the earliest first.

use std::hash::Hash;

use rpc_core::{Instant, PendingMap};

/// Keys with a deadline each.
pub(super) type Deadlines<K> = PendingMap<K, ()>;

/// Replaces the deadline of a key.
pub(super) fn set<K: Clone + Eq + Hash>(all: &mut Deadlines<K>, key: &K, at: Option<Instant>) {
    if at.is_none() {
        all.remove(key);
    } else if !all.extend(key, at) {
        // There is room for all keys of a node.
        let _ = all.insert(key.clone(), (), at);
    }
}
