//! [`PendingMap`]: calls whose id the peer chooses.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;

use super::slab::Slab;
use super::{InsertError, Match};
use crate::Instant;

/// Requests in flight under keys that the peer chose, each with a tag `T` and an optional deadline.
///
/// It has the methods of [`PendingCalls`](super::PendingCalls). The last few ended keys are
/// remembered, so that they are [`Match::Late`] and not [`Match::Unknown`].
///
/// ```
/// use std::time::{Duration, Instant};
/// use rpc_core::{Match, PendingMap};
///
/// let start = Instant::now();
/// let mut calls = PendingMap::new(100, 16, start);
/// calls.insert("7", "status", Some(start + Duration::from_secs(5))).unwrap();
/// assert_eq!(calls.pop_expired(start + Duration::from_secs(6)), Some(("7", "status")));
/// assert_eq!(calls.complete("7"), Match::Late);
/// assert_eq!(calls.complete("8"), Match::Unknown);
/// ```
pub struct PendingMap<K, T> {
    slots: HashMap<K, u32>,
    slab: Slab<(K, T)>,
    ended: Ended<K>,
}

impl<K: Eq + Hash + Clone, T> PendingMap<K, T> {
    /// Creates an empty table for at most `max` requests (at most `u32::MAX`) that remembers the
    /// last `remember` different keys that ended. Deadlines are counted from `origin`.
    #[must_use]
    pub fn new(max: usize, remember: usize, origin: Instant) -> Self {
        Self {
            slots: HashMap::new(),
            slab: Slab::new(max, origin),
            ended: Ended {
                keys: HashSet::new(),
                order: VecDeque::new(),
                max: remember,
            },
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

    /// Returns whether a request with this key is in flight.
    #[must_use]
    pub fn contains<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.slots.contains_key(key)
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
    pub fn complete<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Match<T>
    where
        K: Borrow<Q>,
    {
        if let Some(slot) = self.slots.remove(key)
            && let Some((_, (key, tag))) = self.slab.remove(slot)
        {
            self.ended.add(key);
            return Match::Live(tag);
        }
        if self.ended.keys.contains(key) {
            Match::Late
        } else {
            Match::Unknown
        }
    }

    /// Removes a request whose deadline is at or before `now`; call it until `None`. Earliest
    /// first, requests of the same millisecond in the order in which they got the deadline.
    pub fn pop_expired(&mut self, now: Instant) -> Option<(K, T)> {
        let (_, (key, tag)) = self.slab.pop_expired(now)?;
        self.forget(&key);
        Some((key, tag))
    }

    /// Removes any request, roughly by deadline, to end them all when the connection closes. When
    /// it returns `None`, the table has freed the memory of its requests.
    pub fn pop_any(&mut self) -> Option<(K, T)> {
        let Some((_, (key, tag))) = self.slab.pop_any() else {
            self.slots = HashMap::new();
            return None;
        };
        self.forget(&key);
        Some((key, tag))
    }

    /// Returns an iterator over [`pop_any`](Self::pop_any). Dropping it early leaves the rest in
    /// flight.
    pub fn drain(&mut self) -> impl Iterator<Item = (K, T)> + '_ {
        std::iter::from_fn(|| self.pop_any())
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

    /// Returns how many requests may be in flight.
    #[must_use]
    pub fn capacity_limit(&self) -> usize {
        self.slab.max()
    }

    /// Returns the requests in flight, in no particular order. Visits every slot: not for hot
    /// paths.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.slab.iter().map(|(_, (key, tag))| (key, tag))
    }

    fn forget(&mut self, key: &K) {
        if let Some((key, _)) = self.slots.remove_entry(key) {
            self.ended.add(key);
        }
    }
}

// Prints numbers only: keys and tags may hold private data.
crate::debug::debug_fields!([K, T] PendingMap<K, T>, this => {
    len: this.slab.len(),
    max: this.slab.max(),
    remembered: this.ended.order.len(),
});

/// The last few keys that ended, oldest first. A key is in both collections or in none.
struct Ended<K> {
    keys: HashSet<K>,
    order: VecDeque<K>,
    max: usize,
}

impl<K: Eq + Hash + Clone> Ended<K> {
    fn add(&mut self, key: K) {
        if self.max == 0 || self.keys.contains(&key) {
            return;
        }
        if self.order.len() >= self.max
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
        self.keys.insert(key.clone());
        self.order.push_back(key);
    }
}
