//! [`Turns`]: one turn at a time in each session, the others in a queue.

use std::collections::HashMap;
use std::fmt;
use std::hash::Hash;

rpc_core::config! {
    /// Limits on waiting turns.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct TurnLimits {
        /// Most turns waiting for one key. Default 64.
        pub max_waiting_per_key: usize = 64 => with_max_waiting_per_key,
        /// Most turns waiting for all keys together. Default 65,536.
        pub max_waiting: usize = 65_536 => with_max_waiting,
    }
}

/// Whether a turn may start. Exhaustive: a turn either runs or waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The turn runs now.
    Now,
    /// The turn waits: [`Turns::end`] returns its ticket when it starts.
    Waiting {
        /// How many turns come first, including the running one.
        ahead: usize,
    },
}

/// The error for a refused turn; nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TurnError {
    /// Too many turns wait. Retrying later is safe: the turn did not start.
    #[error("{waiting} turns are waiting already")]
    Full {
        /// How many are waiting: for this key, or in all.
        waiting: usize,
    },
    /// The ticket runs or waits already.
    #[error("the ticket is in use")]
    InUse,
}

struct Place<K, T> {
    key: K,
    before: Option<T>,
    behind: Option<T>,
}

struct Line<T> {
    running: T,
    first: Option<T>,
    last: Option<T>,
    waiting: usize,
}

/// A table that lets one turn run at a time for each key, in the order of arrival. Exoclaw
/// specification, `chat.send`, step 3.
///
/// `K` is the key whose turns must not overlap, such as a [`SessionKey`](super::SessionKey); `T` is
/// a ticket that the caller chooses for each turn, such as the numbers of a connection and a
/// request. Tickets are unique among those in the table. Both are cloned often and should be cheap
/// to clone. Every operation takes constant time, including leaving the middle of a queue. A key
/// without a turn takes no memory. The number of running turns is not limited here; the caller
/// admits each of them.
///
/// ```
/// use exoclaw_proto::session::{Turn, Turns};
///
/// let mut turns = Turns::default();
/// assert_eq!(turns.begin("session", 1), Ok(Turn::Now));
/// assert_eq!(turns.begin("session", 2), Ok(Turn::Waiting { ahead: 1 }));
/// assert_eq!(turns.begin("other", 3), Ok(Turn::Now));
/// assert_eq!(turns.end(&1), Some(2)); // the second turn runs now
/// assert_eq!(turns.end(&2), None);
/// ```
pub struct Turns<K, T> {
    limits: TurnLimits,
    lines: HashMap<K, Line<T>>,
    places: HashMap<T, Place<K, T>>,
}

impl<K: Clone + Eq + Hash, T: Clone + Eq + Hash> Turns<K, T> {
    /// Creates an empty table within these limits.
    #[must_use]
    pub fn new(limits: TurnLimits) -> Self {
        Self {
            limits,
            lines: HashMap::new(),
            places: HashMap::new(),
        }
    }

    /// Starts a turn, or queues it.
    ///
    /// # Errors
    /// [`TurnError::Full`] if it would have to wait and the queue is full, [`TurnError::InUse`].
    pub fn begin(&mut self, key: K, ticket: T) -> Result<Turn, TurnError> {
        if self.places.contains_key(&ticket) {
            return Err(TurnError::InUse);
        }
        let waiting = self.waiting();
        let (turn, before) = match self.lines.get_mut(&key) {
            None => {
                let line = Line {
                    running: ticket.clone(),
                    first: None,
                    last: None,
                    waiting: 0,
                };
                self.lines.insert(key.clone(), line);
                (Turn::Now, None)
            }
            Some(line) => {
                if line.waiting >= self.limits.max_waiting_per_key {
                    let waiting = line.waiting;
                    return Err(TurnError::Full { waiting });
                }
                if waiting >= self.limits.max_waiting {
                    return Err(TurnError::Full { waiting });
                }
                line.waiting += 1;
                let before = line.last.replace(ticket.clone());
                if line.first.is_none() {
                    line.first = Some(ticket.clone());
                }
                let ahead = line.waiting;
                (Turn::Waiting { ahead }, before)
            }
        };
        if let Some(place) = before
            .as_ref()
            .and_then(|before| self.places.get_mut(before))
        {
            place.behind = Some(ticket.clone());
        }
        let place = Place {
            key,
            before,
            behind: None,
        };
        self.places.insert(ticket, place);
        Ok(turn)
    }

