//! Faults of the line below the frames: silence, ends, and peers that read or write slowly.

use std::time::Duration;

use rpc_core::net::ws::Role;
use switchboard_faults::{Fault, RawFrame};

use super::super::{End, must, soon};
use super::{
    SHORT, ServerUnderTest, Terms, check_end, client, is_served, narrow_client, peer_in, survives,
    until_open, upgraded,
};

/// A silent peer: it is upgraded and never becomes a client. It is dismissed at the deadline, unless
/// being upgraded is enough.
pub(super) async fn a_stranger_that_says_nothing<S: ServerUnderTest>() {
    let hurried = Terms {
        opening: SHORT,
        ..Terms::default()
    };
    survives(hurried, async |server: &S| {
        let mut peer = upgraded(server).await;
        if let Some(expected) = server.stranger() {
            check_end("a stranger is dismissed", peer.end().await, expected);
        }
    })
    .await;
}

/// A silent peer: it reads, and answers no ping. It is given up.
pub(super) async fn a_peer_that_answers_no_ping<S: ServerUnderTest>() {
    survives(Terms::with_pings(), async |server: &S| {
        let mut peer = client(server, "silent").await;
        check_end("it is given up", peer.end().await, End::Close(1001));
    })
    .await;
}

/// A half-open line: the socket stays, and nothing is read or written any more, in every state. The
/// server gives it up without the peer's help.
pub(super) async fn a_half_open_line<S: ServerUnderTest>() {
    survives(Terms::with_pings(), async |server: &S| {
        let mut held = Vec::new();
        for state in server.states() {
            held.push(peer_in(server, state, state).await);
        }
        until_open(server, 1).await;
        drop(held);
    })
    .await;
}

/// A slow reader: the server has ever more for a client that takes nothing. The client is given up,
/// and what waits for it is bounded meanwhile.
pub(super) async fn a_peer_that_reads_nothing<S: ServerUnderTest>() {
    let impatient = Terms {
        write: SHORT,
        ..Terms::default()
    };
    survives(impatient, async |server: &S| {
        let mut peer = narrow_client(server, "deaf").await;
        must("pouring", server.pour(&mut peer, "deaf").await);
        until_open(server, 1).await;
        drop(peer);
    })
    .await;
}

/// A slow writer: byte by byte. A client whose message ends is served; one that is slower
/// than the server's patience, which it cannot tell from a dead one, is given up within its message.
pub(super) async fn a_peer_that_writes_slowly<S: ServerUnderTest>() {
    survives(Terms::default(), async |server: &S| {
        let mut peer = client(server, "slow").await;
        let message = RawFrame::text(server.small_text()).into_bytes(Role::Client);
        must(
            "a slow message is taken",
            peer.trickle(&message, Duration::from_millis(2)).await,
        );
        is_served(server, &mut peer, "slow").await;
    })
    .await;
    survives(Terms::with_pings(), async |server: &S| {
        let mut peer = client(server, "slower").await;
        let message = RawFrame::text(vec![b' '; 60_000]).into_bytes(Role::Client);
        // Until the line fails.
        let _ = peer.trickle(&message, SHORT / 10).await;
        until_open(server, 1).await;
    })
    .await;
}

/// How a peer ends a connection without a Close: at last its sending side only.
const CUTS: [Fault; 3] = [Fault::End, Fault::Reset, Fault::HalfClose];

/// A close without a Close, in every state of a connection.
pub(super) async fn a_cut_in_every_state<S: ServerUnderTest>() {
    survives(Terms::default(), async |server: &S| {
        for state in server.states() {
            for cut in CUTS {
                let peer = peer_in(server, "cut", state).await;
                soon(peer.inject(&cut)).await;
                until_open(server, 1).await;
            }
        }
    })
    .await;
}

/// A line that ends inside a frame: in its header, and in its payload; as a stranger and as a client.
pub(super) async fn an_end_inside_a_frame<S: ServerUnderTest>() {
    survives(Terms::default(), async |server: &S| {
        let message = RawFrame::text(server.small_text()).into_bytes(Role::Client);
        for is_client in [false, true] {
            for cut in CUTS {
                for at in [1, 3, message.len() - 1] {
                    let mut peer = upgraded(server).await;
                    if is_client {
                        must("entering", server.enter(&mut peer, "broken").await);
                    }
                    let (sent, _) = message.split_at(at);
                    must("writing", peer.bytes(sent).await);
                    soon(peer.inject(&cut)).await;
                    until_open(server, 1).await;
                }
            }
        }
        // Told by the peer itself, it is the same with a Close.
        let peer = client(server, "polite").await;
        let (_, end) = peer.inject(&Fault::Close(1000)).await;
        let end = end.unwrap_or(End::Fin);
        check_end("a Close is answered", end, End::Close(1000));
    })
    .await;
}
