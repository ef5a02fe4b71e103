//! [`PendingMap`]: calls whose id the peer chooses.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use super::InsertError;
use super::slab::Slab;
use crate::Instant;

/// Requests in flight under keys that the peer chose, each with a tag `T` and an optional deadline.
///
/// It has the methods of [`PendingCalls`](super::PendingCalls), but knows nothing of what has ended.
///
/// ```
/// use std::time::{Duration, Instant};
/// use rpc_core::PendingMap;
///
/// let start = Instant::now();
/// let mut calls = PendingMap::new(100, start);
/// calls.insert("7", "status", Some(start + Duration::from_secs(5))).unwrap();
/// assert_eq!(calls.pop_expired(start + Duration::from_secs(6)), Some(("7", "status")));
/// assert_eq!(calls.remove("7"), None);
/// ```
pub struct PendingMap<K, T> {
    slots: HashMap<K, u32>,
    slab: Slab<(K, T)>,
}

impl<K: Eq + Hash + Clone, T> PendingMap<K, T> {
    /// Creates an empty table for at most `max` requests (at most `u32::MAX`). Deadlines are counted
    /// from `origin`.
    #[must_use]
    pub fn new(max: usize, origin: Instant) -> Self {
        Self {
            slots: HashMap::new(),
            slab: Slab::new(max, origin),
        }
    }

    /// Registers a request. `None` waits forever; a deadline in the past expires at once. A key
    /// that has ended may be used again.
    ///
    /// # Errors
    /// [`InsertError::Duplicate`] if the key is in flight, [`InsertError::Full`] if the table is
    /// full, both with the tag; nothing has changed.
    pub fn insert(
        &mut self,
        key: K,
        tag: T,
        deadline: Option<Instant>,
    ) -> Result<(), InsertError<T>> {
        if self.slots.contains_key(&key) {
            return Err(InsertError::Duplicate { tag });
        }
        match self.slab.insert((key.clone(), tag), deadline) {
            Ok(address) => {
                self.slots.insert(key, address.slot);
                Ok(())
            }
            Err((_, tag)) => Err(InsertError::Full {
                tag,
                max: self.slab.max(),
            }),
        }
    }

    /// Returns the tag of a request in flight.
    #[must_use]
    pub fn get<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<&T>
    where
        K: Borrow<Q>,
    {
        self.slab.get(*self.slots.get(key)?).map(|(_, tag)| tag)
    }

    /// Returns the tag of a request in flight, to change it.
    #[must_use]
    pub fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&mut T>
    where
        K: Borrow<Q>,
    {
        self.slab.get_mut(*self.slots.get(key)?).map(|(_, tag)| tag)
    }

    /// Gives a request in flight a new deadline; `None` lets it wait forever. Returns `false` if it
    /// is not in flight.
    pub fn extend<Q: Eq + Hash + ?Sized>(&mut self, key: &Q, deadline: Option<Instant>) -> bool
    where
        K: Borrow<Q>,
    {
        self.slots
            .get(key)
            .is_some_and(|&slot| self.slab.extend(slot, deadline))
    }

    /// Removes a request: it has been answered or cancelled.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
    {
        let (_, (_, tag)) = self.slab.remove(self.slots.remove(key)?)?;
        Some(tag)
    }

    /// Removes a request whose deadline is at or before `now`; call it until `None`. Earliest
    /// first, requests of the same millisecond in the order in which they got the deadline.
    pub fn pop_expired(&mut self, now: Instant) -> Option<(K, T)> {
        let (_, (key, tag)) = self.slab.pop_expired(now)?;
        self.slots.remove(&key);
        Some((key, tag))
    }

    /// Removes any request, roughly by deadline, to end them all when the connection closes. When
    /// it returns `None`, the table has freed the memory of its requests.
    pub fn pop_any(&mut self) -> Option<(K, T)> {
        let Some((_, (key, tag))) = self.slab.pop_any() else {
            self.slots = HashMap::new();
            return None;
        };
        self.slots.remove(&key);
        Some((key, tag))
    }

    /// Returns when to call [`pop_expired`](Self::pop_expired) next: exact while few requests are
    /// due around the same time, otherwise perhaps early, never late. `None` if none has a
    /// deadline.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.slab.poll_timeout()
    }

    /// Returns how many requests are in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slab.len()
    }

    /// Returns whether no request is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.slab.len() == 0
    }

    /// Returns the requests in flight, in no particular order. Visits every slot: not for hot
    /// paths.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.slab.iter().map(|(_, (key, tag))| (key, tag))
    }
}

// Prints numbers only: keys and tags may hold private data.
crate::debug::debug_fields!([K, T] PendingMap<K, T>, this => {
    len: this.slab.len(),
    max: this.slab.max(),
});