    /// Ends a running turn, and returns the ticket of the next one for its key, which runs now.
    ///
    /// A waiting turn leaves the queue, so a caller that goes away can use this without knowing
    /// whether its turn runs. In that case, and for an unknown ticket, returns `None`.
    #[must_use = "the next turn runs now"]
    pub fn end(&mut self, ticket: &T) -> Option<T> {
        let Place {
            key,
            before,
            behind,
        } = self.places.remove(ticket)?;
        let line = self.lines.get_mut(&key)?;
        let next = if line.running == *ticket {
            let next = line.first.clone();
            if let Some(next) = &next {
                line.running = next.clone();
                line.waiting -= 1;
                let place = self.places.get_mut(next);
                line.first = place.and_then(|place| place.behind.take());
                match &line.first {
                    None => line.last = None,
                    Some(first) => {
                        if let Some(place) = self.places.get_mut(first) {
                            place.before = None;
                        }
                    }
                }
            } else {
                self.lines.remove(&key);
            }
            next
        } else {
            line.waiting -= 1;
            match before.as_ref().and_then(|it| self.places.get_mut(it)) {
                Some(place) => place.behind.clone_from(&behind),
                None => line.first.clone_from(&behind),
            }
            match behind.as_ref().and_then(|it| self.places.get_mut(it)) {
                Some(place) => place.before = before,
                None => line.last = before,
            }
            None
        };
        shrink(&mut self.places);
        shrink(&mut self.lines);
        next
    }

    /// Returns whether this turn runs, or `None` if the ticket is unknown.
    #[must_use]
    pub fn is_running(&self, ticket: &T) -> Option<bool> {
        let line = self.lines.get(&self.places.get(ticket)?.key)?;
        Some(line.running == *ticket)
    }

    /// Returns how many turns are running: one for each key with a turn.
    #[must_use]
    pub fn running(&self) -> usize {
        self.lines.len()
    }

    /// Returns how many turns are waiting, for all keys together.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.places.len() - self.lines.len()
    }

    /// Returns whether there is no turn.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }
}

/// Releases memory after a peak, rarely enough that the cost of an operation stays constant on
/// average.
fn shrink<A: Eq + Hash, B>(map: &mut HashMap<A, B>) {
    const KEPT: usize = 64;
    if map.capacity() > KEPT && map.len() < map.capacity() / 8 {
        map.shrink_to((map.len() * 2).max(KEPT / 2));
    }
}

impl<K: Clone + Eq + Hash, T: Clone + Eq + Hash> Default for Turns<K, T> {
    fn default() -> Self {
        Self::new(TurnLimits::default())
    }
}

