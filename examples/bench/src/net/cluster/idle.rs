//! Memory of connections that do nothing, each of another user.

use super::{ALONE, CLUSTER, Cluster, ONE};
use crate::net::child::Child;
use crate::net::{OURS, in_turn};
use crate::report::Report;

/// A connection of a node on NATS may cost so many times one of a node alone.
const MOST: f64 = 1.1;
const KIB: f64 = 1024.0;
/// The end that holds them.
const HOLDER: &str = "snek: users";

pub(super) fn table(report: &mut Report, quick: bool) {
    let connections = if quick { 500 } else { 2_000 };
    let costs = in_turn(3, ONE, &[(ALONE, None)], |way| memory(way, connections));
    let [with, without] = &costs[..] else { return };
    let text = |costs: &[f64]| format!("{:.1} KiB", super::median(costs.iter().copied()) / KIB);
    report.repeated(
        CLUSTER,
        &format!("memory of a node per idle connection, {connections} of as many Snek users"),
        text(with),
        (ALONE, text(without)),
        (
            crate::net::ratios(with, without, |it| *it),
            Some(1.0 / MOST),
        ),
    );
}

fn memory(way: &str, connections: usize) -> f64 {
    eprintln!("{connections} idle connections, {way}");
    let cluster = Cluster::start(way, "snek", &["0"]);
    let Some((node, address)) = cluster.nodes.first() else {
        return 0.0;
    };
    let hold = |count: usize| {
        let count = count.to_string();
        let mut client = Child::start(OURS, &["hold", HOLDER, address, &count]);
        client.line();
        client
    };
    // What the first few cost only once is left out.
    drop(hold(10));
    let before = node.resident();
    let _clients = hold(connections);
    node.resident().saturating_sub(before) as f64 / connections as f64
}
