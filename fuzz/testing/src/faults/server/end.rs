//! Faults of the application, and the server's own end.

use std::time::Duration;

use rpc_core::net::DrainReport;
use rpc_core::net::ws::Role;
use switchboard_faults::RawFrame;
use tokio::time::Instant;

use super::super::{End, PATIENCE, RawPeer, check, must, soon};
use super::{
    SHORT, ServerUnderTest, Terms, check_end, client, connected, is_served, peer_in, survives,
};

/// A handler that panics: its client gets an error, keeps its connection and is served on.
pub(super) async fn a_panicking_handler<S: ServerUnderTest>() {
    survives(Terms::default(), async |server: &S| {
        let mut peer = client(server, "panic").await;
        for _ in 0..2 {
            let reported = soon(server.panic(&mut peer, "panic")).await;
            must("a panic is reported", reported);
            is_served(server, &mut peer, "panic").await;
        }
    })
    .await;
}

/// A handler that never returns: everything else goes on, on its own connection too. When that ends,
/// nothing is left of it.
pub(super) async fn a_handler_that_never_returns<S: ServerUnderTest>() {
    survives(Terms::default(), async |server: &S| {
        let mut peer = client(server, "hang").await;
        must("hanging", server.hang(&mut peer, "hang").await);
        for _ in 0..2 {
            is_served(server, &mut peer, "hang").await;
        }
    })
    .await;
}

/// Connections in the middle of everything: before and within the upgrade, in every state, within a
/// frame, and with a handler that never returns. All of them are kept, and how many there are.
async fn everything<S: ServerUnderTest>(server: &S) -> (Vec<RawPeer>, Vec<RawPeer>) {
    let mut strangers = Vec::new();
    for part in [0, 40] {
        let mut peer = connected(server).await;
        let request = server.upgrade();
        let (sent, _) = request.as_bytes().split_at(part);
        must("writing", peer.bytes(sent).await);
        strangers.push(peer);
    }
    let mut peers = Vec::new();
    for state in server.states() {
        peers.push(peer_in(server, state, state).await);
    }
    let mut hanging = client(server, "hang").await;
    must("hanging", server.hang(&mut hanging, "hang").await);
    peers.push(hanging);
    let mut within = client(server, "within").await;
    let message = RawFrame::text(server.small_text()).into_bytes(Role::Client);
    let (half, _) = message.split_at(message.len() / 2);
    must("writing", within.bytes(half).await);
    peers.push(within);
    let open = strangers.len() + peers.len();
    super::until_open(server, open).await;
    (strangers, peers)
}

/// The server's end in the middle of everything. Whoever is upgraded is told with a Close that the
/// server goes, whatever was under way; no one is waited for longer than the deadlines say, and
/// no one is forgotten in the report.
pub(super) async fn a_drain_ends_everything_in_time<S: ServerUnderTest>() {
    let terms = Terms {
        shutdown: SHORT,
        ..Terms::default()
    };
    let server = S::start(terms).await;
    let (mut strangers, mut peers) = everything(&server).await;
    let open = strangers.len() + peers.len();
    let report = soon(server.serving().handle.drain(PATIENCE)).await;
    check_report(report, open);
    check(report.aborted == 0, "nobody has to be cut", &report);
    for peer in &mut peers {
        let end = soon(peer.end()).await;
        check_end("the server says so", end, End::Close(server.going()));
    }
    for peer in &mut strangers {
        check_end("a stranger is hung up on", peer.http_end().await, End::Fin);
    }
    let late = RawPeer::connect(server.serving().address).await;
    check(late.is_err(), "nobody listens any more", &late);
}

/// As [`a_drain_ends_everything_in_time`], with no time at all: whatever is under way is cut.
pub(super) async fn a_drain_without_time_cuts_what_is_left<S: ServerUnderTest>() {
    let server = S::start(Terms::default()).await;
    let (mut strangers, mut peers) = everything(&server).await;
    let open = strangers.len() + peers.len();
    let report = soon(server.serving().handle.drain(Duration::ZERO)).await;
    check_report(report, open);
    for peer in strangers.iter_mut().chain(&mut peers) {
        soon(peer.end()).await;
    }
}

/// How long any server waits for a peer's Close by default.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(1_500);

/// The server's end, when a peer does not answer the Close: though requests may go on for long, the
/// peer is waited for no longer than any server waits by default.
pub(super) async fn a_drain_past_a_peer_that_ignores_the_close<S: ServerUnderTest>() {
    let terms = Terms {
        close: CLOSE_TIMEOUT,
        ..Terms::default()
    };
    let server = S::start(terms).await;
    let mut peer = client(&server, "deaf").await;
    tokio::time::pause();
    let start = Instant::now();
    let report = server.serving().handle.drain(PATIENCE).await;
    let waited = start.elapsed();
    check(waited <= Duration::from_secs(2), "it ends soon", &waited);
    check_report(report, 1);
    check(report.aborted == 0, "nobody has to be cut", &report);
    let end = peer.end().await;
    check_end("it says that it goes", end, End::Close(server.going()));
}

fn check_report(report: DrainReport, open: usize) {
    let sum = report.finished + report.aborted;
    check(sum == open, "everybody is in the report", &(report, open));
}
