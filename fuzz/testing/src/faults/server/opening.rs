//! Faults before a connection is a WebSocket.

use switchboard_faults::Fault;

use super::super::{End, must, soon};
use super::{SHORT, ServerUnderTest, Terms, check_end, connected, survives, until_open};

/// The terms on which a request has to come soon. Only one of two deadlines is short: a server that
/// forgot the other one would not be noticed.
fn hurried() -> Terms {
    Terms {
        header: SHORT,
        ..Terms::default()
    }
}

/// A silent peer: it connects and asks for nothing. It is hung up on at the deadline.
pub(super) async fn a_peer_that_asks_for_nothing<S: ServerUnderTest>() {
    survives(hurried(), async |server: &S| {
        let mut peer = connected(server).await;
        check_end("it is hung up on", peer.http_end().await, End::Fin);
    })
    .await;
}

/// A slow writer: its request comes byte by byte and is not complete at the deadline. It is hung up
/// on, although it goes on writing.
pub(super) async fn a_request_that_trickles<S: ServerUnderTest>() {
    survives(hurried(), async |server: &S| {
        let mut peer = connected(server).await;
        // More than a hundred bytes: ten times the deadline.
        let written = peer.trickle(server.upgrade().as_bytes(), SHORT / 10).await;
        if written.is_ok() {
            // What was written last may not have come back as a failure yet.
            check_end("it is hung up on", peer.http_end().await, End::Fin);
        }
    })
    .await;
}

/// A cut within the request, after it, and within what is read of the answer.
pub(super) async fn a_cut_before_the_upgrade<S: ServerUnderTest>() {
    survives(Terms::default(), async |server: &S| {
        let request = server.upgrade();
        let len = request.len();
        for cut in [0, 1, len / 2, len - 1, len] {
            // At last its sending side only: the answer could still be read.
            for fault in [Fault::End, Fault::Reset, Fault::HalfClose] {
                let mut peer = connected(server).await;
                let (sent, _) = request.as_bytes().split_at(cut);
                must("writing", peer.bytes(sent).await);
                soon(peer.inject(&fault)).await;
            }
        }
        until_open(server, 1).await;
    })
    .await;
}
