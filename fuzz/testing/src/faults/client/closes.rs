//! Ends with a Close: the server's, the client's, and the ends of whole clients.

use super::super::raw::{End, RawFrame};
use super::stage::{Stage, arrive, befalls, check, hang_up, soon};
use super::{ClientUnderTest, Ended, PATIENCE, SHORT, Terms};
use futures_util::future::join;
use rpc_core::CloseReason;
use rpc_core::net::LinkState;

/// The Close is answered, told, and followed by another attempt.
pub(super) async fn by_the_server<C: ClientUnderTest>(test: &C) {
    for code in [1000, 1001, 1011, 4000] {
        let said =
            |why: &CloseReason| matches!(why, CloseReason::Peer(frame) if frame.code == code);
        befalls(test, Terms::new(), said, async |mut line| {
            let _ = line.frame(RawFrame::close(code)).await;
            let end = soon(line.end()).await;
            check(end == End::Said(code), "a Close is answered", &end);
            line
        })
        .await;
    }
    let lost = |why: &CloseReason| *why == CloseReason::Lost;
    befalls(test, Terms::new(), lost, async |mut line| {
        let _ = line.frame(RawFrame::new(0x88, "")).await;
        let end = soon(line.end()).await;
        check(end == End::Said(1005), "a Close is answered", &end);
        line
    })
    .await;
}

/// The line is dropped after the closing handshake's deadline.
pub(super) async fn unanswered<C: ClientUnderTest>(test: &C) {
    let mut stage = Stage::start(test, Terms::new()).await;
    let mut line = stage.ready().await;
    stage.link().close();
    stage.gave_up(|why| *why == CloseReason::Local).await;
    let end = soon(line.end()).await;
    check(end == End::Said(1000), "a close says 1000", &end);
}

/// A call that ends in time is waited for; one that does not is cut off and counted.
pub(super) async fn drain_in_a_call<C: ClientUnderTest>(test: &C) {
    let drained = |why: &CloseReason| *why == CloseReason::Drained;
    for ends_in_time in [true, false] {
        let mut stage = Stage::start(test, Terms::new()).await;
        let mut line = stage.ready().await;
        let server = async {
            let call = stage.test.called(&mut line).await;
            arrive(&mut line).await;
            let deadline = if ends_in_time { PATIENCE } else { SHORT };
            let answer = async {
                // The drain has begun: nothing new is taken.
                if ends_in_time && let Some(call) = &call {
                    stage.test.answer(&mut line, call).await;
                }
                hang_up(line).await;
            };
            join(stage.link().drain(deadline), answer).await.0
        };
        let (ended, report) = soon(join(stage.call(), server)).await;
        let counted = (report.finished, report.aborted);
        if ends_in_time {
            check(ended == Ended::Answered, "a drain waits", &ended);
            check(counted == (1, 0), "a drain counts", &counted);
        } else {
            // What it was cut off by is this side's Close.
            stage.check_end(&ended, |why| drained(why) || *why == CloseReason::Local);
            check(counted == (0, 1), "a drain counts", &counted);
        }
        stage.gave_up(drained).await;
        check(stage.accepted == 1, "nobody dials again", &stage.accepted);
    }
}

/// Where nothing is in flight there is nothing to wait for.
pub(super) async fn without_a_line<C: ClientUnderTest>(test: &C) {
    for drains in [false, true] {
        let stop = async |stage: &Stage<'_, C>| {
            let expected = if drains {
                let report = soon(stage.link().drain(PATIENCE)).await;
                let counted = (report.finished, report.aborted);
                check(counted == (0, 0), "a drain counts", &counted);
                CloseReason::Drained
            } else {
                stage.link().close();
                CloseReason::Local
            };
            stage.gave_up(|why| *why == expected).await;
        };
        // While it dials.
        let mut stage = Stage::start(test, Terms::new()).await;
        let line = stage.accept().await;
        stop(&stage).await;
        drop(line);
        // In the handshake. The server answers no Close either.
        for steps in 0..C::STEPS {
            let mut stage = Stage::start(test, Terms::new()).await;
            let line = stage.accept_after(steps).await;
            stop(&stage).await;
            drop(line);
        }
        // Between two attempts.
        let mut stage = Stage::start(test, Terms::new().with_pause(PATIENCE)).await;
        drop(stage.accept().await);
        let mut states = stage.link().watch();
        let lost = states.wait_for(|state| matches!(state, LinkState::Lost { .. }));
        check(soon(lost).await.is_ok(), "a lost line is told", &drains);
        stop(&stage).await;
        check(stage.accepted == 1, "nobody dials again", &stage.accepted);
    }
}

pub(super) async fn in_a_call<C: ClientUnderTest>(test: &C) {
    let mut stage = Stage::start(test, Terms::new()).await;
    let mut line = stage.ready().await;
    let server = async {
        stage.test.called(&mut line).await;
        arrive(&mut line).await;
        stage.link().close();
        hang_up(line).await;
    };
    let (ended, ()) = soon(join(stage.call(), server)).await;
    stage.check_end(&ended, |why| *why == CloseReason::Local);
    stage.gave_up(|why| *why == CloseReason::Local).await;
}

/// Nobody waits for a task that is gone, and the server sees the end of the line.
pub(super) async fn task_dropped<C: ClientUnderTest>(test: &C) {
    let gone = |why: &CloseReason| *why == CloseReason::TaskGone;
    let mut stage = Stage::start(test, Terms::new()).await;
    let mut line = stage.ready().await;
    let server = async {
        stage.test.called(&mut line).await;
        arrive(&mut line).await;
        stage.task.abort();
        soon(line.end()).await
    };
    let (ended, end) = soon(join(stage.call(), server)).await;
    stage.check_end(&ended, gone);
    check(end != End::Said(1000), "no Close was said", &end);
    stage.gave_up(gone).await;
}
