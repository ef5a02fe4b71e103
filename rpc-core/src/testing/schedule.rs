//! Seeded schedules for [`every_call_ends_once`](super::conformance::every_call_ends_once): random, and
//! the same seed gives the same one.

use std::time::Duration;

use crate::id::unique::{STEP, finish};

/// A small repeatable random number generator (`SplitMix64`). Not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(u64);

impl Rng {
    /// Creates a generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        finish(self.0)
    }

    /// Returns a number below `bound` (0 if that is 0).
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            0
        } else {
            self.next_u64() % bound
        }
    }

    /// Returns `true` in `percent` of 100 cases.
    pub const fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// Returns a duration below `bound`, in whole milliseconds.
    pub fn duration(&mut self, bound: Duration) -> Duration {
        let millis = u64::try_from(bound.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.below(millis))
    }

    /// Returns one of these, or `None` if there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below(from.len() as u64)).ok()?;
        from.get(index)
    }
}

/// A step of a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The client starts a call.
    Call,
    /// The server answers one of its open requests, perhaps not the oldest.
    Answer,
    /// The client cancels one of its calls.
    Cancel,
    /// The next frame of the server is lost.
    LoseAnswer,
    /// Time passes.
    Wait(Duration),
    /// Frames take this long from now on.
    Latency(Duration),
    /// The connection is cut; a new pair of machines follows.
    Cut,
}

/// Returns a random schedule of `len` steps: mostly calls and answers, some faults.
pub fn schedule(rng: &mut Rng, len: usize) -> Vec<Step> {
    std::iter::repeat_with(|| match rng.below(100) {
        0..35 => Step::Call,
        35..65 => Step::Answer,
        65..72 => Step::Cancel,
        72..77 => Step::LoseAnswer,
        77..92 => Step::Wait(rng.duration(Duration::from_secs(60))),
        92..97 => Step::Latency(rng.duration(Duration::from_millis(500))),
        _ => Step::Cut,
    })
    .take(len)
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_schedule() {
        let one = schedule(&mut Rng::new(7), 50);
        assert_eq!(one, schedule(&mut Rng::new(7), 50));
        assert_ne!(one, schedule(&mut Rng::new(8), 50));
    }
}
