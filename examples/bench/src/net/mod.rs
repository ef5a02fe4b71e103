//! Goals 5 to 8: calls, streams and idle connections over TCP on this machine, each end a process.

mod child;
pub(crate) mod hold;
pub(crate) mod listen;
pub(crate) mod load;
pub(crate) mod raw;
pub(crate) mod serve;

use child::Child;

use crate::report::Report;

/// Runs one end, as a child process of the table.
pub(crate) fn run(words: &[&str]) {
    let number = |text: &str| -> usize { text.parse().expect("a number") };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        match words {
            ["serve", kind] => serve::serve(kind).await,
            ["hold", kind, address, count] => hold::hold(kind, address, number(count)).await,
            ["load", kind, address, in_flight, calls] => {
                load::load(kind, address, number(in_flight), number(calls)).await;
            }
            ["listen", kind, address, connections, frames] => {
                listen::listen(kind, address, number(connections), number(frames)).await;
            }
            other => panic!("unknown: {other:?}"),
        }
    });
}

/// Tells the parent that a phase has ended, and waits until it asks for the next.
pub(crate) async fn phase(done: &str) {
    println!("{done}");
    tokio::task::spawn_blocking(wait).await.unwrap();
}

/// Waits for a line of the parent; ends the process if there is no parent any more.
fn wait() {
    let mut line = String::new();
    if std::io::stdin().read_line(&mut line).unwrap_or(0) == 0 {
        std::process::exit(0);
    }
}

/// Goals 5 and 6.
pub(crate) fn calls(report: &mut Report, quick: bool) {
    const SEQUENTIAL: [(&str, Option<f64>); 3] = [
        ("echo, no RPC", Some(1.0 / 1.1)),
        ("echo, send each", None),
        ("jsonrpsee", Some(1.5)),
    ];
    const SIXTEEN: [(&str, Option<f64>); 3] = [
        ("echo, no RPC", None),
        ("echo, send each", None),
        ("jsonrpsee", Some(4.0)),
    ];
    const THOUSAND: [(&str, Option<f64>); 3] = [
        ("echo, no RPC", None),
        ("echo, send each", None),
        ("jsonrpsee", Some(10.0)),
    ];
    let scale = if quick { 4 } else { 1 };
    for (goal, in_flight, count, peers) in [
        ("5", 1, 20_000, SEQUENTIAL),
        ("6", 16, 50_000, SIXTEEN),
        ("6", 1_000, 200_000, THOUSAND),
    ] {
        let what = format!("ping, {in_flight} in flight, CPU of both ends per call (orientation)");
        let (ours, theirs) = in_turn("exoclaw", peers.map(|(peer, _)| peer), |kind| {
            call_cost(kind, in_flight, count / scale)
        });
        let text = |costs: &[CallCost]| {
            let cpu = least(costs.iter().map(|cost| cost.cpu)) / 1e3;
            let median = least(costs.iter().map(|cost| cost.median)) / 1e3;
            match in_flight {
                1 => format!("{cpu:.2} µs, p50 {median:.0} µs"),
                _ => format!("{cpu:.2} µs"),
            }
        };
        for ((peer, at_least), theirs) in peers.into_iter().zip(&theirs) {
            let ratios = ours
                .iter()
                .zip(theirs)
                .map(|(ours, theirs)| theirs.cpu / ours.cpu);
            report.repeated(
                goal,
                &what,
                text(&ours),
                (peer, text(theirs)),
                (ratios.collect(), at_least),
            );
        }
    }
    report.missing(
        "5",
        "ping, 1 in flight, beside an echo over TCP alone (stretch)",
    );
    report.missing("6", "ping, 1,000 in flight, beside aiohttp");
}

struct CallCost {
    /// Nanoseconds of CPU time of both ends per call.
    cpu: f64,
    /// Median of the time until the answer, in nanoseconds.
    median: f64,
}

/// How often everything is measured.
const TIMES: usize = 5;

/// Measures ours and each of the peers in turn, several times: what else the machine does then
/// disturbs all of them alike.
fn in_turn<T, const N: usize>(
    ours: &str,
    peers: [&str; N],
    measure: impl Fn(&str) -> T,
) -> (Vec<T>, [Vec<T>; N]) {
    let mut all = (Vec::new(), [const { Vec::new() }; N]);
    for _ in 0..TIMES {
        all.0.push(measure(ours));
        for (peer, costs) in peers.iter().zip(&mut all.1) {
            costs.push(measure(peer));
        }
    }
    all
}

