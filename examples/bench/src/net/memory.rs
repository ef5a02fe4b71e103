//! Goal 8: what a connection takes of the server's memory, idle and while it streams.

use super::OURS;
use super::child::Child;
use super::streams::{ready, room_for, stream_cost};
use crate::report::Report;

const KIB: f64 = 1024.0;

pub(crate) fn table(report: &mut Report, quick: bool) {
    idle(report, if quick { 1_000 } else { 5_000 });
    streaming(report, 1_000, 400);
    streaming(report, 100, 4_000);
}

fn idle(report: &mut Report, connections: usize) {
    const PEERS: [&str; 4] = [
        "tungstenite, 4 KiB buffers",
        "tungstenite, default buffers",
        "fastwebsockets",
        "jsonrpsee",
    ];
    if let Err(why) = room_for(connections) {
        report.missing("8", "memory of an idle connection", "", &why);
        return;
    }
    let peers = PEERS.map(|peer| (peer, idle_memory(peer, connections)));
    for kind in ["exoclaw", "snek", "connectonion"] {
        let ours = idle_memory(kind, connections);
        let what = format!("memory of an idle connection, {connections} of them, {kind}");
        rows(report, &what, ours, &peers, 7.5);
    }
}

/// At its most, while every connection has a stream that is sent as fast as it is read.
fn streaming(report: &mut Report, connections: usize, frames: usize) {
    const PEERS: [&str; 3] = ["echo, no RPC", "fastwebsockets", "jsonrpsee"];
    let memory = |kind: &str| stream_cost(kind, connections, frames).memory;
    let ours = memory(OURS);
    let peers = PEERS.map(|peer| (peer, memory(peer)));
    let what =
        format!("most memory of a connection that streams {frames} frames, {connections} of them");
    rows(report, &what, ours, &peers, 16.0);
}

fn rows(report: &mut Report, what: &str, ours: f64, peers: &[(&str, f64)], most: f64) {
    let text = |bytes: f64| format!("{:.1} KiB", bytes / KIB);
    for (peer, theirs) in peers {
        let peer = (*peer, text(*theirs));
        report.row("8", what, text(ours), peer, (theirs / ours, None));
    }
    let within = ours <= most * KIB;
    report.bound("8", what, text(ours), format!("≤ {most} KiB"), within);
}

/// What one of them costs a server, in bytes.
pub(super) fn idle_memory(kind: &str, connections: usize) -> f64 {
    eprintln!("{kind}: {connections} idle connections");
    let (server, address) = Child::server(kind);
    // What the first few cost only once is left out.
    ready(Child::start(OURS, &["hold", kind, &address, "10"]));
    let before = server.resident();
    let count = connections.to_string();
    let mut client = Child::start(OURS, &["hold", kind, &address, &count]);
    client.line();
    server.resident().saturating_sub(before) as f64 / connections as f64
}
