//! [`lifecycles`]: many seeded lifecycles on all processors, and a [`Tally`] of what happened in them.

use std::fmt;
use std::ops::AddAssign;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use super::{Outcome, Rng, fail, seeds};

/// So many seeds are taken at once.
const BLOCK: u64 = 64;
/// Fewer lifecycles than this need one thread only.
const FEW: u64 = 2_000;

/// What happened in some lifecycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tally {
    /// Lifecycles.
    pub lifecycles: u64,
    /// Lines that were opened.
    pub lines: u64,
    /// Frames that left a machine.
    pub frames: u64,
    /// Faults: cuts, half-open lines, jams, applications that hang, garbage, clock jumps.
    pub faults: u64,
    /// Calls that ended, whatever way.
    pub ended: u64,
    /// Of these, calls that ended with what the peer answered.
    pub answered: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.lifecycles += other.lifecycles;
        self.lines += other.lines;
        self.frames += other.frames;
        self.faults += other.faults;
        self.ended += other.ended;
        self.answered += other.answered;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} schedules: {} lines, {} frames, {} faults, {} calls ended, {} of them answered",
            self.lifecycles, self.lines, self.frames, self.faults, self.ended, self.answered
        )
    }
}

/// Runs as many lifecycles as `SIM_SCHEDULES` in the environment says, or `few` of them, and prints
/// what happened under this name. `SIM_SEED` runs that one only, `SIM_FIRST` is the first of them.
///
/// # Panics
/// If one returns an error or panics: with the seed, which repeats it.
#[expect(clippy::print_stderr, reason = "the figures of a test")]
pub fn lifecycles(name: &str, few: u64, run: impl Fn(&mut Rng, &mut Tally) -> Outcome + Sync) {
    let asked = std::env::var("SIM_SCHEDULES").ok();
    let count = asked.and_then(|count| count.parse().ok()).unwrap_or(few);
    let seeds = seeds(count);
    let threads = if count < FEW {
        1
    } else {
        thread::available_parallelism().map_or(1, usize::from)
    };
    let next = AtomicU64::new(seeds.start);
    let total = Mutex::new((Tally::default(), None::<(u64, String)>));
    let work = || {
        let mut tally = Tally::default();
        let mut failed = None;
        while failed.is_none() {
            let start = next.fetch_add(BLOCK, Ordering::Relaxed);
            if start >= seeds.end {
                break;
            }
            let mut block = start..(start.saturating_add(BLOCK)).min(seeds.end);
            failed = block.find_map(|seed| {
                tally.lifecycles += 1;
                Some((seed, one(&run, seed, &mut tally).err()?))
            });
        }
        if failed.is_some() {
            next.store(seeds.end, Ordering::Relaxed);
        }
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        total.0 += tally;
        total.1 = total.1.take().or(failed);
    };
    thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    let (tally, failed) = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some((seed, error)) = failed {
        fail(seed, &error);
    }
    eprintln!("{name}: {tally}");
}

/// One lifecycle. A panic is a failure like any other, so that it names its seed.
fn one(run: &impl Fn(&mut Rng, &mut Tally) -> Outcome, seed: u64, tally: &mut Tally) -> Outcome {
    let run = AssertUnwindSafe(|| run(&mut Rng::new(seed), tally));
    catch_unwind(run).unwrap_or_else(|_| Err("it panicked, see above".to_owned()))
}
