//! [`Recent`]: what is known of the requests that wait for an answer.

use std::collections::HashMap;

/// Most requests in a half. An answer that comes later than that many others were asked is nobody's.
const HALF: usize = 1024;

/// What is known of open requests, by id. Bounded: a peer that never answers has the oldest forgotten.
#[derive(Debug)]
pub(super) struct Recent<V> {
    newer: HashMap<String, V>,
    older: HashMap<String, V>,
}

impl<V> Default for Recent<V> {
    fn default() -> Self {
        Self {
            newer: HashMap::new(),
            older: HashMap::new(),
        }
    }
}

impl<V> Recent<V> {
    pub(super) fn insert(&mut self, id: String, value: V) {
        if self.newer.len() >= HALF {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(id, value);
    }

    pub(super) fn get(&self, id: &str) -> Option<&V> {
        self.newer.get(id).or_else(|| self.older.get(id))
    }

    pub(super) fn remove(&mut self, id: &str) -> Option<V> {
        let newer = self.newer.remove(id);
        let older = self.older.remove(id);
        newer.or(older)
    }

    pub(super) fn clear(&mut self) {
        self.newer.clear();
        self.older.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_when_nobody_answers() {
        let mut recent = Recent::default();
        for id in 0..100 * HALF {
            recent.insert(id.to_string(), id);
        }
        assert!(recent.newer.len() + recent.older.len() <= 2 * HALF);
        assert_eq!(recent.get("0"), None);
        let last = 100 * HALF - 1;
        assert_eq!(recent.get(&(last - HALF).to_string()), Some(&(last - HALF)));
        assert_eq!(recent.remove(&last.to_string()), Some(last));
        assert_eq!(recent.get(&last.to_string()), None);
    }

    #[test]
    fn an_id_that_is_asked_again_has_its_new_value() {
        let mut recent = Recent::default();
        recent.insert("a".to_owned(), 1);
        for id in 0..HALF {
            recent.insert(id.to_string(), 0);
        }
        recent.insert("a".to_owned(), 2);
        assert_eq!(recent.remove("a"), Some(2));
        assert_eq!(recent.get("a"), None);
    }
}
