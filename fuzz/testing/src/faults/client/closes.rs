//! Ends with a Close: the server's, the client's, and the ends of whole clients.

use futures_util::future::join;
use rpc_core::CloseReason;
use rpc_core::net::LinkState;
use switchboard_faults::{Fault, RawFrame};

use super::super::{End, PATIENCE, check, soon};
use super::harness::{Harness, arrive, befall, hang_up};
use super::{ClientUnderTest, Ended, SHORT, Terms};

/// It closes, with a code and without.
///
/// The Close is answered, reported, and followed by another attempt.
pub(super) async fn by_the_server<C: ClientUnderTest>(test: &C) {
    let terms = Terms::new();
    for code in [1000, 1001, 1011, 4000] {
        let why = |why: &CloseReason| matches!(why, CloseReason::Peer(frame) if frame.code == code);
        let end = Some(End::Close(code));
        befall(test, &terms, why, &[Fault::Close(code)], end).await;
    }
    let lost = |why: &CloseReason| *why == CloseReason::Lost;
    let without = Fault::Frames(vec![RawFrame::new(0x88, "")]);
    befall(test, &terms, lost, &[without], Some(End::Close(1005))).await;
}

/// It does not answer the client's Close.
///
/// The line is dropped after the closing handshake's deadline.
pub(super) async fn unanswered<C: ClientUnderTest>(test: &C) {
    let (harness, mut line) = Harness::ready_on(test, Terms::new()).await;
    harness.handle.close();
    harness.gave_up(|why| *why == CloseReason::Local).await;
    let end = soon(line.end()).await;
    check(end == End::Close(1000), "a close says 1000", &end);
}

/// The client drains with a call in flight.
///
/// A call that ends in time is waited for; one that does not is cut off and counted.
pub(super) async fn drain_in_a_call<C: ClientUnderTest>(test: &C) {
    let drained = |why: &CloseReason| *why == CloseReason::Drained;
    for ends_in_time in [true, false] {
        let (harness, mut line) = Harness::ready_on(test, Terms::new()).await;
        let server = async {
            let call = harness.test.called(&mut line).await;
            arrive(&mut line).await;
            let deadline = if ends_in_time { PATIENCE } else { SHORT };
            let answer = async {
                // The drain has begun: nothing new is taken.
                if ends_in_time && let Some(call) = &call {
                    harness.test.answer(&mut line, call).await;
                }
                hang_up(line).await;
            };
            join(harness.handle.drain(deadline), answer).await.0
        };
        let (ended, report) = soon(join(harness.call(), server)).await;
        let counted = (report.finished, report.aborted);
        if ends_in_time {
            check(ended == Ended::Answered, "a drain waits", &ended);
            check(counted == (1, 0), "a drain counts", &counted);
        } else {
            // What it was cut off by is this side's Close.
            harness.check_end(&ended, |why| drained(why) || *why == CloseReason::Local);
            check(counted == (0, 1), "a drain counts", &counted);
        }
        harness.gave_up_at_once(drained).await;
    }
}

/// The client drains or closes while it dials, in the handshake, and between two attempts.
///
/// Where nothing is in flight there is nothing to wait for.
pub(super) async fn without_a_line<C: ClientUnderTest>(test: &C) {
    for drains in [false, true] {
        let stop = async |harness: &Harness<'_, C>| {
            let expected = if drains {
                let report = soon(harness.handle.drain(PATIENCE)).await;
                let counted = (report.finished, report.aborted);
                check(counted == (0, 0), "a drain counts", &counted);
                CloseReason::Drained
            } else {
                harness.handle.close();
                CloseReason::Local
            };
            harness.gave_up(|why| *why == expected).await;
        };
        // While it dials.
        let mut harness = Harness::start(test, Terms::new()).await;
        let line = harness.accept().await;
        stop(&harness).await;
        drop(line);
        // In the handshake. The server answers no Close either.
        for steps in 0..C::STEPS {
            let mut harness = Harness::start(test, Terms::new()).await;
            let line = harness.accept_after(steps).await;
            stop(&harness).await;
            drop(line);
        }
        // Between two attempts.
        let terms = Terms::new().with(|it| it.link.reconnect.backoff.initial = PATIENCE);
        let mut harness = Harness::start(test, terms).await;
        drop(harness.accept().await);
        let mut states = harness.handle.states();
        let lost = states.wait_for(|state| matches!(state, LinkState::Lost { .. }));
        check(soon(lost).await.is_ok(), "a lost line is told", &drains);
        stop(&harness).await;
        let accepted = harness.accepted;
        check(accepted == 1, "nobody dials again", &accepted);
    }
}

/// The client closes with a call in flight.
pub(super) async fn in_a_call<C: ClientUnderTest>(test: &C) {
    let (harness, mut line) = Harness::ready_on(test, Terms::new()).await;
    let server = async {
        harness.test.called(&mut line).await;
        arrive(&mut line).await;
        harness.handle.close();
        hang_up(line).await;
    };
    let local = |why: &CloseReason| *why == CloseReason::Local;
    harness.call_ends(local, server).await;
    harness.gave_up(local).await;
}

/// The connection's task is dropped with a call in flight.
///
/// No one waits for a task that is gone, and the server sees the end of the line.
pub(super) async fn task_dropped<C: ClientUnderTest>(test: &C) {
    let gone = |why: &CloseReason| *why == CloseReason::TaskGone;
    let (harness, mut line) = Harness::ready_on(test, Terms::new()).await;
    let server = async {
        harness.test.called(&mut line).await;
        arrive(&mut line).await;
        harness.task.abort();
        soon(line.end()).await
    };
    let end = harness.call_ends(gone, server).await;
    check(end != End::Close(1000), "no Close was said", &end);
    harness.gave_up(gone).await;
}
