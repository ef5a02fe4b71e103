//! [`Numbers`]: short numbers in place of long ids, for people.

use std::collections::VecDeque;

/// Most remembered ids. An older one gets a new number.
const REMEMBERED: usize = 1_000;

/// A numbering of ids, from 1 in the order of appearance.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    /// How many ids there were.
    last: u64,
    /// The latest ids in their order.
    ids: VecDeque<Box<str>>,
}

impl Numbers {
    /// Returns the number of this id: its earlier one, or the next one.
    pub(crate) fn of(&mut self, id: &str) -> u64 {
        if let Some(later) = self.ids.iter().rev().position(|it| **it == *id) {
            return self.last.saturating_sub(later as u64);
        }
        if self.ids.len() == REMEMBERED {
            self.ids.pop_front();
        }
        self.ids.push_back(id.into());
        self.last = self.last.saturating_add(1);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_counted_as_they_appear() {
        let mut numbers = Numbers::default();
        let counted = ["a", "b", "a", "c"].map(|id| numbers.of(id));
        assert_eq!(counted, [1, 2, 1, 3]);
    }

    #[test]
    fn only_the_last_ids_are_remembered_and_no_number_comes_again() {
        let mut numbers = Numbers::default();
        for number in 1..=5_000_u64 {
            assert_eq!(numbers.of(&number.to_string()), number);
        }
        assert_eq!(numbers.ids.len(), REMEMBERED);
        assert_eq!(numbers.of("4001"), 4001);
        assert_eq!(numbers.of("4000"), 5001);
    }
}
