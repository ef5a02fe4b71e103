//! What a relay between a client and a server costs: `wire proxy`, which is part of the example
//! programs, beside one that is written with tokio-tungstenite. The time of the relay alone counts.

use super::child::Child;
use super::kind::RELAYED;
use super::{in_turn, least, ratios};
use crate::report::Report;

/// The name of the section, for `--goals`.
const RELAY: &str = "relay";
/// How often everything is measured.
const TIMES: usize = 5;

const PROXY: &str = "wire proxy";
const RECORDING: &str = "wire proxy --record";
const PEER: &str = "relay with tokio-tungstenite";

/// The server behind it, and the client before it.
const ENDS: &str = "echo, no RPC";

pub(crate) fn table(report: &mut Report, quick: bool) {
    for (in_flight, calls) in [(1, 20_000), (64, 200_000)] {
        let calls = calls / if quick { 4 } else { 1 };
        let what = |way| format!("{way}, {RELAYED}, {in_flight} in flight, CPU per frame");
        if !cfg!(feature = "gateway") {
            let why = "build with `--features gateway`";
            report.missing(RELAY, &what(PROXY), PEER, why);
            continue;
        }
        let costs = in_turn(TIMES, PEER, &[(PROXY, None), (RECORDING, None)], |way| {
            cost(way, in_flight, calls)
        });
        let Some((theirs, ours)) = costs.split_first() else {
            return;
        };
        let text = |costs: &[f64]| format!("{:.0} ns", least(costs.iter().copied()));
        for (way, most, ours) in [(PROXY, 2.5, ours.first()), (RECORDING, 4.0, ours.get(1))] {
            let Some(ours) = ours else { continue };
            let all = ratios(ours, theirs, |cost| *cost);
            let theirs = (PEER, text(theirs));
            report.repeated(
                RELAY,
                &what(way),
                text(ours),
                theirs,
                (all, Some(1.0 / most)),
            );
        }
    }
}

/// Nanoseconds of the relay's CPU time per frame: a call is one there and one back.
fn cost(way: &str, in_flight: usize, calls: usize) -> f64 {
    eprintln!("{way}: {in_flight} in flight");
    let (_server, address) = Child::server(ENDS);
    let mut relay = Child::start(way, &["relay", way, &address]);
    let address = relay.line();
    let kind = format!("{ENDS}: {RELAYED}");
    let (in_flight, count) = (in_flight.to_string(), calls.to_string());
    let mut client = Child::start(ENDS, &["load", &kind, &address, &in_flight, &count]);
    client.line();
    let before = relay.cpu();
    client.go();
    client.line();
    (relay.cpu() - before) as f64 / (2 * calls) as f64
}

/// Runs a relay to the server at this address.
pub(super) async fn relay(way: &str, server: &str) {
    match way {
        PEER => plain(server).await,
        _ => proxy(server, way == RECORDING).await,
    }
}

/// As one writes it: what is ready is passed on together.
async fn plain(server: &str) {
    use futures_util::StreamExt;
    use futures_util::future::join;
    use tokio::net::{TcpListener, TcpStream};

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    loop {
        let (client, _) = listener.accept().await.unwrap();
        let server = server.to_owned();
        tokio::spawn(async move {
            client.set_nodelay(true).unwrap();
            let stream = TcpStream::connect(&server).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let url = format!("ws://{server}/");
            let (to_server, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
            let to_client = tokio_tungstenite::accept_async(client).await.unwrap();
            let (server_writes, server_reads) = to_server.split();
            let (client_writes, client_reads) = to_client.split();
            let up = client_reads.forward(server_writes);
            let down = server_reads.forward(client_writes);
            // An end that goes away without a Close is an error, and the end of the relay.
            let _ = join(up, down).await;
        });
    }
}

#[cfg(not(feature = "gateway"))]
async fn proxy(_: &str, _: bool) {
    unreachable!("not measured");
}

#[cfg(feature = "gateway")]
async fn proxy(server: &str, records: bool) {
    use rpc_core::net::server::Listener;
    use rpc_core::testing::transcript::Header;
    use std::io::BufWriter;
    use std::time::Duration;
    use switchboard::wire::proxy::{Proxy, Recorder};

    let mut proxy = Proxy::new(&format!("ws://{server}")).unwrap();
    if records {
        let name = format!("bench-relay-{}.jsonl", std::process::id());
        let file = std::env::current_exe().unwrap().with_file_name(name);
        let opened = std::fs::File::create(&file).unwrap();
        // Nobody reads it: it is gone when the process ends.
        std::fs::remove_file(&file).unwrap();
        let out = BufWriter::with_capacity(64 * 1024, opened);
        proxy.recorder = Some(Recorder::new(out, &Header::new()));
    }
    let listener = Listener::bind("127.0.0.1:0").await.unwrap();
    println!("{}", listener.local_addr().unwrap());
    let never = std::future::pending();
    let warn = |words| eprintln!("{words}");
    proxy
        .run(listener, never, Duration::ZERO, warn)
        .await
        .unwrap();
}
