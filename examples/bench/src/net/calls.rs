//! Goals 5 and 6: what a call costs both ends.

use std::time::Instant;

use super::child::Child;
use super::{Asked, foreign, in_turn, least, ratios};
use crate::process::on_one_processor;
use crate::report::Report;

/// How often everything is measured.
const TIMES: usize = 5;

/// Goal 5 asks that we cost at most a tenth more.
const TENTH_MORE: Option<f64> = Some(1.0 / 1.1);

const SEQUENTIAL: &[Asked] = &[
    ("TCP echo", None),
    ("echo, no RPC", TENTH_MORE),
    ("echo, send each", None),
    ("fastwebsockets", None),
    ("jsonrpsee", Some(1.5)),
    ("aiohttp", None),
    ("websockets", None),
    ("node ws", None),
];
const SIXTEEN: &[Asked] = &[
    ("echo, no RPC", None),
    ("echo, send each", None),
    ("fastwebsockets", None),
    ("fastwebsockets, send each", None),
    ("jsonrpsee", Some(4.0)),
    ("aiohttp", None),
    ("websockets", None),
    ("node ws", None),
];
const THOUSAND: &[Asked] = &[
    ("echo, no RPC", None),
    ("echo, send each", None),
    ("fastwebsockets", None),
    ("fastwebsockets, send each", None),
    ("jsonrpsee", Some(10.0)),
    ("aiohttp", Some(20.0)),
    ("websockets", None),
    ("node ws", None),
];

/// With both ends on a processor of their own, waking the other one costs most, and as much as it
/// happens to sleep deeply: the goal is judged on one processor.
const APART: &[Asked] = &[
    ("TCP echo", None),
    ("echo, no RPC", None),
    ("fastwebsockets", None),
    ("jsonrpsee", None),
];

pub(crate) fn table(report: &mut Report, wanted: impl Fn(&str) -> bool, quick: bool) {
    let scale = if quick { 4 } else { 1 };
    if wanted("5") {
        let calls = 10_000 / scale;
        let what = "ping, 1 in flight, both ends on one processor";
        if on_one_processor(|| rows(report, "5", what, 1, calls, SEQUENTIAL)).is_none() {
            report.missing("5", what, "", "there is no taskset");
        }
        let what = "ping, 1 in flight, on two processors";
        rows(report, "5", what, 1, calls, APART);
    }
    for (in_flight, calls, peers) in [(16, 50_000, SIXTEEN), (1_000, 200_000, THOUSAND)] {
        if wanted("6") {
            let what = format!("ping, {in_flight} in flight");
            rows(report, "6", &what, in_flight, calls / scale, peers);
        }
    }
}

fn rows(
    report: &mut Report,
    goal: &str,
    name: &str,
    in_flight: usize,
    calls: usize,
    peers: &[Asked],
) {
    let what = format!("{name}, CPU of both ends per call");
    let mut there = Vec::new();
    for peer in peers {
        match foreign::install(peer.0) {
            Ok(()) => there.push(*peer),
            Err(why) => report.missing(goal, &what, peer.0, &why),
        }
    }
    let costs = in_turn(TIMES, &there, |kind| {
        // The foreign ones take long enough with fewer.
        let fewer = if foreign::is_foreign(kind) { 8 } else { 1 };
        call_cost(kind, in_flight, calls / fewer)
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
    if in_flight > 1 {
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
        let at_least = cpu_goal.filter(|_| *peer == "echo, no RPC");
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