impl<K, T> fmt::Debug for Turns<K, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Turns")
            .field("limits", &self.limits)
            .field("running", &self.lines.len())
            .field("waiting", &(self.places.len() - self.lines.len()))
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn turns_of_one_key_run_one_by_one_in_order() {
        let mut turns = Turns::default();
        assert_eq!(turns.begin("k", 1), Ok(Turn::Now));
        assert_eq!(turns.begin("k", 2), Ok(Turn::Waiting { ahead: 1 }));
        assert_eq!(turns.begin("k", 3), Ok(Turn::Waiting { ahead: 2 }));
        assert_eq!(
            [1, 2, 3].map(|t| turns.is_running(&t)),
            [Some(true), Some(false), Some(false)]
        );
        assert_eq!(
            [1, 2, 3].map(|ticket| turns.end(&ticket)),
            [Some(2), Some(3), None]
        );
        assert!(turns.is_empty());
        assert_eq!(turns.begin("k", 4), Ok(Turn::Now));
    }

    #[test]
    fn keys_do_not_wait_for_each_other() {
        let mut turns = Turns::default();
        assert_eq!(turns.begin("a", 1), Ok(Turn::Now));
        assert_eq!(turns.begin("b", 2), Ok(Turn::Now));
        assert_eq!((turns.running(), turns.waiting()), (2, 0));
    }

    #[test]
    fn who_leaves_the_line_is_not_called() {
        let mut turns = Turns::default();
        for ticket in 1..=4 {
            turns.begin("k", ticket).unwrap();
        }
        assert_eq!(turns.end(&3), None);
        assert_eq!(turns.is_running(&3), None);
        assert_eq!(turns.end(&1), Some(2));
        assert_eq!(turns.end(&4), None);
        assert_eq!(turns.end(&2), None);
        assert_eq!(turns.end(&2), None);
    }

    #[test]
    fn lines_are_bounded_for_each_key_and_in_all() {
        let limits = TurnLimits::default()
            .with_max_waiting_per_key(1)
            .with_max_waiting(2);
        let mut turns = Turns::new(limits);
        for (key, ticket) in [("a", 1), ("a", 2), ("b", 3), ("b", 4), ("c", 5)] {
            turns.begin(key, ticket).unwrap();
        }
        assert_eq!(turns.begin("a", 6), Err(TurnError::Full { waiting: 1 }));
        assert_eq!(turns.begin("c", 6), Err(TurnError::Full { waiting: 2 }));
        assert_eq!(turns.begin("d", 6), Ok(Turn::Now));
        assert_eq!(turns.begin("d", 5), Err(TurnError::InUse));
    }

    #[test]
    fn sixty_four_turns_of_a_key_and_65536_in_all_wait_unless_told_otherwise() {
        let mut turns = Turns::default();
        for key in 0..1_024 {
            assert_eq!(turns.begin(key, (key, 0)), Ok(Turn::Now));
            for number in 1..=64 {
                let waits = Turn::Waiting { ahead: number };
                assert_eq!(turns.begin(key, (key, number)), Ok(waits));
            }
            if key == 0 {
                let refused = turns.begin(key, (key, 65));
                assert_eq!(refused, Err(TurnError::Full { waiting: 64 }));
            }
        }
        assert_eq!(turns.begin(1_024, (1_024, 0)), Ok(Turn::Now));
        let refused = turns.begin(1_024, (1_024, 1));
        assert_eq!(refused, Err(TurnError::Full { waiting: 65_536 }));
    }

    #[test]
    fn memory_is_given_back_after_a_rush() {
        let mut turns = Turns::default();
        for ticket in 0..10_000 {
            turns.begin(ticket % 5_000, ticket).unwrap();
        }
        for ticket in 0..10_000 {
            let _ = turns.end(&ticket);
        }
        assert!(turns.is_empty());
        assert!(turns.places.capacity() < 128 && turns.lines.capacity() < 128);
    }

    proptest! {
        #[test]
        fn it_agrees_with_plain_queues(
            steps in prop::collection::vec((any::<bool>(), 0_u8..3, 0_u8..12), 0..200),
        ) {
            let (per_key, in_all) = (3, 5);
            let limits = TurnLimits::default()
                .with_max_waiting_per_key(per_key)
                .with_max_waiting(in_all);
            let mut turns = Turns::new(limits);
            // The first of each queue runs.
            let mut naive: [VecDeque<u8>; 3] = Default::default();
            for (begin, key, ticket) in steps {
                let found = naive.iter().position(|queue| queue.contains(&ticket));
                if begin {
                    let all: usize = naive.iter().map(|queue| queue.len().saturating_sub(1)).sum();
                    let queue = &mut naive[usize::from(key)];
                    let ahead = queue.len();
                    let expected = if found.is_some() {
                        Err(TurnError::InUse)
                    } else if ahead == 0 {
                        Ok(Turn::Now)
                    } else if ahead > per_key {
                        Err(TurnError::Full { waiting: per_key })
                    } else if all >= in_all {
                        Err(TurnError::Full { waiting: all })
                    } else {
                        Ok(Turn::Waiting { ahead })
                    };
                    if expected.is_ok() {
                        queue.push_back(ticket);
                    }
                    prop_assert_eq!(turns.begin(key, ticket), expected);
                } else {
                    let expected = found.and_then(|at| {
                        let queue = &mut naive[at];
                        let ran = queue[0] == ticket;
                        queue.retain(|other| *other != ticket);
                        queue.front().copied().filter(|_| ran)
                    });
                    prop_assert_eq!(turns.end(&ticket), expected);
                }
                for (key, queue) in (0..).zip(&naive) {
                    prop_assert_eq!(turns.lines.get(&key).map_or(0, |line| line.waiting), queue.len().saturating_sub(1));
                    for (at, ticket) in queue.iter().enumerate() {
                        prop_assert_eq!(turns.is_running(ticket), Some(at == 0));
                    }
                }
                let all: usize = naive.iter().map(VecDeque::len).sum();
                prop_assert_eq!(turns.running() + turns.waiting(), all);
            }
        }
    }
}
