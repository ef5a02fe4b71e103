//! Frames that no server should send, and one that no client may.

use std::time::Duration;

use rpc_core::net::ws::Role;
use rpc_core::{CloseReason, Refused};
use switchboard_faults::RawFrame;

use super::super::breach::Breach;
use super::super::{End, broken, check, soon};
use super::harness::{Harness, befall};
use super::{ClientUnderTest, Ended, MAX_MESSAGE, SHORT, Terms};

/// As many pings as no line holds.
const PINGS: usize = 400_000;

/// It breaks a rule of frames: the client closes with the code for that.
pub(super) async fn breach<C: ClientUnderTest>(test: &C, breach: Breach) {
    let why = |why: &CloseReason| match breach {
        Breach::Size => *why == CloseReason::TooLarge { max: MAX_MESSAGE },
        _ => matches!(
            why,
            CloseReason::Transport { .. } | CloseReason::Violation { .. }
        ),
    };
    let faults = breach.faults(Role::Server, MAX_MESSAGE);
    let end = Some(End::Close(breach.code()));
    befall(test, &Terms::new(), &why, &faults, end).await;
}

/// The application wants to send a message over the limit.
///
/// Refused at once: nothing is sent, and nothing else suffers.
pub(super) async fn oversized_outgoing<C: ClientUnderTest>(test: &C) {
    let (harness, mut line) = Harness::ready_on(test, Terms::new()).await;
    let ended = soon(test.load(&harness.handle, MAX_MESSAGE + 1)).await;
    let refused = matches!(
        &ended,
        Ended::Refused(refused @ Refused::TooLarge { max, .. })
            if *max == MAX_MESSAGE && !refused.is_retryable()
    );
    check(refused, "what is too large is refused for good", &ended);
    harness.works(&mut line).await;
}

/// It sends JSON that is nested tens of thousands of times.
///
/// It is skipped, or it is passed through: no one falls into it.
pub(super) async fn deep_json<C: ClientUnderTest>(test: &C) {
    let (harness, mut line) = Harness::ready_on(test, Terms::new()).await;
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

/// It sends pings without end and takes no pongs.
///
/// Pongs that are not taken make the client stop reading. Once they are, all is as before, and every
/// ping has its pong.
pub(super) async fn ping_flood<C: ClientUnderTest>(test: &C) {
    let (harness, mut line) = Harness::ready_on(test, Terms::new()).await;
    let ping = RawFrame::ping([7; 125]).into_bytes(Role::Server);
    let flood = ping.repeat(PINGS);
    let sent = line.push(&flood, SHORT).await.unwrap_or_default();
    let is_bounded = 0 < sent && sent < flood.len();
    check(is_bounded, "pongs are not hoarded", &sent);
    // The last ping may have left in part.
    let mut rest = ping
        .get(sent % ping.len()..)
        .filter(|left| left.len() < ping.len());
    let pings = sent.div_ceil(ping.len());
    let mut pongs = 0;
    while pongs < pings {
        match soon(line.receive()).await {
            Ok(Some(frame)) if frame.is_pong() => pongs += 1,
            other => broken("every ping has its pong", &other),
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
