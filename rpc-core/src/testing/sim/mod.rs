//! Seeded schedules: random, repeatable, and the failing seed is printed.
//!
//! - [`run`]: tests with a seed each; [`lives`]: as many as the environment asks for, with figures;
//! - [`Line`]: two machines and a line between them that is slow, jammed, cut or half open;
//! - [`World`]: several lines and what is behind them, under one clock.
//!
//! `SIM_SEED` in the environment repeats one seed and narrates it, `SIM_SCHEDULES` sets how many
//! [`lives`] are lived.

mod line;
mod lives;
mod world;

use std::sync::LazyLock;
use std::time::Duration;

pub use line::{Bounds, End, Line};
pub use lives::{Tally, lives};
pub use world::{Dialling, World, advance, settle};

use crate::id::unique::{STEP, finish};

/// A small repeatable random number generator (`SplitMix64`). Not for secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(u64);

impl Rng {
    /// A generator with this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(STEP);
        finish(self.0)
    }

    /// A number below `bound` (0 if that is 0).
    pub const fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 {
            0
        } else {
            self.next_u64() % bound
        }
    }

    /// True in `percent` of 100 cases.
    pub const fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// A duration below `bound`, in whole milliseconds.
    pub fn duration(&mut self, bound: Duration) -> Duration {
        let millis = u64::try_from(bound.as_millis()).unwrap_or(u64::MAX);
        Duration::from_millis(self.below(millis))
    }

    /// One of these, or `None` if there are none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let index = usize::try_from(self.below(from.len() as u64)).ok()?;
        from.get(index)
    }
}

/// What happens next in a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// The client starts a call.
    Call,
    /// The server answers one of its open requests, perhaps not the oldest.
    Answer,
    /// The client gives one of its calls up.
    Cancel,
    /// The next frame of the server is lost.
    LoseAnswer,
    /// Time passes.
    Wait(Duration),
    /// Frames take this long from now on.
    Latency(Duration),
    /// The line is cut; a new pair of machines follows.
    Cut,
}

/// A random schedule of `len` steps: mostly calls and answers, some faults.
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

/// The value, or what is broken.
pub type Outcome<T = ()> = Result<T, String>;

/// Fails with `what` if it does not hold.
///
/// # Errors
/// What is broken.
pub fn ensure(holds: bool, what: impl FnOnce() -> String) -> Outcome {
    if holds { Ok(()) } else { Err(what()) }
}

/// Prints a line of the narration, if one seed is repeated.
#[expect(clippy::print_stderr, reason = "what a failing test has to say")]
pub fn tell(line: impl FnOnce() -> String) {
    static TOLD: LazyLock<bool> = LazyLock::new(|| only_seed().is_some());
    if *TOLD {
        eprintln!("{}", line());
    }
}

/// The seed that is to be repeated.
fn only_seed() -> Option<u64> {
    std::env::var("SIM_SEED").ok()?.parse().ok()
}

/// Runs `test` with `runs` seeds. `SIM_SEED` in the environment runs that one seed only.
///
/// # Panics
/// If a run returns an error: with the seed, which repeats it.
pub fn run(runs: u64, test: impl Fn(&mut Rng) -> Outcome) {
    let seeds = only_seed().map_or(0..runs, |seed| seed..seed.saturating_add(1));
    for seed in seeds {
        if let Err(error) = test(&mut Rng::new(seed)) {
            fail(seed, &error);
        }
    }
}

#[track_caller]
fn fail(seed: u64, error: &str) -> ! {
    super::fail(&format!("SIM_SEED={seed} repeats this: {error}"))
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

    #[test]
    #[should_panic(expected = "SIM_SEED=3 repeats this: boom")]
    fn a_failing_run_names_its_seed() {
        run(10, |rng| {
            if *rng == Rng::new(3) {
                Err("boom".to_owned())
            } else {
                Ok(())
            }
        });
    }
}
