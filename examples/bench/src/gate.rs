//! `bench gate`: what is counted beside what [`goals`](crate::goals) asks. Nothing here is timed, so
//! that it says the same on a busy machine.

use crate::callgrind::{Cost, count_all};
use crate::goals::{self, Goal};
use crate::pending;
use crate::work::{self, OURS, Work};

/// Counts all rows that have a goal and says what it found, a line each. Whether all goals are met.
pub(crate) fn gate() -> bool {
    let works = work::all();
    let mut jobs: Vec<(&Work, &str)> = Vec::new();
    // The long one first, so that it does not end last and alone.
    for work in works.iter().rev().filter(|work| is_gated(work)) {
        let ways = work.ways.iter().map(|(way, _)| *way);
        let counted = ways.filter(|way| *way == OURS || goals::find(work.name, way).is_some());
        jobs.extend(counted.map(|way| (work, way)));
    }
    let costs = count_all(&jobs);
    let cost = |work: &Work, way: &str| -> Option<Cost> {
        let same = |job: &&(&Work, &str)| job.0.name == work.name && job.1 == way;
        let at = jobs.iter().position(|job| same(&job))?;
        costs[at]
    };
    let mut gate = Gate::default();
    for work in works.iter().filter(|work| is_gated(work)) {
        let Some(ours) = cost(work, OURS) else {
            gate.say(
                false,
                "valgrind was not found: nothing can be counted",
                None,
            );
            return false;
        };
        for (peer, _) in &work.ways {
            let goal = goals::find(work.name, peer);
            if let (Some(goal), Some(theirs)) = (goal, cost(work, peer)) {
                gate.ratio(goal, theirs.instructions / ours.instructions);
            }
        }
        if let Some((most, why)) = goals::most_of_call(work.name) {
            gate.call(work.name, ours.instructions, most, why);
        }
        if let Some(most) = work.max_allocations {
            let what = format!("{}: {:.2} allocations", work.name, ours.allocations);
            // A table that grows now and then rounds to nothing.
            gate.at_most(&what, ours.allocations - 0.01, most);
        }
    }
    let hot = |way: &str| -> f64 {
        let hot = works.iter().filter(|work| goals::HOT.contains(&work.name));
        hot.filter_map(|work| cost(work, way))
            .map(|cost| cost.instructions)
            .sum()
    };
    gate.ratio(goals::HOT_SUM, hot(goals::HOT_SUM.peer) / hot(OURS));
    let pending = |work: Option<&Work>| work.and_then(|work| cost(work, OURS));
    let one = pending(works.iter().find(|work| work.name == pending::ONE));
    let many = pending(works.iter().find(|work| work.name == pending::MANY));
    if let (Some(one), Some(many)) = (one, many) {
        let growth = many.instructions / one.instructions;
        let what = format!(
            "{}: {growth:.2} times the instructions of one",
            pending::MANY
        );
        gate.at_most(&what, growth, goals::PENDING_GROWTH);
    }
    let bytes = pending::bytes_in_child();
    let what = format!("{}: {bytes:.0} bytes per call", pending::MANY);
    gate.at_most(&what, bytes, goals::PENDING_BYTES);
    gate.end()
}

/// Whether the gate looks at a row at all.
fn is_gated(work: &Work) -> bool {
    let mut ways = work.ways.iter();
    let is_call = goals::most_of_call(work.name).is_some();
    is_call
        || work.max_allocations.is_some()
        || ways.any(|(way, _)| goals::find(work.name, way).is_some())
}

#[derive(Default)]
struct Gate {
    met: u32,
    red: Vec<String>,
    better: Vec<String>,
}

impl Gate {
    fn ratio(&mut self, goal: Goal, ratio: f64) {
        let Goal {
            work,
            peer,
            least,
            why_missed,
        } = goal;
        let line = format!("{work} beside {peer}: {ratio:.3} (goal {least:.2})");
        let is_met = goal.is_met(ratio);
        if is_met && why_missed.is_some() {
            self.better.push(format!("{line} is met now"));
        }
        self.say(is_met, &line, why_missed);
    }

    /// What both ends take for a call.
    fn call(&mut self, name: &str, found: f64, most: f64, why: Option<&str>) {
        let line = format!("{name}: {found:.0} instructions of both ends");
        let margin = goals::CALL_MARGIN;
        if found < most * (1.0 - margin) {
            let line = format!("{line} (at most {most}): can be lowered");
            self.better.push(line);
        }
        let most = (most * (1.0 + margin)).round();
        self.say(found <= most, &format!("{line} (at most {most})"), why);
    }

    fn at_most(&mut self, what: &str, found: f64, most: f64) {
        self.say(found <= most, &format!("{what} (at most {most})"), None);
    }

    fn say(&mut self, is_met: bool, line: &str, why_missed: Option<&str>) {
        if is_met {
            self.met += 1;
            println!("ok    {line}");
            return;
        }
        let why = why_missed.map_or(String::new(), |why| format!(": {why}"));
        println!("RED   {line}{why}");
        self.red.push(format!("{line}{why}"));
    }

    fn end(self) -> bool {
        println!();
        for line in &self.better {
            println!("better than src/goals.rs says: {line}");
        }
        for line in &self.red {
            println!("red: {line}");
        }
        println!("{} met, {} red", self.met, self.red.len());
        self.red.is_empty()
    }
}
