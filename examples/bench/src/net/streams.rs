//! Goal 7: what a frame of a stream costs the server.

use super::child::Child;
use super::{Asked, OURS, in_turn, least, ratios};
use crate::process;
use crate::report::Report;

pub(crate) fn table(report: &mut Report, quick: bool) {
    let frames = if quick { 100_000 } else { 400_000 };
    for (connections, needed) in [(1, 20.0), (100, 20.0), (1_000, 12.0), (5_000, 10.0)] {
        let peers: &[Asked] = &[
            ("jsonrpsee", Some(needed)),
            ("echo, send each", None),
            ("echo, no RPC", None),
            ("fastwebsockets", None),
        ];
        let each = (frames / connections).max(20);
        let what = format!(
            "chat of {each} frames of 100 B on {connections} connections, server CPU per frame"
        );
        if let Err(why) = room_for(connections) {
            report.missing("7", &what, "", &why);
            continue;
        }
        // So many connections take longer to open than to use.
        let times = if connections > 1_000 { 3 } else { 5 };
        let costs = in_turn(times, OURS, peers, |kind| {
            stream_cost(kind, connections, each)
        });
        let Some((ours, theirs)) = costs.split_first() else {
            continue;
        };
        let text = |costs: &[Stream]| {
            let cpu = least(costs.iter().map(|cost| cost.cpu));
            format!("{cpu:.0} ns")
        };
        for ((peer, at_least), theirs) in peers.iter().zip(theirs) {
            let all = ratios(ours, theirs, |cost| cost.cpu);
            report.repeated(
                "7",
                &what,
                text(ours),
                (peer, text(theirs)),
                (all, *at_least),
            );
        }
    }
}

/// Whether a process may have so many connections.
pub(super) fn room_for(connections: usize) -> Result<(), String> {
    let most = process::most_files();
    if connections + 100 > most {
        return Err(format!("at most {most} open files"));
    }
    Ok(())
}

pub(super) struct Stream {
    /// Nanoseconds of the server's CPU time per frame.
    pub(super) cpu: f64,
    /// The most bytes per connection that the server took more than before there were any.
    pub(super) memory: f64,
}

pub(super) fn stream_cost(kind: &str, connections: usize, frames: usize) -> Stream {
    let (server, address) = Child::server(kind);
    stream(kind, &server, &address, connections, frames)
}

pub(super) fn stream(
    kind: &str,
    server: &Child,
    address: &str,
    connections: usize,
    frames: usize,
) -> Stream {
    eprintln!("{kind}: streams on {connections} connections");
    // What the first few cost only once is left out.
    let few = Child::start(OURS, &["hold", kind, address, "10"]);
    ready(few);
    let base = server.resident();
    let counts = (connections.to_string(), frames.to_string());
    let words = ["listen", kind, address, &counts.0, &counts.1];
    let mut client = Child::start(OURS, &words);
    client.line();
    let before = server.cpu();
    client.go();
    client.line();
    Stream {
        cpu: (server.cpu() - before) as f64 / (connections * frames) as f64,
        memory: server.peak().saturating_sub(base) as f64 / connections as f64,
    }
}

/// Waits until it is ready, then ends it.
pub(super) fn ready(mut child: Child) {
    child.line();
}
