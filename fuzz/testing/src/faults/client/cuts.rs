//! Lines that end without a Close, wherever the connection stands.

use rpc_core::CloseReason;
use rpc_core::net::ws::Role;
use switchboard_faults::{Fault, RawFrame};

use super::super::{RawPeer, check, soon};
use super::harness::{Harness, befalls};
use super::{ClientUnderTest, Link, Terms};

const CUTS: [Fault; 2] = [Fault::End, Fault::Reset];

fn is_cut(why: &CloseReason) -> bool {
    matches!(why, CloseReason::Lost | CloseReason::Transport { .. })
}

fn is_failed_dial(why: &CloseReason) -> bool {
    matches!(
        why,
        CloseReason::Connect {
            retryable: true,
            ..
        }
    )
}

/// Cuts the first lines of a client at the same place: once it gives up, once it comes back.
async fn cut_after<C: ClientUnderTest>(
    test: &C,
    why: impl Fn(&CloseReason) -> bool + Copy,
    place: impl AsyncFn(&Harness<'_, C>, &mut RawPeer),
) {
    for cut in CUTS {
        let mut harness = Harness::start(test, Terms::new().with_attempts(2)).await;
        let ended = Link::clone(&harness.handle);
        loop {
            let mut line = tokio::select! {
                biased;
                line = harness.accept() => line,
                _ = ended.closed() => break,
            };
            soon(place(&harness, &mut line)).await;
            line.inject(&cut).await;
        }
        let accepted = harness.accepted;
        check(accepted == 3, "two attempts follow the first", &accepted);
        harness.gave_up(why).await;

        let mut harness = Harness::start(test, Terms::new()).await;
        let mut line = harness.accept().await;
        soon(place(&harness, &mut line)).await;
        line.inject(&cut).await;
        harness.recovers().await;
    }
}

/// It ends or resets the line as soon as it has accepted it.
pub(super) async fn before_the_upgrade<C: ClientUnderTest>(test: &C) {
    cut_after(test, is_failed_dial, async |_, _| {}).await;
}

/// It ends or resets the line within its answer to the upgrade.
pub(super) async fn in_the_upgrade<C: ClientUnderTest>(test: &C) {
    let half = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: webs";
    cut_after(test, is_failed_dial, async |_, line| {
        let _ = line.head().await;
        let _ = line.bytes(half).await;
    })
    .await;
}

/// It ends or resets the line at each step of the protocol's handshake.
///
/// At each step, before and after the client has sent something.
pub(super) async fn in_the_handshake<C: ClientUnderTest>(test: &C) {
    for steps in 0..C::STEPS {
        for hears in [false, true] {
            cut_after(test, is_cut, async |harness, line| {
                if harness.welcome(line, steps).await.is_some() && hears {
                    let _ = line.receive().await;
                }
            })
            .await;
        }
    }
}

/// It answers the upgrade with an HTTP status.
///
/// What an HTTP status says about another attempt is believed.
pub(super) async fn upgrade_refused<C: ClientUnderTest>(test: &C) {
    for status in [401, 404, 503, 200] {
        let mut harness = Harness::start(test, Terms::new()).await;
        let mut line = harness.accept().await;
        let _ = soon(line.head()).await;
        let kept = line.inject(&Fault::Refuse(status)).await;
        if matches!(status, 503 | 200) {
            drop(kept);
            harness.recovers().await;
            continue;
        }
        harness
            .gave_up_at_once(|why| match why {
                CloseReason::Authentication { .. } => status == 401,
                CloseReason::Connect { retryable, .. } => !retryable && status == 404,
                _ => false,
            })
            .await;
    }
}

/// It ends or resets the line while nothing is under way.
pub(super) async fn while_idle<C: ClientUnderTest>(test: &C) {
    for cut in CUTS {
        let mut harness = Harness::start(test, Terms::new()).await;
        harness.ready().await.inject(&cut).await;
        harness.recovers().await;
    }
}

/// It ends or resets the line with a call in flight, and in the middle of the answer.
///
/// Before anything was answered, and in the middle of the answer.
pub(super) async fn in_a_call<C: ClientUnderTest>(test: &C) {
    for cut in CUTS {
        befalls(test, &Terms::new(), is_cut, async |line| {
            line.inject(&cut).await
        })
        .await;

        let terms = Terms::new().reconnecting(false);
        let (harness, mut line) = Harness::ready_on(test, terms).await;
        let server = async {
            if let Some(call) = harness.test.called(&mut line).await {
                harness.test.progress(&mut line, &call).await;
            }
            line.inject(&cut).await;
        };
        harness.call_ends(is_cut, server).await;
        harness.gave_up(is_cut).await;
    }
}

/// It ends or resets the line within a frame.
pub(super) async fn in_a_frame<C: ClientUnderTest>(test: &C) {
    let event = test.event(0).to_string();
    let frame = RawFrame::text(event).into_bytes(Role::Server);
    for cut in CUTS {
        for len in [1, frame.len() / 2, frame.len() - 1] {
            let half = frame.get(..len).unwrap_or_default();
            befalls(test, &Terms::new(), is_cut, async |mut line| {
                let _ = line.bytes(half).await;
                line.inject(&cut).await;
            })
            .await;
        }
    }
}

/// It ends or resets the line while the client closes.
///
/// The reason is the client's own: it has closed.
pub(super) async fn while_the_client_closes<C: ClientUnderTest>(test: &C) {
    for cut in CUTS {
        let (harness, mut line) = Harness::ready_on(test, Terms::new()).await;
        harness.handle.close();
        // Its Close is on its way, or has come.
        let _ = soon(line.receive()).await;
        line.inject(&cut).await;
        harness
            .gave_up_at_once(|why| *why == CloseReason::Local)
            .await;
    }
}
