//! `bench gate`: what is counted beside what [`goals`](crate::goals) asks. Nothing here is timed, so
//! that it says the same on a busy machine.

use crate::callgrind::count_all;
use crate::goals;
use crate::pending;
use crate::work::{self, OURS};

/// Counts all rows and prints them, a line each. Whether all goals are met but those out of reach, and nothing that
/// was reached instead of those is lost.
pub(crate) fn gate() -> bool {
    let works = work::all();
    // The long ones first, so that they do not end last and alone.
    let jobs = works.iter().rev().flat_map(|work| {
        let ways = work.ways.iter();
        ways.map(|way| (work.name.as_str(), way.name, work.rounds))
    });
    let costs = count_all(jobs.collect());
    let cost = |work: &str, way: &str| costs[&(work, way)];
    let mut gate = Gate::default();
    for work in &works {
        let ours = cost(&work.name, OURS);
        for peer in &work.ways[1..] {
            let ratio = cost(&work.name, peer.name).instructions / ours.instructions;
            let what = format!("{} beside {}", work.name, peer.name);
            gate.ratio(&what, ratio, peer.least, peer.missed);
        }
        if let Some((.., most)) = goals::CALLS.iter().find(|call| call.0 == work.name) {
            gate.call(&work.name, ours.instructions, *most);
        }
        if let Some(most) = work.max_allocations {
            let what = format!("{}: {:.2} allocations", work.name, ours.allocations);
            // A table that grows now and then rounds to nothing.
            gate.at_most(&what, ours.allocations - 0.01, most);
        }
    }
    let hot = |way: &str| -> f64 {
        let hot = works.iter().filter(|work| work.is_hot);
        hot.map(|work| cost(&work.name, way).instructions).sum()
    };
    let ratio = hot("sonic-rs") / hot(OURS);
    gate.ratio(
        "the five hot frames beside sonic-rs",
        ratio,
        goals::SONIC,
        None,
    );
    let [one, many] = [pending::ONE, pending::MANY].map(|name| cost(name, OURS).instructions);
    let what = format!(
        "{}: {:.2} times the instructions of one",
        pending::MANY,
        many / one
    );
    gate.at_most(&what, many / one, goals::PENDING_GROWTH);
    let bytes = pending::bytes_in_child();
    let what = format!("{}: {bytes:.0} bytes per call", pending::MANY);
    gate.at_most(&what, bytes, goals::PENDING_BYTES);
    gate.end()
}

#[derive(Default)]
struct Gate {
    met: u32,
    missed: u32,
    red: Vec<String>,
    better: Vec<String>,
}

impl Gate {
    fn ratio(&mut self, what: &str, ratio: f64, least: f64, missed: Option<(f64, &str)>) {
        let line = format!("{what}: {ratio:.3} (goal {least:.2})");
        // What rounding shows as enough is enough, as in the table.
        let is_met = ratio >= least - 0.004;
        match missed {
            Some(_) if is_met => self.better.push(format!("{line} is met now")),
            Some((reached, why)) if ratio >= reached => {
                println!("RED   {line}, out of reach: {why}");
                self.missed += 1;
                return;
            }
            _ => {}
        }
        self.record(is_met, line);
    }

    /// What both ends take for a call.
    fn call(&mut self, name: &str, found: f64, most: f64) {
        let line = format!("{name}: {found:.0} instructions of both ends");
        if found < most * (1.0 - goals::CALL_MARGIN) {
            let line = format!("{line} (at most {most}): can be lowered");
            self.better.push(line);
        }
        let most = (most * (1.0 + goals::CALL_MARGIN)).round();
        self.record(found <= most, format!("{line} (at most {most})"));
    }

    fn at_most(&mut self, what: &str, found: f64, most: f64) {
        self.record(found <= most, format!("{what} (at most {most})"));
    }

    fn record(&mut self, is_met: bool, line: String) {
        if is_met {
            self.met += 1;
            println!("ok    {line}");
            return;
        }
        println!("RED   {line}");
        self.red.push(line);
    }

    fn end(self) -> bool {
        println!();
        for line in &self.better {
            println!("better than its goal says: {line}");
        }
        for line in &self.red {
            println!("red: {line}");
        }
        println!(
            "{} met, {} out of reach, {} red",
            self.met,
            self.missed,
            self.red.len()
        );
        self.red.is_empty()
    }
}
