//! The codec's rows in time, as a loop in one process: what a reader would try first. Nothing is
//! asked of these; a goal is judged by what is counted.

use std::time::Instant;

use crate::report::Report;
use crate::work::{Run, Work};

const TIMES: usize = 7;
/// One measurement is about this long.
const NANOSECONDS: f64 = 10e6;

/// Ours and the peers in turn.
pub(crate) fn table(report: &mut Report, works: &[Work]) {
    for work in works {
        eprintln!("{}, in time", work.name);
        let ours = Loop::new(work.ours);
        for peer in &work.peers {
            let Some(run) = work.way(peer.name) else {
                continue;
            };
            let theirs = Loop::new(run);
            let both: Vec<_> = (0..TIMES)
                .map(|_| (ours.measure(), theirs.measure()))
                .collect();
            let text = |times: &mut dyn Iterator<Item = f64>| {
                format!("{:.0} ns", times.fold(f64::INFINITY, f64::min))
            };
            report.repeated(
                "time",
                work.name,
                text(&mut both.iter().map(|(ours, _)| *ours)),
                (peer.name, text(&mut both.iter().map(|(_, theirs)| *theirs))),
                (
                    both.iter().map(|(ours, theirs)| theirs / ours).collect(),
                    None,
                ),
            );
        }
    }
}

struct Loop {
    run: Run,
    rounds: u64,
}

impl Loop {
    /// Finds out how many rounds fill a measurement, which warms it up too.
    fn new(run: Run) -> Self {
        let mut rounds = 4;
        loop {
            let took = timed(run, rounds);
            if took > NANOSECONDS / 4.0 {
                let rounds = NANOSECONDS / took * rounds as f64;
                let rounds = (rounds as u64).max(1);
                return Self { run, rounds };
            }
            rounds *= 4;
        }
    }

    /// Nanoseconds per round.
    fn measure(&self) -> f64 {
        timed(self.run, self.rounds) / self.rounds as f64
    }
}

fn timed(run: Run, rounds: u64) -> f64 {
    let start = Instant::now();
    run(rounds);
    start.elapsed().as_nanos() as f64
}
