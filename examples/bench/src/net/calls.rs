//! Goals 5 and 6: what a call costs both ends.

use std::time::Instant;

use super::child::Child;
use super::rows::{APART, ROWS, Row, TENTH_MORE};
use super::{Asked, foreign, in_turn, least, ratios};
use crate::process::on_one_processor;
use crate::report::Report;
use crate::table::Wanted;

/// How often everything is measured.
const TIMES: usize = 5;

pub(crate) fn table(report: &mut Report, wanted: &Wanted<'_>, quick: bool) {
    for row in ROWS {
        let name = row.name();
        match row.in_flight {
            1 => {
                let name = format!("{name}, both ends on one processor");
                if !wanted.row("5", &name) {
                    continue;
                }
                let measured = on_one_processor(|| measure(report, "5", &name, row, quick));
                if measured.is_none() {
                    report.missing("5", &name, "", "there is no taskset");
                }
            }
            _ if wanted.row("6", &name) => measure(report, "6", &name, row, quick),
            _ => {}
        }
    }
    let name = format!("{}, on two processors", APART.name());
    if wanted.row("5", &name) {
        measure(report, "5", &name, &APART, quick);
    }
}

fn measure(report: &mut Report, goal: &str, name: &str, row: &Row, quick: bool) {
    let calls = row.calls / if quick { 4 } else { 1 };
    let what = format!("{name}, CPU of both ends per call");
    let mut there: Vec<Asked> = Vec::new();
    for peer in row.peers {
        match foreign::install(peer.0) {
            Ok(()) => there.push(*peer),
            Err(why) => report.missing(goal, &what, peer.0, &why),
        }
    }
    let costs = in_turn(TIMES, row.end, &there, |end| {
        // The foreign ones take long enough with fewer.
        let fewer = if foreign::is_foreign(end) { 8 } else { 1 };
        let kind = format!("{end}: {}", row.work);
        call_cost(&kind, row.in_flight, calls / fewer)
    });
    let Some((ours, theirs)) = costs.split_first() else {
        return;
    };
    let cpu = |costs: &[CallCost]| {
        let cpu = least(costs.iter().map(|cost| cost.cpu));
        format!("{:.2} µs", cpu / 1e3)
    };
    for ((peer, at_least), theirs) in there.iter().zip(theirs) {
        let all = ratios(ours, theirs, |cost| cost.cpu);
        report.repeated(
            goal,
            &what,
            cpu(ours),
            (peer, cpu(theirs)),
            (all, *at_least),
        );
    }
    if row.in_flight > 1 {
        return;
    }
    // How long one waits is told only where nothing queues.
    let what = format!("{name}, median time until the answer");
    let median = |costs: &[CallCost]| {
        let median = least(costs.iter().map(|cost| cost.median));
        format!("{:.0} µs", median / 1e3)
    };
    for ((peer, cpu_goal), theirs) in there.iter().zip(theirs) {
        let all = ratios(ours, theirs, |cost| cost.median);
        let at_least = cpu_goal.filter(|_| *cpu_goal == TENTH_MORE);
        let theirs = (*peer, median(theirs));
        report.repeated(goal, &what, median(ours), theirs, (all, at_least));
    }
}

pub(super) struct CallCost {
    /// Nanoseconds of CPU time of both ends per call.
    pub(super) cpu: f64,
    /// Median of the time until the answer, in nanoseconds.
    median: f64,
    /// The most resident bytes of both ends together.
    pub(super) peak: f64,
    /// Nanoseconds that went by per call.
    pub(super) wall: f64,
}

pub(super) fn call_cost(kind: &str, in_flight: usize, calls: usize) -> CallCost {
    eprintln!("{kind}: {in_flight} in flight");
    let (server, address) = Child::server(kind);
    let (in_flight, count) = (in_flight.to_string(), calls.to_string());
    let client = Child::start(kind, &["load", kind, &address, &in_flight, &count]);
    cost_of(client, &[server], calls)
}

/// What the calls of a client cost it and the other processes that take part.
pub(super) fn cost_of(mut client: Child, others: &[Child], calls: usize) -> CallCost {
    client.line();
    let cpu = |client: &Child| client.cpu() + others.iter().map(Child::cpu).sum::<u64>();
    let (before, start) = (cpu(&client), Instant::now());
    client.go();
    let median = client.line().parse().unwrap();
    let wall = start.elapsed().as_nanos() as f64 / calls as f64;
    let spent = cpu(&client) - before;
    let peak = client.peak() + others.iter().map(Child::peak).sum::<u64>();
    CallCost {
        cpu: spent as f64 / calls as f64,
        median,
        peak: peak as f64,
        wall,
    }
}
