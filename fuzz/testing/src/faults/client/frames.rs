//! Frames that no server should send, and one that no client may.

use std::time::Duration;

use super::super::raw::{End, RawFrame, RawPeer};
use super::harness::{Harness, befalls, broken as broken_promise, check, soon};
use super::{ClientUnderTest, Ended, MAX_MESSAGE, SHORT, Terms};
use rpc_core::net::ws::Role;
use rpc_core::{CloseReason, Refused};

/// As many pings as no line holds.
const PINGS: usize = 400_000;

/// Sends these frames one after the other; the client has to close with this code.
async fn closed_with(mut line: RawPeer, frames: Vec<RawFrame>, code: u16) {
    for frame in frames {
        let _ = line.frame(frame).await;
    }
    let end = soon(line.end()).await;
    check(
        end == End::Said(code),
        "the client says what was wrong",
        &(end, code),
    );
}

/// It sends a message over the limit, in one frame or in several.
///
/// Refused from its header on, or where the sum of the fragments passes the limit.
pub(super) async fn oversized_incoming<C: ClientUnderTest>(test: &C) {
    let too_large = |why: &CloseReason| *why == CloseReason::TooLarge { max: MAX_MESSAGE };
    let announced = || vec![RawFrame::text("").announcing(MAX_MESSAGE as u64 + 1)];
    let whole = || vec![RawFrame::text(vec![b' '; MAX_MESSAGE + 1])];
    let part = || vec![b' '; MAX_MESSAGE / 2 + 1];
    let parts = || {
        vec![
            RawFrame::text(part()).unfinished(),
            RawFrame::continuation(true, part()),
        ]
    };
    let all: [&(dyn Fn() -> Vec<RawFrame> + Sync); 3] = [&announced, &whole, &parts];
    for frames in all {
        befalls(test, Terms::new(), too_large, async |line| {
            closed_with(line, frames(), 1009).await;
        })
        .await;
    }
}

/// The application wants to send a message over the limit.
///
/// Refused at once: nothing is sent, and nothing else suffers.
pub(super) async fn oversized_outgoing<C: ClientUnderTest>(test: &C) {
    let mut harness = Harness::start(test, Terms::new()).await;
    let mut line = harness.ready().await;
    let ended = soon(test.load(&harness.handle, MAX_MESSAGE + 1)).await;
    let refused = matches!(
        &ended,
        Ended::Refused(refused @ Refused::TooLarge { max, .. })
            if *max == MAX_MESSAGE && !refused.is_retryable()
    );
    check(refused, "what is too large is refused for good", &ended);
    harness.works(&mut line).await;
}

fn is_violation(why: &CloseReason) -> bool {
    matches!(
        why,
        CloseReason::Transport { .. } | CloseReason::Violation { .. }
    )
}

/// It sends text that is not UTF-8.
pub(super) async fn invalid_utf8<C: ClientUnderTest>(test: &C) {
    let whole = || vec![RawFrame::text(&b"{\"type\":\"\xff\"}"[..])];
    let parts = || {
        vec![
            RawFrame::text(&b"\xe2\x82"[..]).unfinished(),
            RawFrame::continuation(true, ""),
        ]
    };
    let all: [&(dyn Fn() -> Vec<RawFrame> + Sync); 2] = [&whole, &parts];
    for frames in all {
        befalls(test, Terms::new(), is_violation, async |line| {
            closed_with(line, frames(), 1007).await;
        })
        .await;
    }
}

/// It sends JSON that is nested tens of thousands of times.
///
/// It is skipped, or it is passed through: no one falls into it.
pub(super) async fn deep_json<C: ClientUnderTest>(test: &C) {
    let mut harness = Harness::start(test, Terms::new()).await;
    let mut line = harness.ready().await;
    let half = MAX_MESSAGE / 2 - 200;
    for (open, close) in [("[", "]"), ("[", ""), ("{\"a\":", "")] {
        let times = half / open.len();
        let nest = format!("{}{}", open.repeat(times), close.repeat(times));
        let mut frames = test.frames_with(&nest);
        frames.push(nest);
        for frame in frames {
            let sent = line.text(&frame).await;
            check(sent.is_ok(), "deep JSON does not end the line", &sent);
        }
        harness.works(&mut line).await;
    }
}

/// It masks its frames, which only clients do.
pub(super) async fn masked<C: ClientUnderTest>(test: &C) {
    let event = test.event(0).to_string();
    befalls(test, Terms::new(), is_violation, async |line| {
        let frame = RawFrame::text(event.clone()).masked(true);
        closed_with(line, vec![frame], 1002).await;
    })
    .await;
}

/// It breaks the other rules of frames.
pub(super) async fn broken<C: ClientUnderTest>(test: &C) {
    let close_of_one_byte = || RawFrame::new(0x88, [3]);
    let breaches: [&(dyn Fn() -> Vec<RawFrame> + Sync); 7] = [
        // Reserved bits, a reserved opcode.
        &|| vec![RawFrame::new(0xc1, "{}")],
        &|| vec![RawFrame::new(0x83, "{}")],
        // A continuation of nothing, a message within a message.
        &|| vec![RawFrame::continuation(true, "{}")],
        &|| vec![RawFrame::text("{").unfinished(), RawFrame::text("{}")],
        // Control frames that are in pieces, long, or broken.
        &|| vec![RawFrame::ping("").unfinished()],
        &|| vec![RawFrame::ping([0; 126])],
        &|| vec![close_of_one_byte()],
    ];
    for frames in breaches {
        befalls(test, Terms::new(), is_violation, async |line| {
            closed_with(line, frames(), 1002).await;
        })
        .await;
    }
}

/// It sends pings without end and takes no pongs.
///
/// Pongs that are not taken make the client stop reading. Once they are, all is as before, and every
/// ping has its pong.
pub(super) async fn ping_flood<C: ClientUnderTest>(test: &C) {
    let mut harness = Harness::start(test, Terms::new()).await;
    let mut line = harness.ready().await;
    let ping = RawFrame::ping([7; 125]).into_bytes(Role::Server);
    let flood = ping.repeat(PINGS);
    let sent = line.push(&flood, SHORT).await.unwrap_or_default();
    check(
        0 < sent && sent < flood.len(),
        "pongs are not hoarded",
        &sent,
    );
    // The last ping may have left in part.
    let mut rest = ping
        .get(sent % ping.len()..)
        .filter(|left| left.len() < ping.len());
    let pings = sent.div_ceil(ping.len());
    let mut pongs = 0;
    while pongs < pings {
        match soon(line.receive()).await {
            Ok(Some(frame)) if frame.is_pong() => pongs += 1,
            other => broken_promise("every ping has its pong", &other),
        }
        // Each try takes a millisecond, unless nothing else is in the way.
        let patience = match pings - pongs {
            1 => SHORT,
            missing if missing % 64 == 0 => Duration::ZERO,
            _ => continue,
        };
        if let Some(left) = rest.take_if(|left| !left.is_empty()) {
            let written = line.push(left, patience).await.unwrap_or_default();
            rest = left.get(written..);
        }
    }
    harness.works(&mut line).await;
}
