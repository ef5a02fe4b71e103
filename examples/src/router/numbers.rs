//! [`Numbers`]: short numbers in place of long ids, for people.

use std::collections::VecDeque;

/// Most remembered ids. An older one gets a new number.
const REMEMBERED: usize = 1_000;

/// A numbering of ids, from 1 in the order of appearance.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    /// How many ids were forgotten.
    forgotten: u64,
    ids: VecDeque<String>,
}

impl Numbers {
    /// Returns the number of this id: its earlier one, or the next one.
    pub fn of(&mut self, id: &str) -> u64 {
        // Most questions are about one of the last.
        let known = self.ids.iter().rposition(|known| known == id);
        let at = known.unwrap_or_else(|| {
            if self.ids.len() == REMEMBERED {
                self.ids.pop_front();
                self.forgotten += 1;
            }
            self.ids.push_back(id.to_owned());
            self.ids.len() - 1
        });
        let at = u64::try_from(at).unwrap_or(u64::MAX);
        self.forgotten.saturating_add(at).saturating_add(1)
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
