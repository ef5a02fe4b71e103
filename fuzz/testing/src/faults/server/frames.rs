//! Faults of frames and messages: too many, too large, and such as no WebSocket may send.

use super::super::{End, RawFrame, RawPeer};
use super::{
    ServerUnderTest, Terms, check, check_end, client, is_served, must, survives, until_open,
    upgrade, upgraded,
};
use rpc_core::net::ws::Role;

/// Most that a peer may get rid of while it takes nothing itself: what the system buffers for both
/// sides, and much to spare.
const HOARD: usize = 64 * 1024 * 1024;

/// The peer that has sent these frames, each as soon as it connected again, ends with this code. As a
/// stranger, too: nothing of this depends on what the protocol knows.
async fn ends_with<S: ServerUnderTest>(server: &S, what: &str, frames: &[RawFrame], code: u16) {
    for is_client in [false, true] {
        let mut peer = if is_client {
            client(server, "wrong").await
        } else {
            upgraded(server).await
        };
        for frame in frames {
            // The server may have ended the line already; what counts is what it said.
            let _ = peer.frame(frame.clone()).await;
        }
        check_end(what, peer.end().await, End::Said(code));
        // Its name has to be free for the next one.
        drop(peer);
        until_open(server, 1).await;
    }
}

/// A flood: far more messages than anybody may send. 1008.
pub(super) async fn a_flood_of_messages<S: ServerUnderTest>() {
    let server = S::start(Terms::default()).await;
    survives(&server, async {
        let mut peer = client(&server, "flood").await;
        let message = RawFrame::text(server.small_text());
        let end = peer.flood(message, 100_000).await;
        check_end("a flood ends", end, End::Said(1008));
    })
    .await;
}

/// Oversized frames: 17 MB in one, one that only announces more than there is, and one in pieces.
/// 1009, which the peer gets to see although it was still sending.
pub(super) async fn oversized_frames<S: ServerUnderTest>() {
    let terms = Terms::default();
    let max = terms.max_message;
    let server = S::start(terms).await;
    survives(&server, async {
        let large = RawFrame::text(vec![b'x'; 17_000_000]);
        ends_with(&server, "17 MB end with 1009", &[large], 1009).await;
        let announced = RawFrame::text("x").announcing(1 << 40);
        ends_with(&server, "a terabyte ends with 1009", &[announced], 1009).await;
        let piece = vec![b'x'; max / 2 + 1];
        let pieces = [
            RawFrame::text(piece.clone()).unfinished(),
            RawFrame::continuation(false, piece.clone()),
            RawFrame::continuation(true, piece),
        ];
        ends_with(&server, "pieces end with 1009", &pieces, 1009).await;
    })
    .await;
}

/// Oversized in the other direction: the application has more for a client than a message may hold.
/// It is reported, and the connection goes on.
pub(super) async fn oversized_answers<S: ServerUnderTest>() {
    let server = S::start(Terms::default()).await;
    survives(&server, async {
        let mut peer = client(&server, "modest").await;
        let notices = server.oversize(&mut peer, "modest").await;
        must("what is too large is refused", notices);
        is_served(&server, &mut peer, "modest").await;
    })
    .await;
}

/// Text that is not UTF-8: in a message, over the border of two frames, and in a Close. 1007.
pub(super) async fn invalid_utf8<S: ServerUnderTest>() {
    let server = S::start(Terms::default()).await;
    survives(&server, async {
        let whole = RawFrame::text(b"{\"a\":\"\xff\"}");
        ends_with(&server, "no UTF-8 ends with 1007", &[whole], 1007).await;
        let pieces = [
            RawFrame::text(b"\xe2\x82").unfinished(),
            RawFrame::continuation(true, b"("),
        ];
        ends_with(&server, "half a letter ends with 1007", &pieces, 1007).await;
        let close = RawFrame::new(0x88, b"\x03\xe8\xff");
        ends_with(&server, "such a reason ends with 1007", &[close], 1007).await;
    })
    .await;
}

/// Deep JSON: as a whole message, and as a member of one. It is refused or passed through, and the
/// client that sent it is served on.
pub(super) async fn deep_json<S: ServerUnderTest>() {
    let server = S::start(Terms::default()).await;
    survives(&server, async {
        let mut peer = client(&server, "deep").await;
        let (open, close) = ("[".repeat(100_000), "]".repeat(100_000));
        let objects = "{\"a\":".repeat(40_000);
        for deep in [
            open.clone(),
            format!("{open}{close}"),
            objects,
            format!("{{\"deep\":{open}{close}}}"),
        ] {
            must("writing", peer.text(&deep).await);
        }
        is_served(&server, &mut peer, "deep").await;
    })
    .await;
}

/// A client's frame without a mask. 1002.
pub(super) async fn a_frame_without_a_mask<S: ServerUnderTest>() {
    let server = S::start(Terms::default()).await;
    survives(&server, async {
        for bare in [RawFrame::text(server.small_text()), RawFrame::ping("")] {
            let bare = bare.masked(false);
            ends_with(&server, "no mask ends with 1002", &[bare], 1002).await;
        }
    })
    .await;
}

/// Other frames against the rules: reserved bits and opcodes, long and fragmented control frames,
/// continuations of nothing, a message within another, a Close of one byte. 1002.
pub(super) async fn broken_framing<S: ServerUnderTest>() {
    let server = S::start(Terms::default()).await;
    survives(&server, async {
        let unfinished = RawFrame::text("a").unfinished();
        for frames in [
            vec![RawFrame::new(0xc1, "a")],
            vec![RawFrame::new(0x83, "a")],
            vec![RawFrame::ping(vec![0; 126])],
            vec![RawFrame::ping("a").unfinished()],
            vec![RawFrame::continuation(true, "a")],
            vec![unfinished.clone(), unfinished],
            vec![RawFrame::new(0x88, "a")],
        ] {
            ends_with(&server, "a broken frame ends with 1002", &frames, 1002).await;
        }
    })
    .await;
}

/// A flood of pings. Whoever reads the pongs gets one for each, up to the limit for messages: then
/// 1008. For a peer that reads none of them the server reads no more in the end, and gives it up.
pub(super) async fn a_flood_of_pings<S: ServerUnderTest>() {
    const PINGS: usize = 2_000;
    let server = S::start(Terms::default()).await;
    survives(&server, async {
        let mut peer = client(&server, "pinging").await;
        for _ in 0..PINGS {
            must("a ping is taken", peer.frame(RawFrame::ping("p")).await);
        }
        let mut pongs = 0;
        while pongs < PINGS {
            match must("reading pongs", peer.receive().await) {
                Some(frame) => pongs += usize::from(frame.is_pong()),
                None => check(false, "every ping has its pong", &pongs),
            }
        }
        is_served(&server, &mut peer, "pinging").await;
        let end = peer.flood(RawFrame::ping("p"), 100_000).await;
        check_end("more pings than messages are allowed", end, End::Said(1008));
    })
    .await;
    let server = S::start(Terms::with_pings()).await;
    survives(&server, async {
        let narrow = RawPeer::connect_narrow(server.address()).await;
        let mut peer = upgrade(&server, must("connecting", narrow)).await;
        must("entering", server.enter(&mut peer, "hoarding").await);
        let burst = vec![RawFrame::ping(vec![b'p'; 125]); 512]
            .into_iter()
            .flat_map(|ping| ping.into_bytes(Role::Client))
            .collect::<Vec<_>>();
        let mut sent = 0;
        while peer.bytes(&burst).await.is_ok() {
            sent += burst.len();
            check(sent < HOARD, "pings are not hoarded", &sent);
        }
    })
    .await;
}
