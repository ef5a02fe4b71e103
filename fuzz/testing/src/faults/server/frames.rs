//! Faults of frames and messages: too many, too large, and such as no WebSocket may send.

use rpc_core::net::ws::Role;
use switchboard_faults::RawFrame;

use super::super::breach::Breach;
use super::super::{End, check, must};
use super::{
    ServerUnderTest, Terms, check_end, client, is_served, narrow_client, survives, until_open,
    upgraded,
};

/// Most that a peer may get rid of while it takes nothing itself: what the system buffers for both
/// sides, and much to spare.
const HOARD: usize = 64 * 1024 * 1024;

/// A peer breaks a rule of frames: it ends with the code for that, which it gets to see although it
/// may still be sending. As a stranger, too: nothing of this depends on what the protocol knows.
pub(super) async fn breach<S: ServerUnderTest>(breach: Breach) {
    let terms = Terms::default();
    let faults = breach.faults(Role::Client, terms.max_message);
    survives(terms, async |server: &S| {
        for fault in &faults {
            for is_client in [false, true] {
                let peer = match is_client {
                    true => client(server, "wrong").await,
                    false => upgraded(server).await,
                };
                let (kept, end) = peer.inject(fault).await;
                let end = end.unwrap_or(End::Fin);
                check_end("a wrong frame is answered", end, End::Close(breach.code()));
                // Its name has to be free for the next one.
                drop(kept);
                until_open(server, 1).await;
            }
        }
    })
    .await;
}

/// A flood: far more messages than anybody may send. 1008.
pub(super) async fn a_flood_of_messages<S: ServerUnderTest>() {
    survives(Terms::default(), async |server: &S| {
        let mut peer = client(server, "flood").await;
        let message = RawFrame::text(server.small_text());
        let end = peer.flood(message, 100_000).await;
        check_end("a flood ends", end, End::Close(1008));
    })
    .await;
}

/// Oversized in the other direction: the application has more for a client than a message may hold.
/// It is reported, and the connection goes on.
pub(super) async fn oversized_answers<S: ServerUnderTest>() {
    survives(Terms::default(), async |server: &S| {
        let mut peer = client(server, "modest").await;
        let told = server.oversize(&mut peer, "modest").await;
        must("what is too large is refused", told);
        is_served(server, &mut peer, "modest").await;
    })
    .await;
}

/// Deep JSON: as a whole message, and as a member of one. It is refused or passed through, and the
/// client that sent it is served on.
pub(super) async fn deep_json<S: ServerUnderTest>() {
    survives(Terms::default(), async |server: &S| {
        let mut peer = client(server, "deep").await;
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
        is_served(server, &mut peer, "deep").await;
    })
    .await;
}

/// A flood of pings. Whoever reads the pongs gets one for each, up to the limit for messages: then
/// 1008. For a peer that reads none of them the server reads no more in the end, and gives it up.
pub(super) async fn a_flood_of_pings<S: ServerUnderTest>() {
    const PINGS: usize = 2_000;
    survives(Terms::default(), async |server: &S| {
        let mut peer = client(server, "pinging").await;
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
        is_served(server, &mut peer, "pinging").await;
        let end = peer.flood(RawFrame::ping("p"), 100_000).await;
        check_end("more pings than messages are taken", end, End::Close(1008));
    })
    .await;
    survives(Terms::with_pings(), async |server: &S| {
        let mut peer = narrow_client(server, "hoarding").await;
        let ping = RawFrame::ping(vec![b'p'; 125]).into_bytes(Role::Client);
        let burst = ping.repeat(512);
        let mut sent = 0;
        while peer.bytes(&burst).await.is_ok() {
            sent += burst.len();
            check(sent < HOARD, "pings are not hoarded", &sent);
        }
    })
    .await;
}
