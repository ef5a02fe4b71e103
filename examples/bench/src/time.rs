//! What is counted, in time: as a loop in one process, which a reader would try first. Nothing is
//! asked of these; a goal is judged by what is counted.

use std::cell::Cell;
use std::time::{Duration, Instant};

use crate::report::Report;
use crate::work::{Run, Work};

/// Many short measurements: the least of each is from a moment when nothing else ran.
const TIMES: usize = 31;
/// One measurement is about this long.
const NANOSECONDS: f64 = 1e6;

/// Adds the rows of a work to a section: ours and the peers in turn. `first` rounds are the fewest
/// that are done at once.
pub(crate) fn rows(report: &mut Report, section: &str, work: &Work, first: u64) {
    eprintln!("{}, in time", work.name);
    let mut ours = Loop::new(work.ours, first);
    for peer in &work.peers {
        let Some(run) = work.way(peer.name) else {
            continue;
        };
        let mut theirs = Loop::new(run, first);
        for _ in 0..TIMES {
            ours.measure();
            theirs.measure();
        }
        let (least, their_least) = (ours.least(), theirs.least());
        let text = |time: f64| match time {
            ..1e4 => format!("{time:.0} ns"),
            _ => format!("{time:.0} ns, {:.0}/s", 1e9 / time),
        };
        let theirs = (peer.name, text(their_least));
        let ratio = (their_least / least, None);
        report.row(section, work.name, text(least), theirs, ratio);
    }
}

struct Loop {
    run: Run,
    rounds: u64,
    /// The least time of so many rounds, and of twice as many: their difference is without what is
    /// prepared before the first round.
    once: f64,
    twice: f64,
    /// The least time of a round, of a work that says when its rounds began.
    told: f64,
}

impl Loop {
    /// Finds out how many rounds fill a measurement, which warms it up too.
    fn new(run: Run, first: u64) -> Self {
        let mut rounds = first;
        while timed(run, 2 * rounds) - timed(run, rounds) < NANOSECONDS / 2.0 {
            rounds *= 2;
        }
        Self {
            run,
            rounds,
            once: f64::INFINITY,
            twice: f64::INFINITY,
            told: f64::INFINITY,
        }
    }

    fn measure(&mut self) {
        self.once = self.once.min(timed(self.run, self.rounds));
        self.twice = self.twice.min(timed(self.run, 2 * self.rounds));
        if let Some(took) = TOOK.get() {
            let round = took.as_nanos() as f64 / (2 * self.rounds) as f64;
            self.told = self.told.min(round);
        }
    }

    /// Nanoseconds per round.
    fn least(&self) -> f64 {
        match self.told {
            f64::INFINITY => (self.twice - self.once) / self.rounds as f64,
            told => told,
        }
    }
}

thread_local! {
    /// What a work said that its rounds took.
    static TOOK: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Says at the end of a work's rounds when they began: for works whose preparation takes so long
/// that a difference would be lost in it.
pub(crate) fn began(at: Instant) {
    TOOK.set(Some(at.elapsed()));
}

/// Nanoseconds of so many rounds.
fn timed(run: Run, rounds: u64) -> f64 {
    TOOK.set(None);
    let start = Instant::now();
    run(rounds);
    let all = start.elapsed();
    TOOK.get().unwrap_or(all).as_nanos() as f64
}
