//! Servers that say nothing: before the upgrade, in the handshake, and all of a sudden.

use rpc_core::CloseReason;
use switchboard_faults::Fault;

use super::super::{check, soon};
use super::harness::{Harness, befall};
use super::{ClientUnderTest, Link, SHORT, Terms};

/// It accepts and says nothing: the dial times out.
///
/// The dial has a deadline; the attempts are counted, and the last one says why there is no next.
pub(super) async fn before_the_upgrade<C: ClientUnderTest>(test: &C) {
    let terms = Terms::new().with(|it| it.link.connect_timeout = SHORT);
    let mut harness = Harness::start(test, terms.clone().with_attempts(2)).await;
    let mut kept = Vec::new();
    let ended = Link::clone(&harness.handle);
    loop {
        tokio::select! {
            biased;
            line = harness.accept() => kept.push(line),
            _ = ended.closed() => break,
        }
    }
    let timed_out =
        |why: &CloseReason| matches!(why, CloseReason::Connect { retryable, .. } if *retryable);
    harness.gave_up(timed_out).await;
    let count = kept.len();
    check(count <= 3, "two attempts follow the first", &count);

    let mut harness = Harness::start(test, terms).await;
    let silent = harness.accept().await;
    harness.recovers().await;
    drop(silent);
}

/// It upgrades and then leaves the handshake of the protocol unanswered, at each of its steps.
///
/// The handshake has a deadline at each of its steps.
pub(super) async fn in_the_handshake<C: ClientUnderTest>(test: &C) {
    let late = |why: &CloseReason| matches!(why, CloseReason::HandshakeTimeout { .. });
    for steps in 0..C::STEPS {
        for dials_again in [false, true] {
            let terms = Terms::new().with(|it| it.handshake = SHORT);
            let terms = terms.reconnecting(dials_again);
            let mut harness = Harness::start(test, terms).await;
            let mut silent = harness.accept().await;
            let _ = harness.welcome(&mut silent, steps).await;
            match dials_again {
                true => harness.recovers().await,
                false => harness.gave_up(late).await,
            }
            drop(silent);
        }
    }
}

/// It neither reads nor writes any more, and the line stays: pings find out.
///
/// Nothing is read and nothing is said, but the line stays: it is given up by the clock.
pub(super) async fn half_open<C: ClientUnderTest>(test: &C) {
    let terms = Terms::new().with(|it| it.silence = SHORT);
    let dead = |why: &CloseReason| matches!(why, CloseReason::KeepAlive { .. });
    soon(befall(test, &terms, dead, &[Fault::HalfOpen], None)).await;
}
