//! [`Recent`]: what is known of the requests that wait for an answer.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

/// What is known of open requests, by id. Bounded: a peer that never answers has the oldest forgotten, and
/// an answer after `HALF` later requests may match none.
#[derive(Debug)]
pub struct Recent<K, V, const HALF: usize = 1024> {
    newer: HashMap<K, V>,
    older: HashMap<K, V>,
}

impl<K, V, const HALF: usize> Default for Recent<K, V, HALF> {
    fn default() -> Self {
        Self {
            newer: HashMap::new(),
            older: HashMap::new(),
        }
    }
}

impl<K: Eq + Hash, V, const HALF: usize> Recent<K, V, HALF> {
    /// Adds a request. Returns the older ones that are forgotten for it.
    pub fn insert(&mut self, id: K, value: V) -> HashMap<K, V> {
        let mut forgotten = HashMap::new();
        if self.newer.len() >= HALF {
            let newer = std::mem::take(&mut self.newer);
            forgotten = std::mem::replace(&mut self.older, newer);
        }
        self.newer.insert(id, value);
        forgotten
    }

    /// Returns all that is known; of an id that was asked again, the newer one.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        let older = self.older.iter();
        let older = older.filter(|(id, _)| !self.newer.contains_key(*id));
        self.newer.values().chain(older.map(|(_, value)| value))
    }

    /// Returns what is known of a request, to change it.
    pub fn get_mut<Q: Eq + Hash + ?Sized>(&mut self, id: &Q) -> Option<&mut V>
    where
        K: Borrow<Q>,
    {
        match self.newer.get_mut(id) {
            Some(value) => Some(value),
            None => self.older.get_mut(id),
        }
    }

    /// Returns what is known of a request.
    #[must_use]
    pub fn get<Q: Eq + Hash + ?Sized>(&self, id: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.newer.get(id).or_else(|| self.older.get(id))
    }

    /// Forgets a request, and returns what was known of it.
    pub fn remove<Q: Eq + Hash + ?Sized>(&mut self, id: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        let newer = self.newer.remove(id);
        let older = self.older.remove(id);
        newer.or(older)
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.newer.clear();
        self.older.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: usize = 1024;

    #[test]
    fn the_oldest_unanswered_entries_are_forgotten() {
        let mut recent = Recent::<String, usize, HALF>::default();
        for id in 0..100 * HALF {
            recent.insert(id.to_string(), id);
        }
        assert!(recent.newer.len() + recent.older.len() <= 2 * HALF);
        assert_eq!(recent.get("0"), None);
        let last = 100 * HALF - 1;
        assert_eq!(
            recent.get((last - HALF).to_string().as_str()),
            Some(&(last - HALF))
        );
        assert_eq!(recent.remove(last.to_string().as_str()), Some(last));
        assert_eq!(recent.get(last.to_string().as_str()), None);
    }

    #[test]
    fn an_id_requested_again_has_its_new_value() {
        let mut recent = Recent::<String, usize, HALF>::default();
        recent.insert("a".to_owned(), 1);
        for id in 0..HALF {
            recent.insert(id.to_string(), 0);
        }
        recent.insert("a".to_owned(), 2);
        assert_eq!(
            recent.values().filter(|it| **it > 0).collect::<Vec<_>>(),
            [&2]
        );
        assert_eq!(recent.remove("a"), Some(2));
        assert_eq!(recent.get("a"), None);
    }
}
