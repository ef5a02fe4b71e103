//! As many programs run: both ends in one process, whose runtime has two workers. Nothing is asked
//! of these rows; they show whether the goals' rows say the same as a reader's own try would.

use super::calls::{CallCost, cost_of};
use super::child::Child;
use super::kind::Kind;
use super::streams::{Stream, stream};
use super::{Asked, OURS, in_turn, least, load, ratios, serve};
use crate::report::Report;

const TIMES: usize = 5;
const PEERS: &[Asked] = &[("jsonrpsee", None)];

/// Both ends in this process; the calls are made by as many tasks as are in flight.
pub(super) async fn both(kind: &str, in_flight: usize, calls: usize) {
    let address = serve::here(kind).await;
    load::tasks(Kind::parse(kind), &address, in_flight, calls).await;
}

pub(crate) fn table(report: &mut Report, quick: bool) {
    let scale = if quick { 4 } else { 1 };
    for (in_flight, calls) in [(1, 10_000), (16, 50_000), (1_000, 100_000)] {
        calls_of(report, in_flight, calls / scale);
    }
    for connections in [1, 100, 1_000] {
        streams_on(report, connections, 200_000 / scale / connections);
    }
}

fn calls_of(report: &mut Report, in_flight: usize, calls: usize) {
    let costs = in_turn(TIMES, OURS, PEERS, |kind| {
        eprintln!("{kind}: {in_flight} in flight, two workers");
        let counts = (in_flight.to_string(), calls.to_string());
        let words = ["workers", "both", kind, &counts.0, &counts.1];
        cost_of(Child::start(OURS, &words), &[], calls)
    });
    for (name, cost) in [
        ("CPU per call", cpu as fn(&CallCost) -> f64),
        ("time that goes by per call", wall),
    ] {
        let what = format!("ping from {in_flight} tasks, one connection, {name}");
        let text = |costs: &[CallCost]| {
            let cost = least(costs.iter().map(cost));
            format!("{:.2} µs", cost / 1e3)
        };
        each_peer(report, &what, &costs, text, cost);
    }
}

fn cpu(cost: &CallCost) -> f64 {
    cost.cpu
}

fn wall(cost: &CallCost) -> f64 {
    cost.wall
}

fn streams_on(report: &mut Report, connections: usize, frames: usize) {
    let costs = in_turn(TIMES, OURS, PEERS, |kind| {
        let mut server = Child::start(OURS, &["workers", "serve", kind]);
        let address = server.line();
        stream(kind, &server, &address, connections, frames)
    });
    let what =
        format!("chat on {connections} connections, CPU of a server with two workers per frame");
    let text = |costs: &[Stream]| {
        let cpu = least(costs.iter().map(|cost| cost.cpu));
        format!("{cpu:.0} ns")
    };
    each_peer(report, &what, &costs, text, |cost| cost.cpu);
}

fn each_peer<T>(
    report: &mut Report,
    what: &str,
    costs: &[Vec<T>],
    text: impl Fn(&[T]) -> String,
    cost: impl Fn(&T) -> f64,
) {
    let Some((ours, theirs)) = costs.split_first() else {
        return;
    };
    for ((peer, _), theirs) in PEERS.iter().zip(theirs) {
        let all = ratios(ours, theirs, &cost);
        let theirs = (*peer, text(theirs));
        report.repeated("workers", what, text(ours), theirs, (all, None));
    }
}