fn least(costs: impl Iterator<Item = f64>) -> f64 {
    costs.fold(f64::INFINITY, f64::min)
}

fn call_cost(kind: &str, in_flight: usize, calls: usize) -> CallCost {
    eprintln!("{kind}: {in_flight} in flight");
    let (server, address) = Child::server(kind);
    let mut client = Child::start(&[
        "load",
        kind,
        &address,
        &in_flight.to_string(),
        &calls.to_string(),
    ]);
    client.line();
    let before = server.cpu() + client.cpu();
    client.go();
    let median = client.line().parse().unwrap();
    let cpu = (server.cpu() + client.cpu() - before) as f64 / calls as f64;
    CallCost { cpu, median }
}

/// Goal 7.
pub(crate) fn streams(report: &mut Report, quick: bool) {
    const PEERS: [&str; 3] = ["jsonrpsee", "echo, send each", "echo, no RPC"];
    let frames = if quick { 100_000 } else { 400_000 };
    for (connections, needed) in [(1, 20.0), (100, 20.0), (1_000, 12.0)] {
        let each = (frames / connections).max(20);
        let what = format!(
            "chat of {each} frames of 100 B on {connections} connections, server CPU per frame (orientation)"
        );
        let (ours, theirs) = in_turn("exoclaw", PEERS, |kind| {
            stream_cost(kind, connections, each)
        });
        let text = |costs: &[f64]| format!("{:.0} ns", least(costs.iter().copied()));
        for (peer, theirs) in PEERS.into_iter().zip(&theirs) {
            let at_least = (peer == "jsonrpsee").then_some(needed);
            let ratios = ours.iter().zip(theirs).map(|(ours, theirs)| theirs / ours);
            report.repeated(
                "7",
                &what,
                text(&ours),
                (peer, text(theirs)),
                (ratios.collect(), at_least),
            );
        }
    }
    report.missing("7", "chat on 5,000 connections");
}

fn stream_cost(kind: &str, connections: usize, frames: usize) -> f64 {
    eprintln!("{kind}: streams on {connections} connections");
    let (server, address) = Child::server(kind);
    let mut client = Child::start(&[
        "listen",
        kind,
        &address,
        &connections.to_string(),
        &frames.to_string(),
    ]);
    client.line();
    let before = server.cpu();
    client.go();
    client.line();
    (server.cpu() - before) as f64 / (connections * frames) as f64
}

/// Goal 8.
pub(crate) fn idle(report: &mut Report, quick: bool) {
    const PEERS: [&str; 3] = [
        "tungstenite, 4 KiB buffers",
        "tungstenite, default buffers",
        "jsonrpsee",
    ];
    let connections = if quick { 1_000 } else { 5_000 };
    let peers = PEERS.map(|peer| (peer, idle_memory(peer, connections)));
    for kind in ["exoclaw", "snek"] {
        let ours = idle_memory(kind, connections);
        let what = format!("memory of an idle connection, {connections} of them, {kind}");
        let text = |bytes: f64| format!("{:.1} KiB", bytes / 1024.0);
        for (peer, theirs) in peers {
            report.row(
                "8",
                &what,
                text(ours),
                (peer, text(theirs)),
                (theirs / ours, None),
            );
        }
        report.bound(
            "8",
            &what,
            text(ours),
            "≤ 9 KiB".to_owned(),
            ours <= 9.0 * 1024.0,
        );
    }
    report.missing("8", "memory of a connection while it streams");
}

/// What one of them costs a server, in bytes.
fn idle_memory(kind: &str, connections: usize) -> f64 {
    eprintln!("{kind}: {connections} idle connections");
    let (server, address) = Child::server(kind);
    // What the first few cost only once is left out.
    let mut first = Child::start(&["hold", kind, &address, "10"]);
    first.line();
    let before = server.resident();
    let mut client = Child::start(&["hold", kind, &address, &connections.to_string()]);
    client.line();
    (server.resident() - before) as f64 / connections as f64
}
