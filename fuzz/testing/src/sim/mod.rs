//! Seeded schedules: random, repeatable, and the failing seed is printed.
//!
//! - [`run`]: tests with a seed each; [`lifecycles`]: as many as the environment asks for, with figures;
//! - [`Line`]: two machines and a line between them that is slow, jammed, cut or half open;
//! - [`Lives`]: the clients of a protocol on such lines under one clock, and what a crate gives for them;
//! - [`cluster`]: nodes on one store, and what happens to them.
//!
//! `SIM_SEED` in the environment repeats one seed and narrates it, `SIM_SCHEDULES` sets how many
//! [`lifecycles`] are run, and `SIM_FIRST` which seed is the first.

pub mod cluster;
mod dialling;
mod lifecycle;
mod line;
mod lives;

use std::ops::Range;
use std::sync::LazyLock;

pub use lifecycle::{Tally, lifecycles};
pub use line::{Bounds, Line};
pub use lives::{Connection, Connections, ConnectionsOf, Effect, Lives, Opened, random_lives};
pub use rpc_core::testing::schedule::Rng;

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
pub fn trace(line: impl FnOnce() -> String) {
    static TOLD: LazyLock<bool> = LazyLock::new(|| only_seed().is_some());
    if *TOLD {
        eprintln!("{}", line());
    }
}

/// The seed that is to be repeated.
fn only_seed() -> Option<u64> {
    std::env::var("SIM_SEED").ok()?.parse().ok()
}

/// The seeds of `runs` runs: those from `SIM_FIRST` in the environment (0), or `SIM_SEED` alone.
fn seeds(runs: u64) -> Range<u64> {
    let first = || std::env::var("SIM_FIRST").ok()?.parse().ok();
    let (first, runs) = only_seed().map_or_else(|| (first().unwrap_or(0), runs), |seed| (seed, 1));
    first..first.saturating_add(runs)
}

/// Runs `test` with `runs` seeds, which `SIM_SEED` and `SIM_FIRST` in the environment choose.
///
/// # Panics
/// If a run returns an error: with the seed, which repeats it.
pub fn run(runs: u64, test: impl Fn(&mut Rng) -> Outcome) {
    for seed in seeds(runs) {
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
